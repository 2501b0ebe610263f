# SPDX-License-Identifier: MIT
"""`rtgauge show --frequency` computes from measured latencies how often a task can run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rtgauge.errors import InputError

if TYPE_CHECKING:
    from rtgauge.analysis.frequency import Options
    from rtgauge.record.reader import Record


def show_frequency(
    records: Sequence[Record], options: Options, page: Path | None, figures: Path | None, *, json: bool
) -> None:
    """Print the highest frequency at which a task can run, and write a page and figures.

    At that frequency the measured latency stays within a fraction of the period, for 95 % and for 100 % of
    the samples. These are the tables and figures of Brown & Martin (2010), for wakeup, response and periodic
    steps of any records. Raises InputError if there is no such step.
    """
    from rich.text import Text

    from rtgauge.analysis.frequency import FrequencyDocument, gather
    from rtgauge.analysis.sustained import curves
    from rtgauge.cli.console import Console
    from rtgauge.report.compare.page import timing_chapter, write
    from rtgauge.report.terminal_table import print_tables
    from rtgauge.report.text import printable
    from rtgauge.report.timing_tables import timing_grids, timing_sentences

    frequencies, searched = gather(records, options), curves(records)
    if not frequencies and not searched:
        names = ", ".join(str(record.path) for record in records)
        raise InputError(
            f"{names}: wakeup, response or periodic was not measured to the end; measure one of them, e.g. "
            "with: rtgauge run quick"
        )
    if json:
        typer.echo(FrequencyDocument(tables=frequencies, sustained=searched).model_dump_json(indent=1))
    else:
        console = Console()
        for sentence in timing_sentences(frequencies, searched):
            console.print(Text(printable(f"{sentence}."), style="bold"))
        console.print()
        print_tables(timing_grids(records, frequencies, searched), console)
    if page is not None or figures is not None:
        write(
            [timing_chapter(records, frequencies)],
            records,
            page=page,
            figures=figures,
            say=lambda line: typer.echo(line, err=json),
            title="How often can a task run?",
        )
