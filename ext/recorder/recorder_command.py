# SPDX-License-Identifier: MIT
"""`rtgauge recorder`."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtgauge.cli.shared_options import Details, Json, Out, Require, Target, duration_option, grouped
from rtgauge.errors import InputError
from rtgauge.record.records_folder import RECORDS
from rtgauge.units import NS_PER_S
from rtgauge_ext.recorder import service_installation
from rtgauge_ext.recorder.service_installation import FOLDERS

if TYPE_CHECKING:
    from rtgauge_ext.recorder.actions import Actions
    from rtgauge_ext.recorder.folder import Settings
    from rtgauge_ext.recorder.program import ProgramChoice
    from rtgauge_ext.recorder.recorder import Options

app = typer.Typer(
    help="""Record a program for weeks, and keep its worst moments.

\b
Examples:
  rtgauge recorder run --program control --require "period=1ms latency<=200us"
  rtgauge recorder status control --follow
  rtgauge show /var/lib/rtgauge/recorder/control
  rtgauge recorder import /var/lib/rtgauge/recorder/control
"""
)
SIZE = re.compile(r"([0-9]{1,9})(KiB|MiB|GiB)")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A recorder's folder.", show_default=False)
]


@app.callback()
def _recorder() -> None:  # pyright: ignore[reportUnusedFunction]
    """Record a program for weeks, and keep its worst moments."""


@dataclass(frozen=True)
class ProgramOptions:
    """Options for the program."""

    program: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the program, found again when it restarts.")
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="systemd unit whose main process is the program."),
    ] = None
    pid: Annotated[int | None, typer.Option(metavar="N", min=1, help="Process ID of the program.")] = None
    threads: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Threads to watch, as for rtgauge watch.")
    ] = None
    cycle: Annotated[
        str | None,
        typer.Option(metavar="CALL[:FD]", help="Call in which the loop waits, as for rtgauge watch."),
    ] = None
    require: Require = None


@dataclass(frozen=True)
class Keep:
    """Options for what is kept."""

    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="How long to record, from the first start in this folder; default: until stopped.",
        ),
    ] = None
    keep: Annotated[
        str, typer.Option(metavar="SIZE", help="The most that the folder may take, e.g. 50MiB.")
    ] = "50MiB"
    budget_cpu: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Share of a CPU that recording may take. Half of it may go into naming culprits.",
        ),
    ] = "0.5%"
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"The recorder's folder; default: {FOLDERS}/PROGRAM."),
    ] = None


@dataclass(frozen=True)
class Triggers:
    """Options for triggers."""

    on_trigger: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ACTION",
            help="What to do at a trigger, such as a cycle that breaks the requirement, or the end of the "
            "program: a program (the whole path of root's file), signal:NAME, or freeze, which ends the "
            "recording.",
        ),
    ] = None
    trigger_every: Annotated[
        str, typer.Option(metavar="TIME", help="At most one trigger acts in this time.")
    ] = "1min"
    socket: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Trigger at a datagram that the program sends to this socket."),
    ] = None
    trigger_marker: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Trigger if the program writes a line that begins with TEXT into trace_marker (Linux 6.16).",
        ),
    ] = None
    trigger_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH>N",
            help="Trigger if the number in a file is above N, or with PATH+N if it has grown by N.",
        ),
    ] = None
    silent: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="Trigger if a thread does not get a CPU for N periods; needs period= in --require.",
        ),
    ] = None


def _bytes(text: str) -> int:
    match = SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"--keep {text}: give a size such as 50MiB")
    return int(match[1]) * UNITS[match[2]]


def _share(text: str) -> float:
    from rtgauge.units import parse_percent

    try:
        share = parse_percent(text)
    except ValueError:
        share = 0
    if not 0 < share <= 1:
        raise InputError(f"--budget-cpu {text}: give a share of one CPU, such as 0.5%")
    return share


def _options(program: ProgramOptions, keep: Keep, triggers: Triggers) -> Options:
    """Return the recorder's options. Raises InputError."""
    from pydantic import ValidationError

    from rtgauge.units import format_duration
    from rtgauge.validation import first_error
    from rtgauge.verdict.requirement import parse_requirement
    from rtgauge_ext.recorder.engine_session import engine_arguments
    from rtgauge_ext.recorder.program import ProgramChoice
    from rtgauge_ext.recorder.recorder import Options
    from rtgauge_ext.recorder.thresholds import Threshold
    from rtgauge_ext.recorder.triggers import Silence, bounds

    requirement = None if program.require is None else parse_requirement(program.require)
    bound = bounds(requirement)
    watch: dict[str, str | int] = {}
    for name in ("threads", "cycle"):
        if (value := getattr(program, name)) is not None:
            watch[name] = value
    if requirement is not None and requirement.period_ns is not None:
        watch["period"] = format_duration(requirement.period_ns)
    if bound:
        watch["explain-above"] = format_duration(min(bound.values()))
    try:
        engine_arguments(watch, 1, "trace", "explain")
    except ValidationError as error:
        raise InputError(first_error(error)) from None
    period_ns = requirement.period_ns if requirement is not None else None
    if triggers.silent is not None and period_ns is None:
        raise InputError('--silent needs the period of the loop; give --require "period=1ms ..."')
    return Options(
        wanted=ProgramChoice(program.pid, program.program, program.unit),
        watch=watch,
        for_ns=None if keep.for_ is None else duration_option("--for", keep.for_),
        budget=_share(keep.budget_cpu),
        silent=Silence(triggers.silent, period_ns) if triggers.silent and period_ns else None,
        bounds=bound,
        socket=triggers.socket,
        marker=triggers.trigger_marker,
        files=tuple(map(Threshold.parse, triggers.trigger_file or ())),
    )


