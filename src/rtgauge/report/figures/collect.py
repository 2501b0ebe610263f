# SPDX-License-Identifier: MIT
"""All figures of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.report.figures.course import course_figure
from rtgauge.report.figures.exceedance import exceedance_figure
from rtgauge.report.figures.histogram import histogram
from rtgauge.report.figures.spread import spread_figure
from rtgauge.report.presenter import presenters

if TYPE_CHECKING:
    from rtgauge.report.figures.figure import Figure
    from rtgauge.report.figures.source import Source


def figures(source: Source) -> dict[str, Figure]:
    """Name -> figure, in the page's order; those that the record has nothing for are absent."""
    drawn = [spread_figure(source), histogram(source), exceedance_figure(source), course_figure(source)]
    for presenter, steps in presenters(source.whole.steps):
        drawn += presenter.figures(source.whole, steps)
    return {figure.name: figure for figure in drawn if figure is not None}
