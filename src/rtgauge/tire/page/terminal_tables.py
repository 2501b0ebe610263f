# SPDX-License-Identifier: MIT
"""The chapter's tables for a terminal: the same numbers in fewer columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rtgauge.report.table import Column, Table, numbers, texts
from rtgauge.report.text import NONE, whole
from rtgauge.tire.page.labels import period_name, policy_name, solver_name
from rtgauge.tire.page.map_figures import map_title
from rtgauge.tire.page.result_tables import MARKED, cost_grid, interval, largest_points, short_note
from rtgauge.units import format_time, plural

if TYPE_CHECKING:
    from rtgauge.tire.analysis.results import FrontierRow, TireResults


def _speed(results: TireResults) -> Table | None:
    points = largest_points(results)
    if not points:
        return None
    doubtful = [point.worst_mark is not None and point.worst_mark.value != "note" for point in points]
    rows = [
        [
            (
                f"{solver_name(point.solver, free_running=point.free_running)}, "
                f"{policy_name(point.policy)}{'*' if star else ''}"
            ),
            str(point.threads),
            whole(point.nodes),
            format_time(point.step_ns.value),
            f"{point.node_steps_per_s / 1e6:,.1f}",
            interval(point.speed_up),
        ]
        for point, star in zip(points, doubtful, strict=True)
    ]
    columns = [*texts(""), *numbers("threads", "nodes", "step", "M node-steps/s", "speed-up")]
    notes = [
        *([short_note(results.too_short)] if results.too_short else []),
        *([MARKED] if any(doubtful) else []),
    ]
    return Table("Real-fast: the largest tire of each", columns, rows, notes)


def _maps(results: TireResults) -> Table | None:
    if not results.maps:
        return None
    rows = [
        [
            map_title(plot) if not at else "",
            str(edge.threads),
            "none" if edge.holds is None else whole(edge.holds),
            "none" if edge.misses is None else whole(edge.misses),
            whole(sum(cell.deadlines for cell in plot.cells if cell.threads == edge.threads)),
            whole(sum(cell.missed for cell in plot.cells if cell.threads == edge.threads)),
        ]
        for plot in results.maps
        for at, edge in enumerate(plot.frontier)
    ]
    notes = [
        (
            "holds: the largest n measured up to which every deadline was kept; misses: the smallest "
            "at which one was missed."
        )
    ]
    columns = [*texts(""), *numbers("threads", "holds", "misses", "deadlines", "missed")]
    return Table("Real-time", columns, rows, notes)


def _frontier_row(row: FrontierRow) -> list[str]:
    frontier = row.searched
    searched = [NONE, NONE, NONE, NONE]
    if frontier is not None:
        nodes = (
            "none"
            if frontier.nodes is None
            else f"{'≥ ' if frontier.at_limit else ''}{whole(frontier.nodes)}"
        )
        share = NONE if frontier.share_at_most is None else f"{frontier.share_at_most * 100:.2g} %"
        searched = [
            nodes,
            f"{whole(frontier.low)} … {whole(frontier.high)}",
            whole(frontier.deadlines),
            share,
        ]
    predicted = NONE if row.mean is None else whole(round(row.mean.value))
    return [
        f"{row.solver}, {policy_name(row.policy)}, {period_name(row.period_ns)}",
        str(row.threads),
        predicted,
        *searched,
    ]


def _frontier(results: TireResults) -> Table | None:
    rows = [_frontier_row(row) for row in results.frontiers if row.searched is not None]
    if not rows:
        return None
    frontier = next(row.searched for row in results.frontiers if row.searched is not None)
    sure = (
        f"between their ends is their median with {frontier.coverage * 100:.0f} % confidence"
        if frontier.coverage
        else "a single bisection has no interval"
    )
    notes = [
        "In nodes. holds: no run of it missed a deadline; missed at most: upper bound of the share at 95 %.",
        f"bisections: where {plural(frontier.bisections, 'bisection')} ended; {sure}.",
    ]
    columns = [
        *(*texts(""), *numbers("threads"), Column("predicted", "number", spare=1)),
        *(
            *numbers("holds", "bisections"),
            Column("deadlines", "number", spare=2),
            *numbers("missed at most"),
        ),
    ]
    return Table("The real-time frontier", columns, rows, notes)


def _cost(results: TireResults) -> Table | None:
    grid = cost_grid(results)
    if grid is None or not grid.rows:
        return None
    return replace(grid.only(lambda at: at < 4), title="The cost model (ns)", notes=grid.notes[:1])


def terminal_grids(results: TireResults) -> list[Table]:
    """What there is, in the chapter's order."""
    return [
        grid
        for grid in (_speed(results), _maps(results), _frontier(results), _cost(results))
        if grid is not None
    ]
