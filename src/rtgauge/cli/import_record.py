# SPDX-License-Identifier: MIT
"""`rtgauge import`: makes records of other tools' measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import Json, Require

HELP = """Import another tool's measurement as a record.

\b
Examples:
  rtgauge import cyclictest old.txt
  rtgauge import edges scope.csv --stimulus 1 --answer 2
"""

app = typer.Typer(help=HELP)


@app.callback()
def _imports() -> None:  # pyright: ignore[reportUnusedFunction]
    """Import another tool's measurement as a record."""


@app.command("cyclictest")
def cyclictest(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Output of cyclictest: text of -h, -H or --histfile, or --json.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for records.")] = Path("rtgauge-runs"),
    interval: Annotated[str | None, typer.Option(metavar="TIME", help="cyclictest's -i, if the file does not contain it, e.g. 200us.")] = None,
    nanoseconds: Annotated[bool, typer.Option("--ns", help="Latencies in the file are in ns (cyclictest -N), not us.")] = False,
    require: Require = None,
) -> None:
    """Import a cyclictest measurement.

    \b
    Example:
      cyclictest -m -p 98 -a -t -i 1000 -l 100000 -q -h 400 > old.txt
      rtgauge import cyclictest old.txt --interval 1ms
    """
    from rtgauge.cli.conclusion import check_requirement, finish, with_requirement
    from rtgauge.cli.options import duration_option
    from rtgauge.errors import InputError
    from rtgauge.importers.import_cyclictest import import_cyclictest
    from rtgauge.record.reader import Record

    check_requirement(require)
    interval_ns = None if interval is None else duration_option("--interval", interval)
    if interval_ns == 0:
        raise InputError("--interval must be longer than 0, e.g. 1ms or 100us")
    path = import_cyclictest(file, out, interval_ns=interval_ns, unit_ns=1 if nanoseconds else None)
    raise typer.Exit(finish(path, with_requirement(Record.open(path).run, require), as_json=False))


@app.command("edges")
def edges(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV of an oscilloscope or a logic analyser, or VCD.")],
    stimulus: Annotated[
        str, typer.Option("--stimulus", metavar="CHANNEL", help="Channel of the stimulus, or of the line that is toggled: its name, or its number from 1 on.")
    ],
    answer: Annotated[str | None, typer.Option("--answer", metavar="CHANNEL", help="Channel of the answer: measures from stimulus to answer.")] = None,
    period: Annotated[str | None, typer.Option("--period", metavar="TIME", help="Nominal period of the line, e.g. 30ms: measures its half-periods.")] = None,
    edge: Annotated[str, typer.Option("--edges", metavar="both|rising|falling", help="Edges that are stimuli, or whose distances are measured.")] = "both",
    any_edge: Annotated[bool, typer.Option("--any-edge", help="Any edge answers, not only one to the level of the stimulus.")] = False,
    threshold: Annotated[float | None, typer.Option(metavar="VOLTS", help="Level of an edge. [default: halfway between the least and the largest]")] = None,
    hysteresis: Annotated[
        float | None, typer.Option(metavar="VOLTS", help="Distance of the two levels that an edge has to pass. [default: a fifth of the swing]")
    ] = None,
    time_unit: Annotated[str | None, typer.Option("--time-unit", metavar="s|ms|us|ns", help="Unit of the times, where the file does not say it.")] = None,
    sample_rate: Annotated[float | None, typer.Option("--sample-rate", metavar="HZ", help="Samples a second, where the file does not say it.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for records.")] = Path("rtgauge-runs"),
    require: Require = None,
    json: Json = False,
) -> None:
    """Import the edges in a file of an oscilloscope or a logic analyser.

    CSV as Tektronix, Rigol, Keysight, PicoScope, Saleae, sigrok and PulseView write it, and VCD; of any size.

    \b
    Examples:
      rtgauge import edges scope.csv --stimulus 1 --answer 2
      rtgauge import edges capture.vcd --stimulus D0 --answer D1 --edges rising
      rtgauge import edges scope.csv --stimulus CH1 --period 30ms
    """
    import sys

    from rtgauge.cli.conclusion import check_requirement, finish, with_requirement
    from rtgauge.cli.options import duration_option
    from rtgauge.cli.progress_display import file_progress
    from rtgauge.errors import InputError
    from rtgauge.importers.import_edges import EdgeOptions, import_edges
    from rtgauge.instrument.messages import Edges
    from rtgauge.record.reader import Record

    if edge.upper() not in Edges.__members__:
        raise InputError(f"--edges '{edge}' is none of both, rising and falling")
    check_requirement(require)
    period_ns = None if period is None else duration_option("--period", period)
    options = EdgeOptions(stimulus, answer, period_ns, Edges[edge.upper()], any_edge, threshold, hysteresis, time_unit, sample_rate)
    with file_progress(f"reading {file.name}") as progress:
        path = import_edges(file, out, options, command=["rtgauge", *sys.argv[1:]], progress=progress)
    raise typer.Exit(finish(path, with_requirement(Record.open(path).run, require), as_json=json))
