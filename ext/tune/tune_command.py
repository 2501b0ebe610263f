# SPDX-License-Identifier: MIT
"""`rtgauge tune` finds the settings that help on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rtgauge.cli.shared_options import Json, Out, Seed, Target, WaitForLock, duration_option, wait_s
from rtgauge.errors import InputError, MeasureError
from rtgauge.record.records_folder import RECORDS
from rtgauge.target.address import LOCAL
from rtgauge.target.kind import guest_kind
from rtgauge.units import format_cpu_list, parse_cpu_list, parse_percent, plural
from rtgauge_ext.tune.candidates import AllowedSettings, read_offer

if TYPE_CHECKING:
    from rtgauge.plan.make_plan import Plan
    from rtgauge.record.reader import Record
    from rtgauge_ext.tune.candidates import Offer

EACH_DEPLOYMENT = "each-deployment"
"""The value of --boot."""
COMMAND = "rtgauge.command"
"""The key in typer's context of the words after `--`."""


class TuneGroup(TyperGroup):
    """The group of `rtgauge tune` and its commands, which accepts a program after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments, and keep the words after `--` for the user's program."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[COMMAND] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=TuneGroup, invoke_without_command=True, subcommand_metavar="[-- CMD] [COMMAND]")


@app.callback()
def tune(
    ctx: typer.Context,
    require: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help='Requirement that the machine must meet, e.g. "period=1ms latency<=100us hardness=99.9%".',
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="About how long the tuning may take.")
    ] = "30min",
    pid: Annotated[
        int | None,
        typer.Option(metavar="N", help="Measure the latencies of this running program, instead of a probe."),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Loads to measure under; the worst counts. Default: cpu, or idle for your own program.",
        ),
    ] = None,
    confirm_load: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Other loads, to confirm what helped. Default: scheduler, or cpu for your own program.",
        ),
    ] = None,
    cpu: Annotated[
        str | None, typer.Option(metavar="CPUS", help="The real-time CPUs, e.g. 1 or 2-3; default: all.")
    ] = None,
    isolate: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4096,
            metavar="N",
            help=(
                "Instead of --cpu: measure on the last CPU, isolate up to N of the last CPUs, and find out "
                "how few are enough."
            ),
        ),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            metavar="IFACE|ADDRESS",
            help="Change only this network interface, or the one that leads to this IP address.",
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Measure the responses of this far end, e.g. udp:HOST:PORT (rtgauge probe path), and change "
            "only the network interface that leads to it.",
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="SETTINGS", help="Try only these settings, e.g. thp,c-states.")
    ] = None,
    without: Annotated[
        str | None, typer.Option(metavar="SETTINGS", help="Do not try these settings.")
    ] = None,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Measuring time of each run under each load.")
    ] = "12s",
    larger_than: Annotated[str, typer.Option(metavar="PERCENT", help="Smallest gain that matters.")] = "20%",
    target: Target = LOCAL,
    seed: Seed = None,
    out: Out = RECORDS,
    wait: WaitForLock = "0",
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write files that set the kept settings at each boot: sysctl.d, systemd, tuned.",
        ),
    ] = None,
    boot: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="each-deployment: boot a lab guest for each set of settings, and try boot parameters too. "
            "You boot any other machine yourself, before the confirmation.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be tried; change nothing.")
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="With --dry-run: also print the reason and the source of each setting."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Find the settings that make this machine meet a requirement, and prove that they help.

    First rtgauge measures the machine as it is and explains large latencies. Then it tries the remedies,
    then all safe settings together, then fewer of them. Each test measures pairs of runs, with and without
    the settings, in random order. At most one tuning in 100 keeps a setting that does not help. rtgauge
    restores all settings at the end, and after Ctrl-C or kill -9. It never touches the network
    interface through which you reach the machine, the console, thermal limits or the root disk.

    \b
    Examples:
      rtgauge tune --dry-run
          show what rtgauge could try on this machine, and change nothing
      rtgauge tune --require "period=1ms latency<=100us hardness=99.9%"
          help real-time tasks on all CPUs; takes half an hour
      rtgauge tune --require "latency<=50us" --cpu 1 --load cpu,network
          help real-time tasks on CPU 1
      rtgauge tune --require "latency<=50us" --cpu 1 -- ./control
          help the wake-ups of your own program
      rtgauge tune --require "period=1ms response<=500us" --path icmp:192.168.1.5
          help a loop with a device behind the network
      rtgauge resume latest --budget 1h
          continue, with more time
      rtgauge resume latest --files keep
          write files that set the kept settings at each boot

    \b
    Exit status:
      0    the requirement holds, either with the kept settings or without any
      1    the requirement still fails
      2    wrong input
      3    could not measure
      4    only just holds (marginal), or cannot tell
      130  interrupted; rtgauge resume continues
    """
    from rtgauge_ext.tune.answer import finish_tuning

    if ctx.invoked_subcommand is not None:
        return
    command: list[str] = ctx.meta.get(COMMAND, [])
    if boot not in (None, EACH_DEPLOYMENT):
        raise InputError(f"--boot {boot}: give {EACH_DEPLOYMENT}")
    if pid is not None and command:
        raise InputError("--pid and a command exclude each other; give only one of them")
    if path is not None and (pid is not None or command):
        raise InputError("--path measures a network path instead of a program; leave out one of them")
    if command and require is None:
        raise InputError('say which requirement the program must meet: --require "latency<=100us"')
    with _program(command, pid, target) as watched:
        by_boot = boot is not None and guest_kind(target) is not None
        if isolate is not None and (cpu is not None or watched is not None):
            raise InputError(
                "--isolate chooses the CPUs itself and cannot move a program; leave out --cpu and the program"
            )
        chosen = names_option("--only", only), names_option("--without", without)
        scope = AllowedSettings(
            cpus_option(cpu), watched, *chosen, by_boot, isolate, _used_interface(interface, path)
        )
        offer = read_offer(target, scope)
        if dry_run:
            _print_offer(offer, details=details)
            return
        if require is None:
            raise InputError(
                'say which requirement the machine must meet: --require "period=1ms latency<=100us"'
            )
        first, other = ("cpu", "scheduler") if watched is None else ("idle", "cpu")
        loads = (first if load is None else load, other if confirm_load is None else confirm_load)
        plan = _plan(
            require,
            offer,
            scope,
            loads,
            (budget, duration),
            larger_than,
            target,
            seed,
            reboot=boot is not None,
            path=path,
        )
        if target == LOCAL:
            _check_root()
        if files is not None:
            from rtgauge.record.files import check_folder

            check_folder(files, "--files")
        record = _begun(plan, duration_option("--duration", duration), out, wait_s(wait))
    finish_tuning(record, files, json=json)


