# SPDX-License-Identifier: MIT
"""`rtgauge report`: the page and figure files of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import Fraction, Marker


def report(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="Folder of a record, or latest.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="Page to write; default: report.html in the record.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF to this folder.")] = None,
    fraction: Fraction = "0.5",
    marker: Marker = None,
) -> None:
    """Write the HTML page of a record.

    One file that needs no network.

    \b
    Examples:
      rtgauge report rtgauge-runs/2026-11-21T10-03-22Z-pc-quick-7f3a \\
          -o page.html --figures figures
      rtgauge report RECORD --fraction 25% --marker "CAN frame=130us"
    """
    from rtgauge.cli.options import timing
    from rtgauge.cli.record_argument import open_record
    from rtgauge.report.figures.save import save_figures
    from rtgauge.report.page import render

    timing_options = timing(fraction, marker)
    opened = open_record(record)
    page = out if out is not None else opened.path / "report.html"
    render(opened, page, timing_options)
    typer.echo(f"page     {page}")
    if figures is not None:
        for path in save_figures(opened, figures, timing=timing_options):
            typer.echo(f"figure   {path}")
