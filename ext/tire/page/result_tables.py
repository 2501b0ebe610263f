# SPDX-License-Identifier: MIT
"""Makes the chapter's tables. Page and terminal show the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.analysis.median_of_runs import FEW_RUNS, LEAST_RUNS
from rtgauge.record.marks import is_doubt
from rtgauge.record.model import Severity
from rtgauge.report.table import Table, numbers, ranked, texts
from rtgauge.report.text import NONE, whole
from rtgauge.units import format_time, plural, round_up
from rtgauge_ext.tire.analysis.cost_model import PAPER_NS, Term
from rtgauge_ext.tire.analysis.estimate import Estimate
from rtgauge_ext.tire.analysis.frontier_search import Frontier
from rtgauge_ext.tire.analysis.prediction import SpeedPoint
from rtgauge_ext.tire.analysis.tire_results import FrontierRow, TireResults
from rtgauge_ext.tire.page.map_figures import map_title
from rtgauge_ext.tire.page.tire_labels import (
    SIMULATED_S,
    SIMULATED_STEPS,
    period_name,
    policy_name,
    solver_name,
    threads_name,
)

MARKED = "* The step is marked doubtful or invalid, so read its figures with care."


def figure(value: float) -> str:
    """Return a number with three significant digits, without an exponent."""
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    digits = 1 if magnitude >= 10 else 2 if magnitude >= 0.1 or not value else 3
    return f"{value:.{digits}f}"


def interval(estimate: Estimate | None) -> str:
    """Return a value like "8.1 (7.9 to 8.3)", without brackets if it has no interval; a dash for None."""
    if estimate is None:
        return NONE
    if estimate.low is None or estimate.high is None:
        return figure(estimate.value)
    return f"{figure(estimate.value)} ({figure(estimate.low)} to {figure(estimate.high)})"


def _star(mark: Severity | None) -> str:
    return "*" if is_doubt(mark) else ""


def _speed_row(point: SpeedPoint, results: TireResults) -> list[str]:
    solver = solver_name(point.solver, free_running=point.free_running)
    return [
        f"{solver}, {policy_name(point.policy)}{_star(point.worst_mark)}",
        *(threads_name(point.threads, results), whole(point.nodes), format_time(point.step_ns.value)),
        figure(point.step_ns.value * SIMULATED_STEPS / 1e9),
        f"{point.node_steps_per_s / 1e6:,.1f}",
        *(interval(point.speed_up), interval(point.efficiency), interval(point.times_serial)),
        NONE if point.switches_per_step is None else figure(point.switches_per_step),
    ]


_SIMULATION = f"{SIMULATED_S} s of simulation (s)"
SPEED_COLUMNS = ranked(
    [
        *texts("", "threads"),
        *numbers("nodes", "step", _SIMULATION, "million node-steps/s", "speed-up"),
        *numbers("efficiency", "times serial", "switches per step"),
    ],
    *("switches per step", "times serial", "efficiency", "million node-steps/s", _SIMULATION, "speed-up"),
)


def speed_grid(results: TireResults, points: Sequence[SpeedPoint], title: str) -> Table | None:
    """Return step time, speed-up and efficiency of real-fast runs, with a row per configuration; None without
    runs.
    """
    if not points:
        return None
    notes = [
        (
            "step: the mean time of a step, in the median of the repeats. Brackets contain the 95 % interval "
            f"of a ratio of medians. It needs {LEAST_RUNS} repeats, and is much narrower from {FEW_RUNS} on. "
            "`times serial` is how many times as fast as the serial solver a run is, with the "
            "same number of nodes."
        )
    ]
    if results.too_short:
        left = f"{'it is' if results.too_short == 1 else 'they are'} left out"
        notes.append(
            f"{plural(results.too_short, 'run')} computed for less than a millisecond, which is too short to "
            f"give the time of a step, so {left}."
        )
    notes += [MARKED] if any(_star(point.worst_mark) for point in points) else []
    return Table(title, SPEED_COLUMNS, [_speed_row(point, results) for point in points], notes)


def largest_points(results: TireResults) -> list[SpeedPoint]:
    """Return the largest tire of each solver, policy and thread count: a fixed cost matters least there."""
    largest: dict[tuple[str, str, bool, int], SpeedPoint] = {}
    for point in results.points:
        key = (point.solver, point.policy, point.free_running, point.threads)
        if key not in largest or largest[key].nodes < point.nodes:
            largest[key] = point
    return list(largest.values())


def _of(term: Term) -> str:
    return ", ".join(word for word in (term.solver, policy_name(term.policy)) if word)


def _term_row(term: Term, estimate: Estimate) -> list[str]:
    paper = f"{PAPER_NS[term.name]:.0f}" if term.name in PAPER_NS else NONE
    return [term.name, _of(term), term.per, interval(estimate), str(estimate.measurements), paper, term.how]


def cost_grid(results: TireResults) -> Table | None:
    """Return the terms of eq. 2 with their intervals; None if no term was fitted."""
    if results.cost is None:
        return None
    notes = [
        (
            "Each term is the slope of a line fitted to a difference in a step's CPU time against n, on one "
            "thread. Brackets contain the 95 % interval from the scatter about that line, which must be "
            "independent from size to size."
        ),
        (
            "T_rest: a node's cost without springs and integration (memory access), minus the time in which "
            "the processor does both at once."
        ),
        (
            "If an interval contains zero, the term may be zero. paper: the value from sec. 4.5 of Garre et "
            "al., measured on an i7-3930K with gcc 4.4 -O2."
        ),
    ]
    missing: dict[str, list[str]] = {}
    for term in results.cost.parts:
        if term.estimate is None:
            missing.setdefault(_of(term), []).append(term.name)
    lacking = [f"{of}: {', '.join(names)}" for of, names in missing.items()]
    if lacking:
        notes.append(f"rtgauge could not separate these terms: {'; '.join(lacking)}.")
    rows = [_term_row(term, term.estimate) for term in results.cost.parts if term.estimate is not None]
    columns = [*texts("term", "of", "for each"), *numbers("ns", "runs", "paper"), *texts("how")]
    columns = ranked(columns, "runs", "how", "paper", "for each")
    return Table("The terms of the cost model (ns)", columns, rows, notes)


def synchronisation_grid(results: TireResults) -> Table | None:
    """Return how much time several threads add to each step; None if only one thread number was measured."""
    if results.cost is None or not results.cost.synchronisation:
        return None
    rows: list[list[str]] = []
    for each in results.cost.synchronisation:
        name = f"{each.solver}, {policy_name(each.policy)}"
        barrier = NONE if each.barrier_ns is None else figure(each.barrier_ns)
        rows.append([name, threads_name(each.threads, results), interval(each.extra_ns), barrier])
    columns = [*texts("", "threads"), *numbers("added per step (ns)", "at the barrier (ns)")]
    columns = ranked(columns, "at the barrier (ns)")
    note = (
        "added: the intercept of the fitted line, minus the intercept on one thread. at the barrier: the "
        "mean time of the first thread, including its wait for the others."
    )
    return Table("What synchronisation costs", columns, rows, [note])


def _limits(low: int | None, high: int | None) -> str:
    if low is None and high is None:
        return NONE
    return f"{'none' if low is None else whole(low)} / {'none' if high is None else whole(high)}"


def _search_cells(frontier: Frontier | None) -> list[str]:
    if frontier is None:
        return [NONE] * 4
    nodes = f"{'≥ ' if frontier.at_limit else ''}{whole(frontier.nodes)}"
    nodes = "none held" if frontier.nodes is None else nodes
    share = NONE if frontier.share_at_most is None else f"{round_up(frontier.share_at_most * 100, 2):.2g} %"
    ends = f"{whole(frontier.low)} to {whole(frontier.high)}"
    return [nodes, ends, f"{frontier.runs} / {whole(frontier.deadlines)}", share]


def _frontier_row(row: FrontierRow, results: TireResults) -> list[str]:
    place, predicted, edge = row.place, row.predicted, row.edge
    name = f"{place.solver}, {policy_name(place.policy)}, {period_name(place.period_ns)}"
    estimates = (None, None) if predicted is None else (predicted.mean, predicted.worst)
    measured = NONE if edge is None else _limits(edge.holds, edge.misses)
    cells = [*map(interval, estimates), measured, *_search_cells(row.searched)]
    return [name, threads_name(place.threads, results), *cells]


FRONTIER_COLUMNS = ranked(
    [
        *texts("", "threads"),
        *numbers("predicted, mean step", "predicted, longest delay", "map: holds / misses"),
        *numbers("search", "bisections ended", "runs / deadlines", "misses at most"),
    ],
    *("predicted, longest delay", "predicted, mean step", "bisections ended", "runs / deadlines"),
    *("misses at most", "map: holds / misses"),
)


UNSEARCHED = 5
"""The number of columns if no search was made."""


def frontier_grid(results: TireResults) -> Table | None:
    """Return the largest n in hard real time, predicted and measured; None if no step was paced."""
    if not results.frontiers:
        return None
    sure = next((row.searched.coverage for row in results.frontiers if row.searched is not None), None)
    notes = [
        (
            "The predictions, map, search and bisections are in nodes. holds / misses: the last n of the "
            "map up to which every deadline was met, and the first that missed one. Brackets contain 95 % "
            "intervals from the fitted lines, whose scatter must be independent from size to size."
        )
    ]
    if sure is not None:
        notes.append(
            "search: the largest n at which every run met every deadline. Near the frontier, the end of a "
            "bisection is random; the median of many lies between the smallest and the largest end with "
            f"{sure * 100:.0f} % confidence, if bisections are independent. misses at most: the upper bound "
            "(95 % confidence) on the share of missed deadlines, if misses come in bursts as long as at the "
            "smallest n that missed one."
        )
    width = len(FRONTIER_COLUMNS) if sure is not None else UNSEARCHED
    rows = [_frontier_row(row, results)[:width] for row in results.frontiers]
    return Table("The real-time frontier", FRONTIER_COLUMNS[:width], rows, notes)


def cells_grids(results: TireResults) -> list[Table]:
    """Return a table for each map, with a row per cell."""
    grids: list[Table] = []
    for plot in results.maps:
        rows: list[list[str]] = []
        for cell in plot.cells:
            name = threads_name(cell.threads, results) + _star(cell.worst_mark)
            counts = [whole(cell.nodes), str(cell.runs), whole(cell.deadlines), whole(cell.missed)]
            shares = [f"{cell.share * 100:.3g} %", f"{round_up(cell.share_at_most * 100):.3g} %"]
            rows.append([name, *counts, *shares])
        notes = [MARKED] if any(_star(cell.worst_mark) for cell in plot.cells) else []
        notes.append(
            "at most: an upper bound that allows for bursts of misses; in a row without a miss, it "
            "assumes independent misses."
        )
        columns = [*texts(""), *numbers("nodes", "runs", "deadlines", "missed", "share", "at most (95 %)")]
        columns = ranked(columns, "runs", "share", "deadlines")
        grids.append(Table(map_title(plot), columns, rows, notes))
    return grids
