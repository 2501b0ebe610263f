# SPDX-License-Identifier: MIT
"""Decisions on how often a bound is exceeded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rtgauge.analysis.gate_rate import PairCounts, SideCounts, decide_rate, dispersion, least_alarm
from rtgauge.analysis.gate_test import ALARM, Decision, Outcome, levels


def decided(violations: list[tuple[int, int]], *, larger_than: float = 1, max_pairs: int = 12) -> Decision:
    """The decision on violations that come singly."""
    return decide_rate(PairCounts.of(violations), larger_than=larger_than, max_pairs=max_pairs)


def test_without_dispersion_it_is_the_exact_binomial_test() -> None:
    level = levels(6, ALARM)[0]
    for candidate in range(6, 31, 6):
        pairs = [(0, candidate // 6)] * 6
        worse = decided(pairs, max_pairs=6).outcome is Outcome.WORSE
        assert worse == (binomtest(candidate, candidate, alternative="greater").pvalue < level / 2)


def test_a_burst_in_one_run_is_not_many_events() -> None:
    spread = decided([(0, 5)] * 12)
    burst = decided([(0, 60), *[(0, 0)] * 11])
    assert (spread.outcome, burst.outcome) == (Outcome.WORSE, Outcome.CANNOT_TELL)
    assert dispersion(np.array([(0, 60), *[(0, 0)] * 11], dtype=float), 0.1) > 60


def in_windows(violations: np.ndarray) -> PairCounts:
    """The counts of runs, from their windows: (pairs, 2, windows)."""
    windows = violations.shape[-1]
    return PairCounts(violations.sum(axis=-1).astype(float), violations.var(axis=-1, ddof=1) * windows)


def test_violations_in_one_window_of_each_run_weigh_little() -> None:
    bursts = np.zeros((6, 2, 40))
    bursts[:, 1, 7] = 50
    assert decide_rate(in_windows(bursts), larger_than=1, max_pairs=6).outcome is Outcome.CANNOT_TELL
    single = np.zeros((6, 2, 40))
    single[:, 1] = 1
    assert decide_rate(in_windows(single), larger_than=1, max_pairs=6).outcome is Outcome.WORSE


@pytest.mark.parametrize(("baseline", "candidate"), [(0.0075, 0.075), (0.01, 0.5), (0.005, 0.05)])
def test_violations_in_every_window_are_still_counted(baseline: float, candidate: float) -> None:
    generator = np.random.default_rng(1)
    shares = np.array([baseline, candidate])[None, :, None]
    for _ in range(20):
        counts = in_windows(generator.binomial(1_000, shares, (12, 2, 10)))
        assert decide_rate(counts, larger_than=1, max_pairs=12).outcome is Outcome.WORSE


@pytest.mark.parametrize(("shape", "runs", "most"), [(4, 12, 20), (1, 12, 40), (1, 48, 20), (0.5, 48, 25)])
def test_a_candidate_just_over_its_bound_seldom_meets_it(shape: float, runs: int, most: int) -> None:
    generator = np.random.default_rng(4)
    late = generator.poisson(20 * generator.gamma(shape, 1 / shape, (1_000, runs))).astype(float)
    every = np.full(runs, 10_000.0)
    assert sum(SideCounts(row, row, row, every).share_at_most(0.99) <= 0.002 for row in late) <= most
    few = generator.poisson(2, (100, runs)).astype(float)
    assert sum(SideCounts(row, row, row, every).share_at_most(0.99) <= 0.002 for row in few) == 100
    much = generator.poisson(200, (100, runs)).astype(float)
    assert sum(SideCounts(row, row, row, every).share_at_least(0.95) > 0.002 for row in much) == 100


def test_a_candidate_with_one_bad_boot_does_not_meet_its_bound() -> None:
    every = np.full(12, 10_000.0)
    late = np.full(12, 2.0)
    assert SideCounts(late, late, late, every).meets(0.002, 0.99)
    late[5] = 21
    side = SideCounts(late, late, late, every)
    assert side.share_at_most(0.99) <= 0.002
    assert not side.meets(0.002, 0.99)


def test_the_ratios_within_pairs_count_if_boots_differ() -> None:
    rates = [3, 300, 30, 150, 8, 60, 3, 200, 15, 90, 30, 12]
    tripled = decided([(rate, 3 * rate) for rate in rates])
    assert tripled.outcome is Outcome.WORSE
    assert tripled.low is not None
    assert tripled.low > 0
    by_turns = decided(
        [(rate, 3 * rate) if at % 2 else (3 * rate, rate) for at, rate in enumerate(rates)],
    )
    assert by_turns.outcome is Outcome.CANNOT_TELL
    assert tripled.spread
    assert by_turns.spread
    assert by_turns.spread > tripled.spread
    assert decided([(1, 2)] * 12).spread is None


def test_many_equal_events_pass_and_none_decide_nothing() -> None:
    same = [(50 + at % 3, 50 + (at + 1) % 3) for at in range(12)]
    assert decided(same).outcome is Outcome.PASS
    none = decided([(0, 0)] * 12)
    assert (none.outcome, none.low) == (Outcome.CANNOT_TELL, None)
    assert decided([(0, 0)] * 7).outcome is Outcome.GO_ON


def test_the_change_and_its_interval() -> None:
    decision = decided([(10, 20 + at % 2) for at in range(12)])
    assert decision.change == pytest.approx(1.05)
    assert decision.low is not None
    assert decision.high is not None
    assert 0 < decision.low < 1.05 < decision.high < 2
    assert decided([(0, 9)] * 6, max_pairs=6).change == math.inf


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=14))
def test_any_counts_lead_to_a_decision(events: list[tuple[int, int]]) -> None:
    decision = decided(events, larger_than=0.5)
    counts = np.array(events[: decision.pairs]).reshape(-1, 2).sum(axis=0)
    if decision.outcome is Outcome.WORSE:
        assert counts[1] > counts[0]


def test_the_least_alarm_is_the_least() -> None:
    assert least_alarm(PairCounts.of([(0, 0)] * 6), max_pairs=6) == math.ceil(-math.log2(ALARM / 2))


def test_equals_are_hardly_ever_worse_and_triple_is_found() -> None:
    generator = np.random.default_rng(3)
    slow = np.where(generator.random((2_000, 12, 2)) < 0.15, 20, 1)
    same = generator.poisson(2 * slow)
    alarms = sum(decided(row.tolist()).outcome is Outcome.WORSE for row in same)
    assert alarms <= 4
    more = generator.poisson([4, 12], (100, 12, 2))
    actual = sum(decided(row.tolist()).outcome is Outcome.WORSE for row in more)
    assert actual >= 90
