# SPDX-License-Identifier: MIT
"""The command `rtgauge`. Each command is a module; what is slow to import is imported when it is used."""

from __future__ import annotations

import os
import sys

import typer

from rtgauge.cli import export, importing, probe, report, run, show
from rtgauge.errors import EXIT_INTERRUPTED, EXIT_OK, RtgaugeError

app = typer.Typer(
    name="rtgauge",
    help="Tells whether this Linux machine keeps its deadlines, by how much, and what to change if it does not.",
    epilog="Begin with: rtgauge run",
    no_args_is_help=True,
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
app.command("show")(show.show)
app.command("list")(show.list_records)
app.command("report")(report.report)
app.command("export")(export.export)
app.add_typer(importing.app, name="import")


def main() -> None:
    """Entry point: one line for an error that we know, and its exit status."""
    try:
        app()
    except RtgaugeError as error:
        typer.echo(f"rtgauge: {error}", err=True)
        sys.exit(error.status)
    except KeyboardInterrupt:
        typer.echo("rtgauge: interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone: that is no error of ours, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_OK)
