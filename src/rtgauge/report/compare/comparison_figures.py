# SPDX-License-Identifier: MIT
"""Draws the figures of a comparison: exceedance curves and factors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rtgauge.analysis.comparison_document import QuantileDifference
from rtgauge.analysis.sides import Side
from rtgauge.record.reader import Record
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.figure_data import CpuHistograms
from rtgauge.report.figures.exceedance import named_chart
from rtgauge.report.figures.factors import Factor, factors_figure
from rtgauge.report.figures.vega import Figure
from rtgauge.report.table import applying


def _exceedance(sides: Sequence[Side]) -> Figure | None:
    drawn = {side.label: CpuHistograms(side.histogram, max_ns=side.filled.max_ns) for side in sides}
    chart = named_chart(drawn, sides[0].quantity)
    return None if chart is None else Figure.described("exceedances", "Exceedance", {"": chart}, [])


def _factors(quantiles: Sequence[QuantileDifference]) -> Figure | None:
    known = [
        row for row in quantiles if row.difference_ns is not None and row.side_ns > 0 and row.baseline_ns > 0
    ]
    several = len({(row.side, row.baseline) for row in known}) > 1
    rows: list[Factor] = []
    for row in known:
        base = row.baseline_ns
        runs = zip(row.side_runs_ns, row.baseline_runs_ns, strict=True) if row.paired else ()
        tested = row.p_different is not None
        rows.append(
            Factor(
                f"{row.side}, {row.quantile}" if several else row.quantile,
                row.side_ns / base,
                [ours / theirs for ours, theirs in runs if ours > 0 < theirs],
                1 + row.low_ns / base if tested and row.low_ns is not None else None,
                1 + row.high_ns / base if tested and row.high_ns is not None else None,
                (base, row.side_ns),
            )
        )
    of = known[0] if known and not several else None
    title = "side / baseline" if of is None else f"{of.side} / {of.baseline}"
    notes = applying(
        (any(row.runs for row in rows), "Each ring is a pair of runs."),
        (
            any((row.low, row.high) != (None, None) for row in rows),
            "Each bar shows the confidence interval of the difference, divided by the baseline's value.",
        ),
    )
    return factors_figure(rows, title, notes)


def comparison_figures(
    sides: Sequence[Side], part: str = "", quantiles: Sequence[QuantileDifference] = ()
) -> list[Figure]:
    """Return the figures of the chapter with the title `part`; empty if every side is empty."""
    filled = [side for side in sides if side.filled.count]
    drawn = (_factors(quantiles), _exceedance(filled) if filled else None)
    return [_of_part(figure, part) for figure in drawn if figure is not None]


def _of_part(figure: Figure, title: str) -> Figure:
    """Return the figure with the chapter's title in its name and title: "task-switch-exceedances"."""
    if not title:
        return figure
    word = re.sub(r"[^\w]+", "-", title.lower()).strip("-")
    return replace(
        figure, name=f"{word}-{figure.name}", title=f"{title}: {figure.title[:1].lower()}{figure.title[1:]}"
    )


def lines_of_all(records: Iterable[Record]) -> list[str]:
    """Return the system line of every target of the records, without duplicates."""
    return list(dict.fromkeys(line for record in records for line in system_lines(record)))
