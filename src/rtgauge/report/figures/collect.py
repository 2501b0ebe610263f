# SPDX-License-Identifier: MIT
"""All figures of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.report.figures.course import course_figure
from rtgauge.report.figures.exceedance import exceedance_figure
from rtgauge.report.figures.histogram import histogram
from rtgauge.report.figures.spread import spread_figure
from rtgauge.schedulability.page.measured_figure import measured_figure
from rtgauge.tire.page.chapter import figures_of, results_of

if TYPE_CHECKING:
    from rtgauge.report.figures.response_parts import Figure
    from rtgauge.report.figures.source import Source


def figures(source: Source) -> dict[str, Figure]:
    """Name -> figure, in the page's order; those that the record has nothing for are absent."""
    drawn = [spread_figure(source), histogram(source), exceedance_figure(source), course_figure(source)]
    drawn += [measured_figure(step) for step in source.record.steps if step.segments]
    drawn += figures_of(results_of(source.whole))
    return {figure.name: figure for figure in drawn if figure is not None}
