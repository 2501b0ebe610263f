# SPDX-License-Identifier: MIT
"""The command `rtgauge`. Each command is a module; what is slow to import is imported when it is used."""

from __future__ import annotations

import sys
from typing import Any, cast

import typer

from rtgauge.cli import advise, compare, deploy, export, frequency, import_record, lab, probe, report, run, sched, show, system
from rtgauge.cli.stdio import make_patient
from rtgauge.errors import EXIT_CANNOT_MEASURE, EXIT_INPUT, EXIT_INTERRUPTED, RtgaugeError

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a wrong command line; which module it is from depends on typer's version."""

HELP = """Tells whether this Linux machine keeps its deadlines, by how much, and what to change if it does not.

\b
Begin with:
  rtgauge run                        measure this machine, about a minute
  rtgauge run --require "period=1ms latency<=200us"
                                     ... and does it suffice?
  rtgauge probe wakeup --cpu 1       one measurement, nothing is kept
  rtgauge sched SET.toml             is a task set schedulable?
  rtgauge advise --require "latency<=200us" RECORD
                                     which way to implement a task?
  rtgauge COMMAND --help             what a command can do

\b
Plans of `rtgauge run`: quick, standard, papers, jo2022, garre2014-micro,
delgado2020-tasks, brown2010.

Studies, which look at their results before they go on: delgado2020, garre2014,
tire-search, adam2021, sustained.
"""

app = typer.Typer(
    name="rtgauge",
    help=HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        import rtgauge

        typer.echo(f"rtgauge {rtgauge.__version__}")
        raise typer.Exit


@app.callback()
def _top(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version.")) -> None:  # pyright: ignore[reportUnusedFunction]
    """Options of all commands."""


app.command("run", no_args_is_help=False)(run.run)
app.add_typer(probe.app, name="probe")
app.command("system")(system.system)
app.command("audit")(system.audit)
app.add_typer(deploy.app, name="deploy")
app.command("restore")(deploy.restore)
app.command("show")(show.show)
app.command("list")(show.list_records)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("advise")(advise.advise)
app.command("frequency")(frequency.frequency)
app.command("export")(export.export)
app.add_typer(import_record.app, name="import")
app.command("sched")(sched.sched)
app.add_typer(lab.app, name="lab")


def _told(message: str, status: int) -> int:
    typer.echo(f"rtgauge: {message}", err=True)
    return status


def _usage(error: Any) -> str:
    """What is wrong with the command line, and whose help says more."""
    message = " ".join(error.format_message().split()).removesuffix(".")
    command = error.ctx.command_path if error.ctx is not None else "rtgauge"
    return f"{message[:1].lower()}{message[1:]} (see {command} --help)"


def main() -> None:
    """Entry point: every error is one line that begins with `rtgauge: `, and an exit status."""
    make_patient()
    try:
        # As a library typer returns the status in place of ending the process, and lets errors through.
        status: int | None = app(sys.argv[1:] or ["--help"], prog_name="rtgauge", standalone_mode=False)
        sys.stdout.flush()
    except RtgaugeError as error:
        status = _told(str(error), error.status)
    except USAGE_ERROR as error:
        status = _told(_usage(cast("Any", error)), EXIT_INPUT)
    except KeyboardInterrupt:
        status = _told("interrupted", EXIT_INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        status = _told(f"{where}{error.strerror or error}", EXIT_CANNOT_MEASURE)
    sys.exit(status)
