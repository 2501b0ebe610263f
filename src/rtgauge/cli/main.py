# SPDX-License-Identifier: MIT
"""The command `rtgauge`.

Each command is a module, which is imported when the command is called.
"""

from __future__ import annotations

import atexit
import gc
import os
import platform
import re
import signal
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, cast

import typer

from rtgauge.cli.arguments import rewritten
from rtgauge.cli.lazy_group import LazyGroup
from rtgauge.cli.memory_limit import check_memory
from rtgauge.cli.stdio import make_patient
from rtgauge.core_extension import HEADINGS, HIDDEN
from rtgauge.errors import EXIT_CANNOT_MEASURE, EXIT_INPUT, EXIT_INTERRUPTED, InputError, RtgaugeError
from rtgauge.escape import one_line
from rtgauge.extension import commands, extensions, imported

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The error that typer raises for a wrong command line. Its module depends on typer's version."""

HELP = """Tell whether this Linux machine meets its deadlines, by how much, and what to change if it does
not.

\b
First steps:
"""


def _first_steps() -> str:
    """Return the commands that a beginner needs, each with the question that it answers."""
    steps = [step for extension in extensions() for step in extension.first_steps]
    lines: list[str] = []
    for command, answers in (*steps, ("help COMMAND", "show the help for one command")):
        called = f"  rtgauge {command}"
        lines += [f"{called:<30} {answers}"] if len(called) < 30 else [called, f"{'':<30} {answers}"]
    return "\n".join(lines)


@contextmanager
def _clear_errors() -> Generator[None]:
    """Turn interrupts and system errors into one-line errors, because typer ends silently on some of them."""
    try:
        yield
    except KeyboardInterrupt:
        raise RtgaugeError("interrupted", EXIT_INTERRUPTED) from None
    except MemoryError:
        raise RtgaugeError(
            "there is not enough memory: free some memory, or raise the limit with ulimit -v"
        ) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        raise RtgaugeError(f"{where}{error.strerror or error}", EXIT_CANNOT_MEASURE) from error


class Commands(LazyGroup):
    """The group of all commands. `everything`: whether the help lists the hidden ones, too."""

    everything = False

    def lines(self) -> dict[str, str]:
        """Return command -> its line of help."""
        return {name: command.line for name, command in commands().items()}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - signature of the base class
        """Write the groups of commands."""
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
        for name, command in commands().items():
            groups.setdefault(command.heading, []).append((name, command.line))
        hidden = [name for name, _ in groups[HIDDEN]]
        if not self.everything:
            groups[HIDDEN] = [("help all", f"Also list {', '.join(hidden)}.")]
        for heading, group in groups.items():
            with formatter.section(heading):
                formatter.write_dl(group)

    def load(self, name: str) -> Any:
        """Import a command."""
        return imported(commands()[name].target)

    @_clear_errors()
    def make_context(self, *given: Any, **more: Any) -> Any:
        """Read the command line."""
        return super().make_context(*given, **more)

    @_clear_errors()
    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        return super().invoke(ctx)


