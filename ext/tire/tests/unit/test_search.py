# SPDX-License-Identifier: MIT
"""The frontier search on machines whose frontier is known: sharp, noisy, none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ext.tire.tests.synthetic import paced
from rtgauge.analysis.violation_bounds import range_coverage
from rtgauge_ext.tire.analysis.frontier_search import (
    FrontierSearch,
    FrontierState,
    least_nodes,
    state_of,
    whole_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtgauge_ext.tire.analysis.frontier_search import Trial
    from rtgauge_ext.tire.analysis.runs import PacedRun

DEADLINES = 200


def run(
    search: FrontierSearch, missed: Callable[[int], int], most_rounds: int = 400
) -> tuple[FrontierState, dict[Trial, PacedRun]]:
    """Do what is wanted until nothing is."""
    trials: dict[Trial, PacedRun] = {}
    for _ in range(most_rounds):
        state = state_of(search, trials)
        if not state.wanted:
            return state, trials
        for nodes, repeat in state.wanted:
            assert (nodes, repeat) not in trials, "nothing is measured twice"
            assert nodes % 4 == 0
            assert search.least <= nodes <= search.most
            trials[nodes, repeat] = paced(nodes, 1, missed(nodes), deadlines=DEADLINES)
    raise AssertionError("the search does not end")


@given(st.integers(1, 20_000), st.integers(1, 50_000), st.integers(1, 64), st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=150)
def test_a_sharp_frontier_is_found(quarter: int, start: int, threads: int, resolution: float) -> None:
    true = max(4 * quarter, least_nodes(threads))  # the largest that holds
    search = FrontierSearch(
        threads, start, most=200_000, resolution=resolution, bisections=3, confirmations=2
    )
    state, trials = run(search, lambda nodes: int(nodes > true))
    actual = state.frontier
    assert actual is not None
    assert actual.nodes is not None
    assert actual.misses is not None
    assert actual.nodes <= true < actual.misses
    assert actual.misses - actual.nodes <= max(4, resolution * actual.nodes + 1e-9)
    assert actual.low == actual.high == actual.nodes
    assert actual.runs == 5
    assert actual.deadlines == 5 * DEADLINES
    assert len({nodes for nodes, _ in trials}) < 60


def test_nothing_holds() -> None:
    state, trials = run(FrontierSearch(8, 5000, bisections=4), lambda _: 3)
    assert state.frontier is not None
    assert (state.frontier.nodes, state.frontier.low, state.frontier.high, state.frontier.runs) == (
        None,
        0,
        0,
        0,
    )
    assert state.frontier.misses == 16
    assert state.frontier.share_at_most is None
    assert len(trials) < 60


def test_everything_holds_up_to_the_limit() -> None:
    state, _ = run(FrontierSearch(1, 5000, most=8000, bisections=3, confirmations=2), lambda _: 0)
    assert state.frontier is not None
    assert state.frontier.at_limit
    assert (state.frontier.nodes, state.frontier.misses) == (8000, None)


def chance(nodes: int, centre: float, width: float) -> float:
    """How likely a run of n misses a deadline."""
    return 1 / (1 + math.exp(-(nodes - centre) / width))


def test_a_blurred_frontier_has_a_confirmed_range() -> None:
    rng = np.random.default_rng(2)
    claimed: list[float] = []
    wide = 0
    for _ in range(60):
        search = FrontierSearch(2, 4000, bisections=5, confirmations=5, resolution=0.02)
        state, trials = run(search, lambda nodes: int(rng.random() < chance(nodes, 5000, 200)))
        actual = state.frontier
        assert actual is not None
        assert actual.nodes is not None
        assert actual.low <= actual.high
        assert actual.nodes <= actual.low
        assert all(trials[actual.nodes, repeat].missed == 0 for repeat in range(6, 11))
        assert all(outcome.missed == 0 for (nodes, _), outcome in trials.items() if nodes <= actual.nodes)
        claimed.append(chance(actual.nodes, 5000, 200))
        wide += actual.low < actual.high
    assert wide > 50
    assert (
        np.median(claimed) < 0.2
    )  # a run of the n that is claimed seldom misses; that of one lucky bisection would be near a half
    lucky = []
    for _ in range(60):
        state, _ = run(
            FrontierSearch(2, 4000, bisections=1, confirmations=0, resolution=0.02),
            lambda nodes: int(rng.random() < chance(nodes, 5000, 200)),
        )
        assert state.frontier is not None
        lucky.append(chance(state.frontier.high, 5000, 200))
    assert np.median(lucky) > 2 * np.median(claimed)


def test_the_range_holds_the_median_as_often_as_claimed() -> None:
    rng = np.random.default_rng(3)

    def ends(bisections: int) -> tuple[int, int]:
        search = FrontierSearch(1, 4000, bisections=bisections, confirmations=0, resolution=0.02)
        state, _ = run(search, lambda nodes: int(rng.random() < chance(nodes, 5000, 300)))
        assert state.frontier is not None
        return state.frontier.low, state.frontier.high

    median = np.median([ends(1)[0] for _ in range(600)])
    inside = np.mean([low <= median <= high for low, high in (ends(5) for _ in range(300))])
    assert range_coverage(5) == 0.9375
    assert inside > 0.9


@given(st.data())
@settings(max_examples=60)
def test_it_goes_on_from_any_point_as_if_it_had_not_been_cut_off(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 1000))
    verdicts = {}

    def missed(nodes: int, repeat: int) -> int:
        key = (nodes, repeat)
        verdicts.setdefault(
            key, int(np.random.default_rng([seed, nodes, repeat]).random() < chance(nodes, 3000, 400))
        )
        return verdicts[key]

    search = FrontierSearch(2, 2000, bisections=3, confirmations=2)
    trials: dict[Trial, PacedRun] = {}
    while expected := state_of(search, trials).wanted:
        some = data.draw(
            st.lists(st.sampled_from(expected), min_size=1, unique=True)
        )  # stopped in the middle of a round
        for nodes, repeat in some:
            trials[nodes, repeat] = paced(nodes, 1, missed(nodes, repeat), deadlines=DEADLINES)
    whole: dict[Trial, PacedRun] = {}
    while expected := state_of(search, whole).wanted:
        whole |= {trial: paced(trial[0], 1, missed(*trial), deadlines=DEADLINES) for trial in expected}
    assert state_of(search, trials) == state_of(search, whole)
    assert trials == whole


def test_sizes() -> None:
    assert [least_nodes(threads) for threads in (1, 2, 3, 4, 40, 41)] == [4, 4, 8, 8, 80, 84]
    assert [whole_nodes(n) for n in (0, 5, 6.1, 4002)] == [4, 4, 8, 4000]
    assert whole_nodes(9, 12) == 12
