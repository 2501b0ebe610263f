# SPDX-License-Identifier: MIT
"""Searches for the largest tire in hard real time, with several bisections and a confirmation.

Its functions are pure: they take the finished runs and return the next ones. Near the frontier, a run with a
given n misses a deadline only sometimes, so one bisection ends at random. Several independent bisections give
a range. The smallest result must then keep every deadline in several further runs.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from rtgauge.analysis.violation_bounds import design_effect, range_coverage, upper_bound
from rtgauge_ext.tire.analysis.runs import LEAST_NODES, NODES_MULTIPLE, PacedRun
from rtgauge_ext.tire.tire_probe import MOST_NODES

FIRST_FACTOR = 1.25
"""The factor of the first step away from the start. Each later factor is the square of the previous one."""


def whole_nodes(nodes: float, least: int = LEAST_NODES, most: int = MOST_NODES) -> int:
    """Return the nearest number of nodes that a tire can have, within limits that are themselves possible
    numbers.
    """
    return min(most, max(least, NODES_MULTIPLE * round(nodes / NODES_MULTIPLE)))


def least_nodes(threads: int) -> int:
    """Return the smallest tire for this many threads. Each thread needs a pair of opposite nodes."""
    return NODES_MULTIPLE * max(1, math.ceil(2 * threads / NODES_MULTIPLE))


@dataclass(frozen=True)
class FrontierSearch:
    """A search on `threads` threads, from `start` nodes until it is within `resolution` (a share of n)."""

    threads: int
    start: int
    most: int = MOST_NODES
    resolution: float = 0.05
    bisections: int = 5
    confirmations: int = 5

    @property
    def least(self) -> int:
        """The smallest n that the search tries."""
        return least_nodes(self.threads)


@dataclass(frozen=True)
class Bracket:
    """A bisection's result: the largest n that held and the smallest n that missed a deadline, or None."""

    holds: int | None
    misses: int | None


Trial = tuple[int, int]
"""Identifies a run of one search: (nodes, repeat)."""


def bisection(search: FrontierSearch) -> Generator[int, bool, Bracket]:
    """Yield an n to try, receive whether it held, and in the end return the bracket. No n is tried twice."""
    holds: int | None = None
    misses: int | None = None
    nodes, factor = whole_nodes(search.start, search.least, search.most), FIRST_FACTOR
    while True:
        if (yield nodes):
            holds = nodes
        else:
            misses = nodes
        if holds is None and misses is not None:
            if misses == search.least:
                return Bracket(None, misses)
            smaller = min(misses / factor, misses - NODES_MULTIPLE)
            nodes, factor = whole_nodes(smaller, search.least, search.most), factor**2
        elif misses is None and holds is not None:
            if holds == search.most:
                return Bracket(holds, None)
            larger = max(holds * factor, holds + NODES_MULTIPLE)
            nodes, factor = whole_nodes(larger, search.least, search.most), factor**2
        elif holds is not None and misses is not None:
            if misses - holds <= NODES_MULTIPLE or misses <= holds * (1 + search.resolution):
                return Bracket(holds, misses)
            middle = whole_nodes(math.sqrt(holds * misses))
            nodes = min(misses - NODES_MULTIPLE, max(holds + NODES_MULTIPLE, middle))


@dataclass(frozen=True)
class Frontier:
    """The result of a search.

    `nodes`: the largest number of nodes at which every run, including the confirming runs, met every
    deadline; None if even the smallest tire missed one. `runs` and `deadlines`: how many runs had this
    number, and how many deadlines they had. `share_at_most`: the upper end of the 95 % interval of the share
    of missed deadlines. It assumes that misses come in bursts as long as at `misses` nodes or, if no run
    missed a deadline, that they are independent. `misses`: the smallest number of nodes at which a deadline
    was missed; None if none was. `low`, `high`: the smallest and the largest result of a bisection; 0 if even
    the smallest tire missed a deadline. `coverage`: the confidence that the median result of such bisections
    is between them, whatever their distribution. `at_limit`: whether every bisection met every deadline at
    the largest allowed number of nodes.
    """

    threads: int
    nodes: int | None
    runs: int
    deadlines: int
    share_at_most: float | None
    misses: int | None
    low: int
    high: int
    bisections: int
    coverage: float
    at_limit: bool


@dataclass(frozen=True)
class FrontierState:
    """The state of a search: the next runs or, when it is finished, the frontier."""

    wanted: list[Trial]
    frontier: Frontier | None


def _replay(search: FrontierSearch, repeat: int, trials: Mapping[Trial, PacedRun]) -> Bracket | int:
    """Return one bisection's bracket, or its next n."""
    running = bisection(search)
    nodes = next(running)
    while True:
        outcome = trials.get((nodes, repeat))
        if outcome is None:
            return nodes
        try:
            nodes = running.send(outcome.missed == 0)
        except StopIteration as end:
            return end.value


def state_of(search: FrontierSearch, trials: Mapping[Trial, PacedRun]) -> FrontierState:
    """Return the state of a search after `trials`. The same trials always lead to the same state."""
    brackets: list[Bracket] = []
    next_trials: list[Trial] = []
    for repeat in range(1, search.bisections + 1):
        result = _replay(search, repeat, trials)
        if isinstance(result, int):
            next_trials.append((result, repeat))
        else:
            brackets.append(result)
    if next_trials:
        return FrontierState(next_trials, None)
    ends = [bracket.holds for bracket in brackets]
    candidate = None if None in ends else min(end for end in ends if end is not None)
    step = search.resolution
    while candidate is not None:
        confirming = [
            (candidate, search.bisections + number) for number in range(1, search.confirmations + 1)
        ]
        outcomes = [trials.get(trial) for trial in confirming]
        if any(outcome is not None and outcome.missed for outcome in outcomes):
            if candidate == search.least:
                candidate = None
            else:
                smaller = min(candidate * (1 - step), candidate - NODES_MULTIPLE)
                candidate, step = whole_nodes(smaller, search.least, search.most), min(0.5, step * 2)
            continue
        missing = [trial for trial, outcome in zip(confirming, outcomes, strict=True) if outcome is None]
        if missing:
            return FrontierState(missing[:1], None)
        break
    return FrontierState([], _frontier(search, trials, brackets, candidate))


def _frontier(
    search: FrontierSearch, trials: Mapping[Trial, PacedRun], brackets: list[Bracket], nodes: int | None
) -> Frontier:
    ends = [bracket.holds or 0 for bracket in brackets]
    of_frontier = [outcome for (tried, _), outcome in trials.items() if tried == nodes]
    deadlines = sum(outcome.deadlines for outcome in of_frontier)
    misses = min((tried for (tried, _), outcome in trials.items() if outcome.missed), default=None)
    effect = design_effect([[outcome.misses for (tried, _), outcome in trials.items() if tried == misses]])
    return Frontier(
        threads=search.threads,
        nodes=nodes,
        runs=len(of_frontier),
        deadlines=deadlines,
        share_at_most=upper_bound(0, deadlines / effect) if deadlines else None,
        misses=misses,
        low=min(ends),
        high=max(ends),
        bisections=search.bisections,
        coverage=range_coverage(search.bisections),
        at_limit=all(bracket.misses is None for bracket in brackets),
    )
