# SPDX-License-Identifier: MIT
"""Shows how often a task can run: for `rtgauge show --frequency`, and on every page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from rtgauge.errors import InputError
from rtgauge.report.how_often import Frequencies, HowOften

if TYPE_CHECKING:
    from rtgauge.record.reader import Record
    from rtgauge_ext.papers.frequency.frequency import FrequencyTable
    from rtgauge_ext.papers.frequency.frequency_options import FrequencyOptions
    from rtgauge_ext.papers.frequency.sustained import SustainedCurve


def show(
    records: Sequence[Record],
    options: FrequencyOptions,
    page: Path | None,
    figures: Path | None,
    *,
    json: bool,
) -> None:
    """Print the highest frequency at which a task can run, and write a page and figures.

    At that frequency the measured latency stays within a fraction of the period, for 95 % and for 100 % of
    the samples. These are the tables and figures of Brown & Martin (2010), for wakeup, response and periodic
    steps of any records. Raises InputError if there is no such step.
    """
    from rich.text import Text

    from rtgauge.cli.console import Console
    from rtgauge.report.compare.comparison_page import timing_chapter, write
    from rtgauge.report.terminal_table import print_tables
    from rtgauge.report.text import printable
    from rtgauge_ext.papers.frequency.frequency import FrequencyDocument, gather
    from rtgauge_ext.papers.frequency.sustained import curves

    frequencies, searched = gather(records, options), curves(records)
    if not frequencies and not searched:
        names = ", ".join(str(record.path) for record in records)
        raise InputError(
            f"{names}: wakeup, response or periodic was not measured to the end; measure one of them, e.g. "
            "with: rtgauge run quick"
        )
    how_often = _made(records, frequencies, searched)
    if json:
        typer.echo(FrequencyDocument(tables=frequencies, sustained=searched).model_dump_json(indent=1))
    else:
        console = Console()
        for sentence in how_often.sentences:
            console.print(Text(printable(f"{sentence}."), style="bold"))
        console.print()
        print_tables(how_often.tables, console)
    if page is not None or figures is not None:
        write(
            [timing_chapter(how_often)],
            records,
            page=page,
            figures=figures,
            notify=lambda line: typer.echo(line, err=json),
            title="How often can a task run?",
        )


def _made(
    records: Sequence[Record], tables: Sequence[FrequencyTable], curves: Sequence[SustainedCurve]
) -> HowOften:
    from rtgauge_ext.papers.frequency.figures import timing_figures
    from rtgauge_ext.papers.frequency.frequency_tables import timing_grids, timing_sentences

    return HowOften(
        timing_grids(records, tables, curves),
        timing_figures(tables, curves),
        timing_sentences(tables, curves),
    )


def _calculate(records: Sequence[Record], options: object | None) -> HowOften:
    from rtgauge_ext.papers.frequency.frequency import gather
    from rtgauge_ext.papers.frequency.sustained import curves

    chosen = cast("FrequencyOptions | None", options)
    return _made(records, gather(records, chosen), curves(records))


def _searches(record: Record) -> list[str]:
    from rtgauge_ext.papers.frequency.frequency_tables import sustained_sentence
    from rtgauge_ext.papers.frequency.sustained import curves

    return [sustained_sentence(curve) for curve in curves([record])]


FREQUENCIES = Frequencies(_calculate, _searches)
