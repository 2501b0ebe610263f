# SPDX-License-Identifier: MIT
"""`rtgauge frequency` computes from measured latencies how often a task can run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rtgauge.cli.options import Fraction, Json, Marker, timing
from rtgauge.errors import InputError


def frequency(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD...", help="Records with wakeup, response or periodic steps, or latest."
        ),
    ],
    fraction: Fraction = "0.5",
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Confidence of each one-sided bound.")
    ] = 0.95,
    marker: Marker = None,
    json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.html", help="Also write a page with the figures."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write every figure as PNG, SVG and PDF to this folder."),
    ] = None,
) -> None:
    """Compute the highest frequency at which a task can run.

    At that frequency the measured latency stays within a fraction of the period, for 95 % and for 100 % of
    the samples. These are the tables and figures of Brown & Martin (2010), for wakeup, response and periodic
    steps of any records.

    \b
    Examples:
      rtgauge frequency RECORD
      rtgauge frequency STOCK RT --fraction 25%
          two kernels; the latency may take a quarter of the period
      rtgauge frequency RECORD -o frequency.html --marker "CAN frame=130us"
          figures that also mark a time of your own
    """
    from rich.text import Text

    from rtgauge.analysis.frequency import FrequencyDocument, gather
    from rtgauge.analysis.sustained import curves
    from rtgauge.cli.console import Console
    from rtgauge.cli.record_argument import open_record
    from rtgauge.report.compare.page import timing_chapter, write
    from rtgauge.report.terminal_table import print_tables
    from rtgauge.report.text import printable
    from rtgauge.report.timing_tables import timing_grids, timing_sentences

    timing_options = timing(fraction, marker, confidence)
    opened = [open_record(record) for record in records]
    frequencies, searched = gather(opened, timing_options.options), curves(opened)
    if not frequencies and not searched:
        names = ", ".join(str(record) for record in records)
        raise InputError(
            f"{names}: there is no finished wakeup, response or periodic step; measure one, e.g. with: "
            f"rtgauge run quick"
        )
    if json:
        typer.echo(
            FrequencyDocument(
                tables=[entry.table for entry in frequencies], sustained=searched
            ).model_dump_json(indent=1)
        )
    else:
        console = Console()
        for sentence in timing_sentences(frequencies, searched):
            console.print(Text(printable(f"{sentence}."), style="bold"))
        console.print()
        print_tables(timing_grids(opened, frequencies, searched), console)
    if out is not None or figures is not None:
        write(
            [timing_chapter(opened, frequencies, timing_options.markers)],
            opened,
            page=out,
            figures=figures,
            say=lambda line: typer.echo(line, err=json),
            title="How often can a task run?",
        )
