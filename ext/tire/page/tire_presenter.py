# SPDX-License-Identifier: MIT
"""Presents the tire in a chapter in the paper's order, with figures and tables for each system."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.console import Console

from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.report.figures.vega import Figure
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import whole
from rtgauge.units import plural
from rtgauge_ext.tire.analysis.frontier_search import Frontier
from rtgauge_ext.tire.analysis.runs import is_tire
from rtgauge_ext.tire.analysis.searches import searched
from rtgauge_ext.tire.analysis.tire_results import FrontierPlace, TireResults, tire_results
from rtgauge_ext.tire.page import result_tables
from rtgauge_ext.tire.page.map_figures import map_figure
from rtgauge_ext.tire.page.step_table import steps_in_short, terminal_grids, tire_grid
from rtgauge_ext.tire.page.time_figures import frontier_figure, model_figure, threads_figure, time_figure
from rtgauge_ext.tire.page.tire_labels import period_name, policy_name, threads_name

FEW = 12
"""If a system has more configurations than this, they are folded."""


@dataclass(frozen=True)
class Section:
    """A part of the chapter: the names of figures, then tables."""

    title: str
    figures: list[str]
    tables: list[Table]


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
            for make in (time_figure, threads_figure, map_figure, frontier_figure, model_figure)
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
    return Section("Real-fast", names, tables)


def _sections(results: TireResults, drawn: Container[str], suffix: str) -> list[Section]:
    def here(*names: str) -> list[str]:
        return [name + suffix for name in names if name + suffix in drawn]

    cells = result_tables.cells_grids(results)
    few = sum(len(grid.rows) for grid in cells) <= FEW
    maps = [replace(table, folded=not few) for table in cells]
    frontier = result_tables.frontier_grid(results)
    costs = (result_tables.cost_grid(results), result_tables.synchronisation_grid(results))
    every = [
        _speed_section(results, here("tire-time", "tire-threads")),
        Section("Real-time", here("tire-map"), maps),
        Section("How large may it be?", here("tire-frontier"), [] if frontier is None else [frontier]),
        Section("The cost of a step", here("tire-model"), [table for table in costs if table is not None]),
    ]
    return [section for section in every if section.figures or section.tables]


def chapters(record: Record, drawn: Container[str]) -> list[SystemChapter]:
    """Return a chapter for each system. `drawn`: the names of the page's figures."""
    every = results_of(record)
    return [
        SystemChapter(_title(results) if len(every) > 1 else "", results, _sections(results, drawn, suffix))
        for results, suffix in zip(every, _suffixes(every), strict=True)
    ]


@dataclass(frozen=True)
class TireContent:
    """The content for the template: the number of steps, and the systems' chapters."""

    steps: int
    systems: list[SystemChapter]


class _Largest(NamedTuple):
    """The largest tire with which a search met every deadline."""

    nodes: int
    results: TireResults
    place: FrontierPlace
    frontier: Frontier


def _largest(view: RecordView) -> _Largest | None:
    """Return the largest tire that a search found; None if there is none."""
    searched = [
        (results, row.place, row.searched)
        for results in results_of(view.record)
        for row in results.frontiers
        if row.searched is not None
    ]
    held = [
        _Largest(frontier.nodes, results, place, frontier)
        for results, place, frontier in searched
        if frontier.nodes is not None
    ]
    return max(held, key=lambda each: each.nodes, default=None)


def _search_words(largest: _Largest) -> str:
    """Return, in words, which tire was found, and how certain it is."""
    nodes, results, place, frontier = largest
    threads, period = threads_name(place.threads, results), period_name(place.period_ns)
    where = f"{place.solver} on {threads}, {policy_name(place.policy)}, a step every {period}"
    runs = f"{plural(frontier.runs, 'run')} with {plural(frontier.deadlines, 'deadline')}, none missed"
    ends = f"ended between {whole(frontier.low)} and {whole(frontier.high)}"
    smaller = frontier.misses is not None and frontier.misses < nodes
    late = f". But a run of {whole(frontier.misses)} nodes missed a deadline"
    doubt = f"{late}, so this machine may be late at any size" if smaller else ""
    size = f"{'at least ' if frontier.at_limit else ''}{whole(nodes)} nodes"
    return f"{where}: {size} ({runs}; {plural(frontier.bisections, 'bisection')} {ends}){doubt}"


class TirePresenter(Presenter):
    """Presents the tire as section 4 of Garre et al. (2014) does."""

    def headline(self, view: RecordView) -> str | None:
        """Return how large the tire may be; None without a search that found a size."""
        largest = _largest(view)
        return None if largest is None else f"{whole(largest.nodes)} nodes in real time"

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:
        """Return the largest tire that a search found, or else the missed deadlines or the speed."""
        largest = _largest(view)
        if largest is None:
            return steps_in_short(steps)
        return f"the largest tire that meets every deadline: {_search_words(largest)}"

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - of every presenter
        """Return the figures of every system."""
        return figures_of(results_of(view.record))

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:
        """Return the systems."""
        content = TireContent(len(steps), chapters(view.record, drawn))
        return Chapter(
            "tire",
            "The tire: a physical simulation",
            content,
            "a simulation",
            "rtgauge_ext.tire.page/chapter.html.j2",
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
