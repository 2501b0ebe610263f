# SPDX-License-Identifier: MIT
"""Draws all figures of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rtgauge.analysis.frequency import Gathered, gather
from rtgauge.analysis.sustained import Curve, curves
from rtgauge.record.reader import Record
from rtgauge.report.fact_rows import system_lines
from rtgauge.report.figure_data import Source
from rtgauge.report.figures.course import course_figure
from rtgauge.report.figures.exceedance import exceedance_figure
from rtgauge.report.figures.files import FORMATS, write_figures
from rtgauge.report.figures.histogram import histogram
from rtgauge.report.figures.spread import spread_figure
from rtgauge.report.figures.timing import timing_figures
from rtgauge.report.figures.vega import Figure
from rtgauge.report.frequency_tables import Timing
from rtgauge.report.presenter import presenters
from rtgauge.report.record_view import RecordView


def figures(source: Source) -> dict[str, Figure]:
    """Return the figures that have data, by name, in the page's order."""
    several = len(source.conditions) > 1  # a single condition would only be one bar
    drawn = [spread_figure(source) if several else None, histogram(source)]
    drawn += [exceedance_figure(source), course_figure(source)]
    for presenter, steps in presenters(source.whole.steps):
        drawn += presenter.figures(source.whole, steps)
    return {figure.name: figure for figure in drawn if figure is not None}


@dataclass(frozen=True)
class Drawn:
    """The figures of a record by name, and the data behind them."""

    source: Source
    gathered: list[Gathered]
    curves: list[Curve]
    timing: list[Figure]
    """The figures of frequencies and of searches over the period."""
    figures: dict[str, Figure]
    """All figures in the page's order, with `timing` last."""

    @classmethod
    def of(cls, record: Record, timing: Timing | None = None) -> Drawn:
        """Draw the figures. Raises RecordError for a damaged record."""
        source, timing = Source.of(RecordView(record)), timing or Timing()
        gathered, searched = gather([record], timing.options), curves([record])
        more = timing_figures(gathered, timing.markers, searched)
        return cls(
            source, gathered, searched, more, figures(source) | {figure.name: figure for figure in more}
        )


def save_figures(
    record: Record, folder: Path, formats: Sequence[str] = FORMATS, drawn: Drawn | None = None
) -> list[Path]:
    """Write every figure of the record into `folder`; return the files.

    `drawn`: the figures, if they are already drawn. Raises as `write_figures` does.
    """
    drawn = drawn or Drawn.of(record)
    subtitle = "\n".join(system_lines(record))
    return write_figures(drawn.figures.values(), folder, subtitle, formats, len(drawn.source.cpus))