app = typer.Typer(
    name="rtgauge",
    cls=Commands,
    help=HELP + _first_steps(),
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        import rtgauge
        from rtgauge.build import commit
        from rtgauge.target.engine_path import engine_hash

        typer.echo(f"rtgauge {rtgauge.__version__}")
        typer.echo(f"commit {commit() or 'unknown'}")
        typer.echo(f"engine sha256:{engine_hash(platform.machine(), 'linux') or 'missing'}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:  # pyright: ignore[reportUnusedFunction]
    """Options of all commands."""


def _fail(message: str, status: int) -> int:
    """Print an error, and return the exit status."""
    typer.echo(f"rtgauge: {one_line(message)}", err=True)
    return status


def usage_text(error: Any) -> str:
    """Return the error in the command line, with the --help command that explains it."""
    message = " ".join((_wrong_value(error) or error.format_message()).split()).removesuffix(".")
    command = error.ctx.command_path if error.ctx is not None else "rtgauge"
    instead = _instead(error, command, message)
    if instead:  # typer's guess goes by the letters alone
        message = re.sub(r"(?<=[a-z0-9'])(\.? Did you mean .*| \(Possible options: .*)$", "", message)
    return f"{message[:1].lower()}{message[1:]}{instead} (see {command} --help)"


def _wrong_value(error: Any) -> str | None:
    """Return which option has a wrong value, and why, if typer validated it with pydantic; otherwise None."""
    from pydantic import ValidationError

    from rtgauge.validation import first_error

    if not isinstance(error.__cause__, ValidationError) or getattr(error, "param", None) is None:
        return None
    option = error.param.get_error_hint().replace("'", "")
    return f"{option}: {first_error(error.__cause__)}"


def _instead(error: Any, command: str, message: str) -> str:
    """Return a hint that says where the unknown command or option in the message belongs; empty if it belongs
    nowhere.
    """
    from rtgauge.cli import hints
    from rtgauge.cli.resume_command import question_of_record
    from rtgauge.known_extensions import from_where
    from rtgauge.plan.make_plan import presets
    from rtgauge.probe.descriptor import key_names
    from rtgauge.probe.probe_registry import PROBES
    from rtgauge.record.records_folder import RECORDS
    from rtgauge.study.study_registry import studies

    unknown = re.search(r"^no such (command|option):? '?(-{0,2}[A-Za-z0-9._-]+)", message, re.IGNORECASE)
    if unknown is None:
        return ""
    kind, name = unknown[1].lower(), unknown[2].lstrip("-").lower()
    group = command.removeprefix("rtgauge").strip()
    way_out = hints.way_out(f"{group} {name if kind == 'command' else f'--{name}'}")
    if way_out is not None:
        return f": it is gone; {way_out}"
    if kind == "command":
        missing = from_where("commands", name) if not group else from_where("probes", name)
        missing = missing or from_where("plans", name)
        if missing:
            return missing
        if name in PROBES:
            return f": {name} is a probe; use {PROBES[name].called}"
        if name in {*presets(), *studies()}:
            return f": {name} is a plan; use rtgauge run {name}"
        if "Did you mean" in message and command != "rtgauge":
            return ""
        if command != "rtgauge":
            return f": choose from {', '.join(error.ctx.command.list_commands(error.ctx))}"
        ours = hints.command_of(name)
        return f": use {ours}" if ours is not None else ""
    missing = from_where("options", f"{group} --{name}")
    if missing:
        return missing
    if command == "rtgauge resume":
        others = re.findall(r"--([a-z-]+)", message)[1:]
        if get_close_matches(name, others, cutoff=0.8):
            return ""  # a misspelled option, which typer has named
        question = question_of_record(sys.argv[2:], RECORDS)
        advice = ": rtgauge resume keeps the settings of the run; leave this option out, or start a new run"
        return advice if question is None else f"{advice}; the record asks: {question}"
    known = {option for parameter in error.ctx.command.params for option in parameter.opts}
    ours = hints.option_of(name, known)
    having = [probe.name for probe in PROBES.values() if name in key_names(probe)]
    if command == "rtgauge run" and having:
        other = f"use {ours}, or " if ours is not None else ""
        return f": {other}give --set {name}=VALUE, which sets this parameter of {', '.join(having)}"
    if command.startswith("rtgauge probe ") and having:
        return (
            f": only the probes {', '.join(having)} have this option"
            if len(having) > 1
            else (f": only the probe {having[0]} has this option")
        )
    return f": use {ours}" if ours is not None else ""


def _check_date() -> None:
    """Refuse a SOURCE_DATE_EPOCH that is no time, because libraries fail at it. Raises InputError."""
    date = os.environ.get("SOURCE_DATE_EPOCH", "0")
    try:
        time.gmtime(int(date))
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"SOURCE_DATE_EPOCH={date!r} is not a time in seconds: correct or unset it"
        ) from None


def main() -> None:
    """Run the command line. Every error becomes one line that begins with `rtgauge: `, and an exit status.

    SIGTERM and SIGHUP interrupt like Ctrl-C, unless the caller ignores them (nohup).
    """
    # A command makes 100,000 objects and keeps them all, so it needs no garbage collection, not even at the
    # end. Without these lines `rtgauge --help` takes 13 % longer.
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    make_patient()
    os.umask(os.umask(0o077) | 0o002)  # what rtgauge writes is never writable by everyone
    try:
        with _clear_errors():
            check_memory()
            _check_date()
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, signal.default_int_handler)
            # In this mode, typer returns the status instead of ending the process, and passes errors on.
            words = sys.argv[1:]
            Commands.everything = words == ["help", "all"]
            words = ["--help"] if Commands.everything or not words else rewritten(words)
            status: int | None = app(words, prog_name="rtgauge", standalone_mode=False)
            sys.stdout.flush()
    except RtgaugeError as error:
        status = _fail(str(error), error.status)
    except USAGE_ERROR as error:
        usage = cast("Any", error)
        if usage.ctx is not None and usage.message == usage.ctx.get_help():  # a group without a command
            typer.echo(usage.message)
            status = 0
        else:
            status = _fail(usage_text(usage), EXIT_INPUT)
    except Exception as error:  # noqa: BLE001 - a defect must not end like an answer, with status 1
        traceback.print_exc()
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        status = _fail(
            f"defect in rtgauge: {what}. Please report it with the lines above", EXIT_CANNOT_MEASURE
        )
    sys.exit(status)
