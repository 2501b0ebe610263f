# SPDX-License-Identifier: MIT
"""`rtgauge import` makes records from other tools' measurements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rtgauge.cli.shared_options import Details, Json, Out, Require, duration_option
from rtgauge.errors import InputError
from rtgauge.escape import one_line
from rtgauge.record.records_folder import RECORDS

HELP = """Import measurements of other tools as records.

`rtgauge import FILE...` is `rtgauge import files FILE...`.

\b
Examples:
  rtgauge import cyclictest.txt timerlat.txt summary.xml
  rtgauge import --as list
  rtgauge import edges levels.csv --stimulus CH1 --answer CH2
"""


class Imports(TyperGroup):
    """A group whose default command is `files`, so that file names may follow directly."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. If they name no command, insert the default command first."""
        if not args or (args[0] not in self.commands and args[0] not in {"-h", "--help"}):
            args = ["files", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(help=HELP, cls=Imports)


@app.callback()
def _imports() -> None:  # pyright: ignore[reportUnusedFunction]
    """Import measurements of other tools as records."""


@app.command("files")
def files(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Outputs of other tools; each becomes a record."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="FORMAT", help="Their format, if it is not recognised; 'list' prints all."
        ),
    ] = None,
    out: Out = RECORDS,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="The tool's interval, if the file does not contain it, e.g. 200us."
        ),
    ] = None,
    nanoseconds: Annotated[
        bool, typer.Option("--ns", help="Latencies in cyclictest's text are in ns (-N).")
    ] = False,
    microseconds: Annotated[
        bool, typer.Option("--us", help="Latencies in cyclictest's text are in us.")
    ] = False,
    require: Require = None,
    details: Details = False,
    json: Json = False,
) -> None:
    """Import results of other tools. rtgauge recognises their formats.

    The tools: cyclictest and the other programs of rt-tests, rtla, hwlatdetect, jitterdebugger, rteval,
    Xenomai's and RTAI's latency, EVL's latmus. A mark in the record names what a tool leaves out or mixes up.
    If a file holds several runs, each becomes a step.

    \b
    Examples:
      cyclictest -m -p 98 -a -t -i 1000 -l 100000 -q -h 400 > old.txt
      rtgauge import old.txt --interval 1ms
      rtgauge import timerlat.txt summary.xml oslat.json
      rtgauge import --as list
    """
    from rtgauge.cli.command_end import check_requirement, finish, with_requirement
    from rtgauge.record.reader import Record
    from rtgauge_ext.importers.imported_record import import_file
    from rtgauge_ext.importers.registry import by_name

    if form == "list":
        width = max(map(len, by_name()))
        for importer in by_name().values():
            typer.echo(f"{importer.name:{width}}  {importer.help}")
        return
    if not files:
        raise InputError(
            "name a file to import, or give --as list to see the formats (see rtgauge import --help)"
        )
    check_requirement(require)
    interval_ns = None if interval is None else duration_option("--interval", interval)
    if nanoseconds and microseconds:
        raise InputError("--ns and --us contradict each other; give only one")
    unit_ns = 1 if nanoseconds else 1000 if microseconds else None
    if json and len(files) > 1:
        raise InputError("--json prints one document; name only one file")
    status = failed = 0
    for file in files:
        if str(file) in by_name() and not file.exists():
            raise InputError(f"the file {file} does not exist; if this is a format, give --as {file}")
        try:
            path = import_file(file, out, form=form, interval_ns=interval_ns, unit_ns=unit_ns)
        except InputError as error:
            if len(files) == 1:
                raise
            typer.echo(f"rtgauge: {one_line(str(error))}", err=True)
            failed += 1
            continue
        status = max(
            status,
            finish(path, with_requirement(Record.open(path).run, require), as_json=json, details=details),
        )
    if failed:
        raise InputError(
            f"{failed} of {len(files)} files could not be imported (see above)"
            + ("; the others were imported" if failed < len(files) else "")
        )
    raise typer.Exit(status)


@app.command("edges")
def edges(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="VCD, or CSV with the columns time_s and the levels of each channel."
        ),
    ],
    stimulus: Annotated[
        str,
        typer.Option(
            "--stimulus",
            metavar="CHANNEL",
            help=("Name of the channel with the stimulus, or of the toggled line."),
        ),
    ],
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="CHANNEL",
            help=("Name of the channel with the answer; the time from stimulus to answer is measured."),
        ),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            "--period",
            metavar="TIME",
            help="Nominal period of the line, e.g. 30ms; its half-periods are measured.",
        ),
    ] = None,
    edge: Annotated[
        str,
        typer.Option(
            "--edges",
            metavar="both|rising|falling",
            help="Edges to use as stimuli, or, with --period, edges to measure between.",
        ),
    ] = "both",
    any_edge: Annotated[
        bool,
        typer.Option(
            "--any-edge",
            help=("Accept either edge as the answer, for an answer line that is toggled."),
        ),
    ] = False,
    out: Out = RECORDS,
    require: Require = None,
    details: Details = False,
    json: Json = False,
) -> None:
    """Import edges that an oscilloscope recorded.

    Files may be VCD, or CSV of any size. The first line of the CSV is time_s,CHANNEL,...; each following line
    has a time in seconds, and the level (0 or 1) of each channel.

    \b
    Examples:
      rtgauge import edges levels.csv --stimulus CH1 --answer CH2
      rtgauge import edges capture.vcd --stimulus D0 --answer D1 --edges rising
      rtgauge import edges levels.csv --stimulus CH1 --period 30ms
    """
    from rtgauge.cli.command_end import check_requirement, finish, with_requirement
    from rtgauge.record.reader import Record
    from rtgauge_ext.importers.import_edges import EdgeOptions, import_edges
    from rtgauge_ext.instrument.messages import Edges

    if edge.upper() not in Edges.__members__:
        raise InputError(f"--edges must be both, rising or falling, not '{edge}'")
    check_requirement(require)
    period_ns = None if period is None else duration_option("--period", period)
    options = EdgeOptions(
        stimulus,
        answer,
        period_ns,
        Edges[edge.upper()],
        any_edge,
    )
    with _file_progress(f"reading {file.name}") as progress:
        path = import_edges(file, out, options, command=["rtgauge", *sys.argv[1:]], progress=progress)
    raise typer.Exit(
        finish(path, with_requirement(Record.open(path).run, require), as_json=json, details=details)
    )


@contextmanager
def _file_progress(text: str) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar for reading a file, if standard error is a terminal.

    Yields a function that takes the bytes read so far and the size of the file.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    from rtgauge.cli.console import Console

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeRemainingColumn())
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield lambda _read_bytes, _size: None  # a disabled bar of rich before 14 prints an empty line
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(Text(text).plain, total=None)
        yield lambda read_bytes, size: bar.update(task, completed=read_bytes, total=size)
