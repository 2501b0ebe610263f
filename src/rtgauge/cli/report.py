# SPDX-License-Identifier: MIT
"""`rtgauge report` writes the page and figure files of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import AllowLeftOut, Fraction, Marker, RecordArgument, Require, timing


def report(
    record: RecordArgument,
    require: Require = None,
    allow_left_out: AllowLeftOut = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE.html", help="Page to write; default: report.html in the record."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF to this folder."),
    ] = None,
    fraction: Fraction = "0.5",
    marker: Marker = None,
) -> None:
    """Write the HTML page of a record.

    The page is one file that needs no network. The first line printed is the conclusion.

    \b
    Examples:
      rtgauge report latest
      rtgauge report RECORD -o page.html --figures figures
      rtgauge report RECORD --require "latency<=200us" -o strict.html
      rtgauge report RECORD --fraction 25% --marker "CAN frame=130us"
    """
    from rtgauge.cli.conclusion import judged
    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record
    from rtgauge.report.fact_rows import system_lines
    from rtgauge.report.figures.files import write_figures
    from rtgauge.report.page import Drawn, render
    from rtgauge.report.terminal import print_conclusion

    timing_options = timing(fraction, marker)
    opened = judged(open_record(record), require, allow_left_out=allow_left_out)
    drawn = Drawn.of(opened, timing_options)
    page = render(opened, out, drawn=drawn)
    print_conclusion(opened, Console())
    typer.echo(f"page     {page}")
    if figures is not None:
        subtitle = "\n".join(system_lines(opened))
        drawings = drawn.figures.values()
        for path in write_figures(drawings, figures, subtitle, cpus=len(drawn.source.cpus)):
            typer.echo(f"figure   {path}")
