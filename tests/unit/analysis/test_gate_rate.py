# SPDX-License-Identifier: MIT
"""Decisions on how often a bound is exceeded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rtgauge.analysis.gate import ALARM, Outcome, levels
from rtgauge.analysis.gate_rate import decide_rate, dispersion, least_alarm


def test_without_dispersion_it_is_the_exact_binomial_test() -> None:
    level = levels(6, ALARM)[0]
    for candidate in range(6, 31, 6):
        pairs = [(0, candidate // 6)] * 6
        worse = decide_rate(pairs, larger_than=1, max_pairs=6).outcome is Outcome.WORSE
        assert worse == (binomtest(candidate, candidate, alternative="greater").pvalue < level / 2)


def test_a_burst_in_one_run_is_not_many_events() -> None:
    spread = decide_rate([(0, 5)] * 12, larger_than=1, max_pairs=12)
    burst = decide_rate([(0, 60), *[(0, 0)] * 11], larger_than=1, max_pairs=12)
    assert (spread.outcome, burst.outcome) == (Outcome.WORSE, Outcome.CANNOT_TELL)
    assert dispersion(np.array([(0, 60), *[(0, 0)] * 11], dtype=float), 0.1) > 60


def test_the_ratios_within_pairs_count_if_boots_differ() -> None:
    rates = [3, 300, 30, 150, 8, 60, 3, 200, 15, 90, 30, 12]
    tripled = decide_rate([(rate, 3 * rate) for rate in rates], larger_than=1, max_pairs=12)
    assert tripled.outcome is Outcome.WORSE
    assert tripled.low is not None
    assert tripled.low > 0
    by_turns = decide_rate(
        [(rate, 3 * rate) if at % 2 else (3 * rate, rate) for at, rate in enumerate(rates)],
        larger_than=1,
        max_pairs=12,
    )
    assert by_turns.outcome is Outcome.CANNOT_TELL
    assert tripled.spread
    assert by_turns.spread
    assert by_turns.spread > tripled.spread
    assert decide_rate([(1, 2)] * 12, larger_than=1, max_pairs=12).spread is None


def test_many_equal_events_pass_and_none_tell_nothing() -> None:
    same = [(50 + at % 3, 50 + (at + 1) % 3) for at in range(12)]
    assert decide_rate(same, larger_than=1, max_pairs=12).outcome is Outcome.PASS
    none = decide_rate([(0, 0)] * 12, larger_than=1, max_pairs=12)
    assert (none.outcome, none.low) == (Outcome.CANNOT_TELL, None)
    assert decide_rate([(0, 0)] * 7, larger_than=1, max_pairs=12).outcome is Outcome.GO_ON


def test_the_change_and_its_interval() -> None:
    decision = decide_rate([(10, 20 + at % 2) for at in range(12)], larger_than=1, max_pairs=12)
    assert decision.change == pytest.approx(1.05)
    assert decision.low is not None
    assert decision.high is not None
    assert 0 < decision.low < 1.05 < decision.high < 2
    assert decide_rate([(0, 9)] * 6, larger_than=1, max_pairs=6).change == math.inf


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=14))
def test_any_counts_lead_to_a_decision(events: list[tuple[int, int]]) -> None:
    decision = decide_rate(events, larger_than=0.5, max_pairs=12)
    counts = np.array(events[: decision.pairs]).reshape(-1, 2).sum(axis=0)
    if decision.outcome is Outcome.WORSE:
        assert counts[1] > counts[0]


def test_the_least_alarm_is_the_least() -> None:
    assert least_alarm([(0, 0)] * 6, max_pairs=6) == math.ceil(-math.log2(ALARM / 2))


def test_like_with_like_is_hardly_ever_worse_and_three_times_as_often_is_found() -> None:
    generator = np.random.default_rng(3)
    slow = np.where(generator.random((2_000, 12, 2)) < 0.15, 20, 1)
    same = generator.poisson(2 * slow)
    alarms = sum(
        decide_rate(row.tolist(), larger_than=1, max_pairs=12).outcome is Outcome.WORSE for row in same
    )
    assert alarms <= 4
    more = generator.poisson([4, 12], (100, 12, 2))
    found = sum(
        decide_rate(row.tolist(), larger_than=1, max_pairs=12).outcome is Outcome.WORSE for row in more
    )
    assert found >= 90
