# SPDX-License-Identifier: MIT
"""Searches for the largest tire in hard real time: several bisections, then a confirmation.

Its functions are pure: they take the runs so far and give the next runs. Near the frontier a run of a given n
sometimes misses a deadline and sometimes does not, so one bisection ends at random. Several independent ones
give a range, and the smallest of their results must then keep every deadline in several further runs.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from pydantic import Field

from rtgauge.analysis.confidence import range_coverage, upper_bound
from rtgauge.record.model import Model
from rtgauge.tire.analysis.runs import LEAST_NODES, NODES_MULTIPLE
from rtgauge.tire.probe import MOST_NODES

FIRST_FACTOR = 1.25
"""The factor of the first step away from the start; each further factor is the square of the last."""


def whole_nodes(nodes: float, least: int = LEAST_NODES, most: int = MOST_NODES) -> int:
    """Return the nearest number of nodes that a tire can have, between limits that are themselves such
    numbers.
    """
    return min(most, max(least, NODES_MULTIPLE * round(nodes / NODES_MULTIPLE)))


def least_nodes(threads: int) -> int:
    """Return the smallest tire for this many threads. Each needs a pair of opposite nodes."""
    return NODES_MULTIPLE * max(1, math.ceil(2 * threads / NODES_MULTIPLE))


@dataclass(frozen=True)
class Search:
    """One search on `threads` threads, from `start` nodes, to within `resolution` (a share of n)."""

    threads: int
    start: int
    most: int = MOST_NODES
    resolution: float = 0.05
    bisections: int = 5
    confirmations: int = 5

    @property
    def least(self) -> int:
        """The smallest n to try."""
        return least_nodes(self.threads)


@dataclass(frozen=True)
class Bracket:
    """The result of a bisection: the largest n that held and the smallest that missed, or None."""

    holds: int | None
    misses: int | None


@dataclass(frozen=True)
class Outcome:
    """The number of deadlines of one run, and how many were missed."""

    deadlines: int
    missed: int


Trial = tuple[int, int]
"""(nodes, repeat) of a run of one search."""


def bisection(search: Search) -> Generator[int, bool, Bracket]:
    """Yield n to try, receive whether it held, and return the bracket. No n comes twice."""
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


class Frontier(Model):
    """The result of a search. `nodes` is None if even the smallest tire missed a deadline."""

    threads: int
    nodes: int | None = Field(description="the largest n that held in all its runs, also when confirmed")
    runs: int = Field(description="runs of `nodes`, all without a miss")
    deadlines: int = Field(description="deadlines of those runs")
    share_at_most: float | None = Field(description="upper bound at 95 % of the share of missed deadlines")
    misses: int | None = Field(
        description="the smallest n tried that missed a deadline; None: none did up to the limit"
    )
    low: int = Field(description="the smallest result of a bisection; 0: not even the smallest tire held")
    high: int = Field(description="the largest result of a bisection")
    bisections: int
    coverage: float = Field(
        description="confidence that `low` to `high` contains the median of the results of such bisections, "
        "whatever their distribution"
    )
    at_limit: bool = Field(description="every bisection held at the largest n that was allowed")


@dataclass(frozen=True)
class State:
    """The state of a search: the next runs, or the frontier if it is finished."""

    wanted: list[Trial]
    frontier: Frontier | None


def _replay(search: Search, repeat: int, trials: Mapping[Trial, Outcome]) -> Bracket | int:
    """Return the bracket of one bisection, or its next n."""
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


def state_of(search: Search, trials: Mapping[Trial, Outcome]) -> State:
    """Return the state of a search after `trials`; the same trials always lead to the same state."""
    brackets: list[Bracket] = []
    wanted: list[Trial] = []
    for repeat in range(1, search.bisections + 1):
        result = _replay(search, repeat, trials)
        if isinstance(result, int):
            wanted.append((result, repeat))
        else:
            brackets.append(result)
    if wanted:
        return State(wanted, None)
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
            return State(missing[:1], None)
        break
    return State([], _frontier(search, trials, brackets, candidate))


def _frontier(
    search: Search, trials: Mapping[Trial, Outcome], brackets: list[Bracket], nodes: int | None
) -> Frontier:
    ends = [bracket.holds or 0 for bracket in brackets]
    of_frontier = [outcome for (tried, _), outcome in trials.items() if tried == nodes]
    deadlines = sum(outcome.deadlines for outcome in of_frontier)
    return Frontier(
        threads=search.threads,
        nodes=nodes,
        runs=len(of_frontier),
        deadlines=deadlines,
        share_at_most=upper_bound(0, deadlines) if deadlines else None,
        misses=min((tried for (tried, _), outcome in trials.items() if outcome.missed), default=None),
        low=min(ends),
        high=max(ends),
        bisections=search.bisections,
        coverage=range_coverage(search.bisections),
        at_limit=all(bracket.misses is None for bracket in brackets),
    )