def _given(options: list[str]) -> tuple[ProgramOptions, Keep, Triggers]:
    """Return the options of `run`. Raises InputError if it would refuse them."""
    from typer.core import TyperGroup

    from rtgauge.cli.main import USAGE_ERROR

    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 - app has several commands
    try:
        given = group.commands["run"].make_context("rtgauge recorder run", [*options]).params
    except USAGE_ERROR as error:
        raise InputError(str(error)) from None
    return (
        ProgramOptions(**{each.name: given[each.name] for each in fields(ProgramOptions)}),
        Keep(**{each.name: given[each.name] for each in fields(Keep)}),
        Triggers(**{each.name: given[each.name] for each in fields(Triggers)}),
    )


def _checked(program: ProgramOptions, keep: Keep, triggers: Triggers) -> tuple[Options, Actions]:
    from rtgauge_ext.recorder.actions import Actions

    _bytes(keep.keep)
    every_s = duration_option("--trigger-every", triggers.trigger_every) / NS_PER_S
    actions = Actions(tuple(triggers.on_trigger or ()), every_s, lambda _: None)
    return _options(program, keep, triggers), actions


@app.command("run")
@grouped
def run(*, program: ProgramOptions, keep: Keep, triggers: Triggers) -> None:
    """Record until the time is over, or until stopped.

    The folder never takes more than --keep. It keeps the worst moment of each culprit with the kernel's
    events, and figures and counts by hour. After a restart of the program, the machine or the recorder, the
    same command goes on in the same folder.

    \b
    Examples:
      rtgauge recorder run --program control --for 30d
      rtgauge recorder run --unit control.service --keep 50MiB \\
          --require "period=1ms latency<=200us" --on-trigger /usr/local/sbin/alarm
      rtgauge recorder run --pid 812 --folder /tmp/flight --silent 5 \\
          --require "period=1ms" --on-trigger signal:USR1
    """
    record(program, keep, triggers)


def _settings(program: ProgramOptions, keep: Keep, options: Options) -> Settings:
    """Return what a folder says about its recorder."""
    from rtgauge_ext.recorder.folder import Settings

    return Settings(
        program=str(options.wanted),
        require=program.require,
        keep_bytes=_bytes(keep.keep),
        command=["rtgauge", *sys.argv[1:]],
        parameters=options.watch,
    )


def record(program: ProgramOptions, keep: Keep, triggers: Triggers) -> None:
    """Record until the time is over, or until stopped. Raises InputError or MeasureError."""
    from rtgauge_ext.recorder.clocks import clocks
    from rtgauge_ext.recorder.folder import RecorderFolder
    from rtgauge_ext.recorder.recorder import Recorder, age_ns
    from rtgauge_ext.recorder.tracing import check_tracing

    options, actions = _checked(program, keep, triggers)
    check_tracing()
    wanted = options.wanted
    name = wanted.name or wanted.unit or f"pid-{wanted.pid}"
    folder = RecorderFolder.create(
        keep.folder or FOLDERS / name.replace("/", "_"), _settings(program, keep, options)
    )
    if options.for_ns is not None and age_ns(folder, clocks()) >= options.for_ns:
        folder.close()
        typer.echo(
            f"nothing is recorded, because the time of --for is over in {folder.path}; give a longer --for, "
            "or choose another folder with --folder"
        )
        return
    typer.echo(f"recording {what_runs(wanted)} into {folder.path}", err=True)
    Recorder(folder, options, actions).run()
    typer.echo(f"stopped; see what was recorded: rtgauge show {shlex.quote(str(folder.path))}", err=True)


def what_runs(program: ProgramChoice) -> str:
    """Return what is recorded now. Raises InputError for a process that does not run."""
    programs = program.find()
    if program.pid is not None and not programs:
        raise InputError(
            f"no process has the ID {program.pid}; with --program NAME, rtgauge waits for a program"
        )
    if len(programs) > 1:
        return f"nothing yet, because {len(programs)} programs fit {program} (give --pid)"
    return f"process {programs[0].pid}" if programs else f"nothing yet, because no program fits {program},"


