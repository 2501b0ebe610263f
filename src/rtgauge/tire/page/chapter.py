# SPDX-License-Identifier: MIT
"""The chapter in the paper's order: paragraphs, figures and tables of each system, load and deployment."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rtgauge.tire.analysis.results import tire_results
from rtgauge.tire.analysis.runs import is_tire
from rtgauge.tire.analysis.searches import searched
from rtgauge.tire.page import prose, result_tables
from rtgauge.tire.page.cost_figures import frontier_figure, model_figure
from rtgauge.tire.page.map_figures import hard_figure, soft_figure
from rtgauge.tire.page.speed_figures import threads_figure, time_figure

if TYPE_CHECKING:
    from collections.abc import Container

    from rtgauge.record.reader import Record
    from rtgauge.report.figures.vega import Figure
    from rtgauge.report.table import Table
    from rtgauge.tire.analysis.results import TireResults

FEW = 12
"""So many configurations are shown; more are folded away."""


@dataclass(frozen=True)
class Section:
    """A part of the chapter: paragraphs, then figures by name, then tables."""

    title: str
    words: list[str] = field(default_factory=list[str])
    figures: list[str] = field(default_factory=list[str])
    tables: list[Table] = field(default_factory=list["Table"])

    @property
    def empty(self) -> bool:
        """Nothing to show."""
        return not (self.words or self.figures or self.tables)


@dataclass(frozen=True)
class Chapter:
    """One system. `title`: what tells it from the record's other ones, empty if it is alone."""

    title: str
    results: TireResults
    sections: list[Section]


def results_of(record: Record) -> list[TireResults]:
    """Everything that the record says of the tire; none where it was not run. Raises RecordError."""
    return tire_results(record, searched(record)) if any(is_tire(step) for step in record.steps) else []


def _suffixes(every: list[TireResults]) -> list[str]:
    return [""] if len(every) == 1 else [f"-{number}" for number in range(1, len(every) + 1)]


def figures_of(every: list[TireResults]) -> list[Figure]:
    """All figures, in order; with several systems each figure's name and title say which."""
    figures: list[Figure] = []
    for results, suffix in zip(every, _suffixes(every), strict=True):
        drawn = [
            make(results, suffix)
            for make in (time_figure, threads_figure, hard_figure, soft_figure, frontier_figure, model_figure)
        ]
        figures += [
            figure if not suffix else replace(figure, title=f"{figure.title}, {_title(results)}")
            for figure in drawn
            if figure is not None
        ]
    return figures


def _title(results: TireResults) -> str:
    return ", ".join(
        part
        for part in (results.name, results.load, "" if results.deployment == "as-is" else results.deployment)
        if part
    )


def _speed_section(results: TireResults, names: list[str]) -> Section:
    few = len(results.points) <= FEW
    shown = results.points if few else result_tables.largest_points(results)
    table = result_tables.speed_grid(results, shown, "Real-fast" if few else "The largest tire of each")
    every = (
        None if few else result_tables.speed_grid(results, results.points, "Every configuration, real-fast")
    )
    tables = [*([table] if table else []), *([replace(every, folded=True)] if every else [])]
    return Section("Real-fast", prose.fast_words(results), names, tables)


def _cost_section(results: TireResults, names: list[str]) -> Section:
    tables = (
        result_tables.cost_grid(results),
        result_tables.synchronisation_grid(results),
        result_tables.lines_grid(results),
    )
    known = [table for table in tables if table is not None]
    return Section("The cost of a step", prose.cost_words(results), names, known)


def _sections(results: TireResults, drawn: Container[str], suffix: str) -> list[Section]:
    def here(*names: str) -> list[str]:
        return [name + suffix for name in names if name + suffix in drawn]

    cells = result_tables.cells_grids(results)
    few = sum(len(grid.rows) for grid in cells) <= FEW
    real_time = Section(
        "Real-time",
        prose.real_time_words(results),
        here("tire-hard", "tire-soft"),
        [replace(table, folded=not few) for table in cells],
    )
    frontier = result_tables.frontier_grid(results)
    frontier_section = Section(
        "How large may it be?",
        prose.search_words(results),
        here("tire-frontier"),
        [frontier] if frontier is not None else [],
    )
    every = [
        Section("The model and the solvers", prose.model_words(results)),
        _speed_section(results, here("tire-time", "tire-threads")),
        real_time,
        frontier_section,
        _cost_section(results, here("tire-model")),
    ]
    return [section for section in every if not section.empty]


def chapters(record: Record, drawn: Container[str]) -> list[Chapter]:
    """A chapter for each system; `drawn`: the names of the figures that the page has."""
    every = results_of(record)
    return [
        Chapter(_title(results) if len(every) > 1 else "", results, _sections(results, drawn, suffix))
        for results, suffix in zip(every, _suffixes(every), strict=True)
    ]
