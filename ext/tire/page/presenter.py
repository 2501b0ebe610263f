# SPDX-License-Identifier: MIT
"""Presents the tire in a chapter in the paper's order, with figures and tables for each system."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console

from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.report.figures.vega import Figure
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import whole
from rtgauge_ext.tire.analysis.results import FrontierRow, TireResults, tire_results
from rtgauge_ext.tire.analysis.runs import is_tire
from rtgauge_ext.tire.analysis.searches import searched
from rtgauge_ext.tire.page import prose, result_tables
from rtgauge_ext.tire.page.map_figures import Drop, drop_of, hard_figure, soft_figure
from rtgauge_ext.tire.page.step_table import steps_in_short, terminal_grids, tire_grid
from rtgauge_ext.tire.page.time_figures import frontier_figure, model_figure, threads_figure, time_figure

FEW = 12
"""If a system has more configurations than this, they are folded."""


@dataclass(frozen=True)
class Section:
    """A part of the chapter: paragraphs, then the names of figures, then tables."""

    title: str
    words: list[str] = field(default_factory=list[str])
    figures: list[str] = field(default_factory=list[str])
    tables: list[Table] = field(default_factory=list["Table"])

    @property
    def empty(self) -> bool:
        """Whether the section has nothing to show."""
        return not (self.words or self.figures or self.tables)


@dataclass(frozen=True)
class SystemChapter:
    """One system. `title`: what distinguishes it in the record; empty if there is no other system."""

    title: str
    results: TireResults
    sections: list[Section]


def results_of(record: Record) -> list[TireResults]:
    """Return the tire's results in a record, if any. Raises RecordError for a damaged record."""
    return tire_results(record, searched(record)) if any(is_tire(step) for step in record.steps) else []


def _suffixes(every: list[TireResults]) -> list[str]:
    return [""] if len(every) == 1 else [f"-{number}" for number in range(1, len(every) + 1)]


def figures_of(every: list[TireResults]) -> list[Figure]:
    """Return all figures in order. If there are several systems, names and titles contain the system."""
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
    deployment = "" if results.deployment == "as-is" else results.deployment
    return ", ".join(part for part in (results.name, results.load, deployment) if part)


def _speed_section(results: TireResults, names: list[str]) -> Section:
    few = len(results.points) <= FEW
    shown = results.points if few else result_tables.largest_points(results)
    table = result_tables.speed_grid(
        results, shown, "Real-fast" if few else "The largest tire of each configuration"
    )
    tables = [table] if table else []
    if not few and (
        every := result_tables.speed_grid(results, results.points, "Every configuration, real-fast")
    ):
        tables.append(replace(every, folded=True))
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
    maps = [replace(table, folded=not few) for table in cells]
    frontier = result_tables.frontier_grid(results)
    largest = [frontier] if frontier is not None else []
    every = [
        Section("The model and the solvers", prose.model_words(results)),
        _speed_section(results, here("tire-time", "tire-threads")),
        Section("Real-time", prose.real_time_words(results), here("tire-hard", "tire-soft"), maps),
        Section("How large may it be?", prose.search_words(results), here("tire-frontier"), largest),
        _cost_section(results, here("tire-model")),
    ]
    return [section for section in every if not section.empty]


def chapters(record: Record, drawn: Container[str]) -> list[SystemChapter]:
    """Return a chapter for each system. `drawn`: the names of the page's figures."""
    every = results_of(record)
    return [
        SystemChapter(_title(results) if len(every) > 1 else "", results, _sections(results, drawn, suffix))
        for results, suffix in zip(every, _suffixes(every), strict=True)
    ]


@dataclass(frozen=True)
class TireContent:
    """The content for the template: the number of steps, the fall, and the systems' chapters."""

    steps: int
    drop: Drop | None
    systems: list[SystemChapter]


def _largest(view: RecordView) -> tuple[int, TireResults, FrontierRow] | None:
    """Return the most nodes with which a search met every deadline, and where; None if there are none."""
    rows = [(results, row) for results in results_of(view.record) for row in results.frontiers]
    searched = [(results, row, row.searched.nodes) for results, row in rows if row.searched is not None]
    held = [(nodes, results, row) for results, row, nodes in searched if nodes is not None]
    return max(held, key=lambda triple: triple[0], default=None)


class TirePresenter(Presenter):
    """Presents the tire as section 4 of Garre et al. (2014) does."""

    def headline(self, view: RecordView) -> str | None:
        """Return how large the tire may be; None without a search that found a size."""
        largest = _largest(view)
        return None if largest is None else f"{whole(largest[0])} nodes in real time"

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """Return the largest tire that a search found, or else the missed deadlines or the speed."""
        largest = _largest(view)
        if largest is None:
            return steps_in_short(steps)
        _, results, row = largest
        (text,) = prose.search_words(results.model_copy(update={"frontiers": [row]}))
        return f"the largest tire that meets every deadline: {text.removesuffix('.')}"

    def results(self, view: RecordView) -> list[TireResults]:
        """Return the results of each system."""
        return results_of(view.record)

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - of every presenter
        """Return the figures of every system."""
        return figures_of(results_of(view.record))

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """Return the systems, and the fall if its states were kept."""
        drop = drop_of(view.record)
        content = TireContent(len(steps), drop, chapters(view.record, drawn))
        return Chapter(
            "tire",
            "The tire: a physical simulation",
            content,
            "a simulation",
            "rtgauge_ext.tire.page/chapter.html.j2",
            "first",
            {} if drop is None else {"drop": drop.as_data()},
        )

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print a line per step, or the study's tables if the summary folds the steps."""
        if view.is_folded(steps[0]):
            for results in results_of(view.record):
                print_tables(terminal_grids(results), console)
                console.print()
            return
        grid = tire_grid(steps)
        if grid is not None:
            print_tables([grid], console)
            console.print()


TIRE = TirePresenter()