def _warn(line: str) -> None:
    typer.echo(line, err=True)


@app.command("status")
def status(
    recorder: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FOLDER", help=f"A recorder's folder, or its name in {FOLDERS}.", show_default=False
        ),
    ],
    follow: Annotated[bool, typer.Option("--follow", help="Update the output until Ctrl-C.")] = False,
    live: Annotated[
        str | None,
        typer.Option(
            "--live",
            metavar="[ADDRESS:PORT]",
            help="Serve a page that shows the recorder, until Ctrl-C; see rtgauge run --help.",
        ),
    ] = None,
    target: Target = "local",
) -> None:
    """Show a recorder while it runs: its last hours, latencies and triggers.

    \b
    Examples:
      sudo rtgauge recorder status control --follow
      sudo rtgauge recorder status control --live
      rtgauge recorder status control --target ssh://root@board
    """
    from contextlib import suppress

    from rtgauge.cli.console import Console
    from rtgauge_ext.recorder.remote_status import shown_recorder
    from rtgauge_ext.recorder.status import follow as follow_recorder
    from rtgauge_ext.recorder.status import print_status, serve

    with suppress(KeyboardInterrupt), shown_recorder(target, recorder) as shown:
        if live is not None:
            serve(shown, live, lambda line: typer.echo(line, err=True))
        elif follow:
            follow_recorder(shown, Console())
        else:
            print_status(shown.status(), Console())


@app.command("import")
def import_folder(
    folder: FolderArgument,
    target: Target = "local",
    out: Out = RECORDS,
    require: Require = None,
    details: Details = False,
    json: Json = False,
) -> None:
    """Make a record of a recorder's folder, also while it records.

    The record has a step for each boot, a window for each hour, and the kept moments.

    \b
    Examples:
      rtgauge recorder import /var/lib/rtgauge/recorder/control
      rtgauge show latest --why
      rtgauge recorder import /var/lib/rtgauge/recorder/control \\
          --target ssh://root@board
    """
    from rtgauge.cli.command_end import check_requirement, finish, with_requirement
    from rtgauge.record.reader import Record
    from rtgauge_ext.recorder.folder import RecorderFolder
    from rtgauge_ext.recorder.record import make_record
    from rtgauge_ext.recorder.spool import is_spool, played_from

    check_requirement(require)
    command = ["rtgauge", *sys.argv[1:]]
    if target != "local" or is_spool(folder):
        with played_from(target, folder) as opened:
            path = make_record(opened, out, command, _warn)
    else:
        opened = RecorderFolder.open(folder)
        path = make_record(opened, out, command, _warn)
    run = with_requirement(Record.open(path).run, require or opened.settings.require)
    raise typer.Exit(finish(path, run, as_json=json, details=details))


@app.command("install", context_settings={"ignore_unknown_options": True})  # they are for `run`
def install(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the service.", show_default=False)],
    command: Annotated[
        list[str],
        typer.Argument(metavar="OPTIONS", help="Options of rtgauge recorder run.", show_default=False),
    ],
    target: Target = "local",
) -> None:
    """Install a systemd service that records from each boot on.

    This writes /etc/systemd/system/rtgauge-recorder-NAME.service, and enables it. On a --target, the engine
    alone records, so the target needs no Python; it takes only the options for the program, --for and --keep.

    \b
    Examples:
      rtgauge recorder install control --unit control.service --keep 50MiB
      rtgauge recorder install control --program control \\
          --target ssh://root@board
    """
    if name.startswith("-"):
        raise InputError(f"give the name of the service before its options, such as {name}")
    for line in _install(name, command, target):
        typer.echo(line)


def _install(name: str, command: list[str], target: str) -> list[str]:
    program, keep, triggers = _given(command)
    options, _ = _checked(program, keep, triggers)
    if target == "local":
        return service_installation.install(name, command)
    if any((getattr(triggers, each.name) or None) != each.default for each in fields(Triggers)):
        raise InputError(f"on {target}, the engine alone records, so there are no triggers; leave them out")
    if keep.folder is not None or keep.budget_cpu != Keep().budget_cpu:
        raise InputError(f"on {target}, the engine alone records; leave out --folder and --budget-cpu")
    return service_installation.install_on(target, name, options, _settings(program, keep, options))


@app.command("uninstall")
def uninstall(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the service.", show_default=False)],
    folder: Annotated[
        bool, typer.Option("--folder", help="Also remove the folder with everything that was recorded.")
    ] = False,
    target: Target = "local",
) -> None:
    """Stop and remove a service that `rtgauge recorder install` installed.

    \b
    Example:
      rtgauge recorder uninstall control --folder
    """
    for line in service_installation.uninstall(name, target, with_folder=folder):
        typer.echo(line)