@app.command("apply")
def apply_kept(
    kept: Annotated[
        Path,
        typer.Argument(metavar="RECORD|DIR", help="A tuning's record, or the folder that --files wrote."),
    ],
    wait: WaitForLock = "0",
) -> None:
    """Apply the settings that a tuning kept, now and at each boot.

    This writes /etc/sysctl.d/rtgauge-tune.conf, a systemd unit, and a slice for isolated CPUs. `rtgauge
    restore --applied` undoes it. The folder must be one that only you can change, and may contain only
    settings that rtgauge tune itself tries.

    \b
    Examples:
      rtgauge tune apply latest
      rtgauge tune apply keep
    """
    from rtgauge_ext.tune.drift import own_settings
    from rtgauge_ext.tune.keep_files import SLICE_FILE
    from rtgauge_ext.tune.tuning_installation import install

    (values, isolated), waits_s = own_settings(kept), wait_s(wait)
    _check_root()
    installed = install(values, waits_s, _notify, isolated)
    for line in installed.refused:
        typer.echo(f"refused  {line}")
    for each in installed.values:
        typer.echo(f"applied  {each}")
    if isolated:
        typer.echo(
            f"reserved CPU {isolated} for programs in {SLICE_FILE}: write Slice={SLICE_FILE} into their units"
        )
    count = plural(len(values), "setting")
    typer.echo(f"applied {len(installed.values)} of {count}, now and at each boot")
    typer.echo(
        "undo this with: rtgauge restore --applied; check later whether the settings still hold with: "
        f"rtgauge audit --profile {kept}"
    )


def _notify(reason: str) -> None:
    typer.echo(reason, err=True)


def _check_root() -> None:
    """Raise MeasureError unless this process is root's."""
    if os.geteuid() != 0:
        raise MeasureError("rtgauge tune changes settings of this machine, so run it as root")


