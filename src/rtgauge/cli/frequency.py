# SPDX-License-Identifier: MIT
"""`rtgauge frequency`: how often a task can run, by what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import Fraction, Marker


def frequency(
    records: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Folders of records with wakeup, response or periodic steps.")],
    fraction: Fraction = "0.5",
    confidence: Annotated[float, typer.Option(metavar="P", help="Of each one-sided bound.")] = 0.95,
    marker: Marker = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="Also write a page with the figures.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF into this folder.")] = None,
) -> None:
    """The highest frequency at which what was measured stays within a part of the period, for 95 % and for 100 % of the samples.

    The tables and figures of Brown & Martin (2010), for wakeup, response and periodic steps of any records.

    \b
    Examples:
      rtgauge frequency RECORD
      rtgauge frequency STOCK RT --fraction 25%
          two kernels; a quarter of a period may be lost
      rtgauge frequency RECORD -o often.html --marker "CAN frame=130us"
          with the figures, and a time of your own in them
    """
    from rtgauge.analysis.frequency import gather
    from rtgauge.analysis.sustained import curves
    from rtgauge.analysis.timing_document import FrequencyDocument
    from rtgauge.cli.options import timing
    from rtgauge.errors import InputError
    from rtgauge.record.reader import Record
    from rtgauge.report.frequency_tables import grids

    asked = timing(fraction, marker, confidence)
    opened = [Record.open(record) for record in records]
    found, searched = gather(opened, asked.options), curves(opened)
    if not found and not searched:
        names = ", ".join(str(record) for record in records)
        raise InputError(f"{names}: no finished step of wakeup, response or periodic; measure one, like: rtgauge run quick")
    if json:
        typer.echo(FrequencyDocument(tables=[one.table for one in found], sustained=searched).model_dump_json(indent=1))
    else:
        from rich.console import Console

        from rtgauge.report import response_tables, sustained_tables
        from rtgauge.report.compare.terminal import print_grids

        console = Console()
        print_grids([*grids([one.table for one in found]), *response_tables.terminal_grids(opened, console.width), *sustained_tables.grids(searched)], console)
    if out is not None or figures is not None:
        from rtgauge.report.compare.chapters import timing_chapter
        from rtgauge.report.compare.files import write

        write([timing_chapter(opened, found, asked.markers)], opened, page=out, figures=figures, say=lambda line: typer.echo(line, err=json))