@contextmanager
def _program(command: list[str], watched: int | None, target: str) -> Generator[int | None]:
    """Yield the pid of the watched program, or None. A command is started first and ended afterwards."""
    if not command:
        yield watched
        return
    from rtgauge.cli.watch_command import started

    with started(command, target, None) as pid:
        yield pid


def cpus_option(text: str | None) -> str | None:
    """Return the CPUs of `--cpu` in their shortest form. Raises InputError if it is not a CPU list."""

    try:
        return None if text is None else format_cpu_list(parse_cpu_list(text))
    except ValueError:
        raise InputError(f"--cpu '{text}': give CPUs such as 1 or 2-3") from None


def names_option(option: str, text: str | None) -> list[str]:
    """Split an option's text into names: `"thp, c-states"` -> ["thp", "c-states"]; None -> [].

    Raises InputError if the text has no name.
    """
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise InputError(
            f"{option} '{text}' does not contain a name; give names separated by commas, or leave out "
            f"{option}"
        )
    return names


def _used_interface(interface: str | None, path: str | None) -> str | None:
    """Return the network interface to change, or an address to which it leads; None: none is named. Raises
    InputError if the path is not valid.
    """
    if path is None or interface is not None:
        return interface
    from pydantic import ValidationError

    from rtgauge.probe import probe_registry
    from rtgauge.validation import explain

    probe = probe_registry.get("path")
    try:
        return probe.peer(probe.parameters.model_validate({"path": path}))
    except ValidationError as error:
        raise explain(error, "--path", ["path"]) from None


def _loads(option: str, text: str) -> list[str]:
    """Return the names of the loads. Raises InputError if one is unknown."""
    from rtgauge.load import load_registry

    names = names_option(option, text)
    for name in names:
        try:
            load_registry.get(name)
        except InputError as error:
            raise InputError(f"{option}: {error}") from None
    return names


def _plan(
    require: str,
    offer: Offer,
    scope: AllowedSettings,
    loads: tuple[str, str],
    times: tuple[str, str],
    larger_than: str,
    target: str,
    seed: int | None,
    *,
    reboot: bool,
    path: str | None,
) -> Plan:
    """Make the plan. `loads`: (search, confirmation); `times`: (budget, duration). Raises InputError."""
    from rtgauge.verdict.requirement import parse_requirement
    from rtgauge_ext.tune.tuning_options import tune_plan

    try:
        matters = parse_percent(larger_than)
    except ValueError as error:
        raise InputError(f"--larger-than: {error}") from None
    duration_ns = duration_option("--duration", times[1])
    if duration_ns == 0:
        raise InputError(f"--duration {times[1]} is too short to measure anything; give a time such as 12s")
    return tune_plan(
        parse_requirement(require),
        offer.candidates,
        daemons=offer.daemons,
        fewer=offer.fewer,
        cpus=offer.cpus,
        pid=scope.pid,
        loads=_loads("--load", loads[0]),
        confirm_loads=_loads("--confirm-load", loads[1]),
        budget_ns=0 if times[0] == "0" else duration_option("--budget", times[0]),
        duration_ns=duration_ns,
        larger_than=matters,
        target=target,
        seed=seed,
        reboot=reboot,
        interface=offer.interface,
        path=path,
    )


def _begun(plan: Plan, duration_ns: int, out: Path, waits_s: float) -> Record:
    from rtgauge.cli.gate_command import measured_record
    from rtgauge.runner.measure_run import RunOptions, start_run
    from rtgauge_ext.tune.answer import after_boot
    from rtgauge_ext.tune.tuning_options import KEY, TuningOptions, resolution
    from rtgauge_ext.tune.tuning_study import next_runs

    tuning_options = TuningOptions.model_validate(plan.written[KEY])
    typer.echo(resolution(tuning_options, duration_ns), err=True)
    options = RunOptions(out=out, command=["rtgauge", *sys.argv[1:]], wait_s=waits_s)
    return after_boot(measured_record(partial(start_run, plan, options, more=next_runs)), options)


def _print_offer(offer: Offer, *, details: bool) -> None:
    from rtgauge.cli.console import Console
    from rtgauge.report.terminal_table import print_tables
    from rtgauge_ext.tune.tuning_page import offer_tables

    print_tables(offer_tables(offer, details=details), Console())
