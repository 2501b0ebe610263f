# SPDX-License-Identifier: MIT
"""The decision of a gate: its error over all looks against an independent integration, its outcomes, and small
simulations with a fixed seed; `bench/gate_simulation.py` has the large ones.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from rtgauge.analysis.gate_test import (
    ALARM,
    MOST_PAIRS,
    OVERLOOK,
    RESOLUTION,
    Outcome,
    boots_to_show,
    decide,
    detectable,
    levels,
    looks,
    pairs_needed,
    rarest_shown,
)
from rtgauge.errors import InputError
from rtgauge.plan.alternating_plan import first_sides
from rtgauge.record.alternation import BLOCK


@pytest.mark.parametrize("error", [ALARM, OVERLOOK, 0.05])
@pytest.mark.parametrize("pairs", [6, 12, 15, 24])
def test_the_looks_together_have_the_error_that_they_may_have(pairs: int, error: float) -> None:
    times = np.array(looks(pairs)) / pairs
    bounds = norm.isf(levels(pairs, error))
    correlation = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    normal = multivariate_normal(
        np.zeros(len(times)), correlation, abseps=1e-9, releps=1e-9, maxpts=2_000_000
    )
    assert 1 - float(normal.cdf(bounds)) == pytest.approx(error, rel=2e-3)


def test_the_error_is_spent_in_proportion_to_the_pairs() -> None:
    assert levels(12, ALARM)[0] == pytest.approx(ALARM / 2)
    assert levels(6, ALARM) == (pytest.approx(ALARM),)


@pytest.mark.parametrize("before", [(12,), (12, 24), (8,)])
def test_more_pairs_keep_the_error_within_four_thirds(
    before: tuple[int, ...],
) -> None:
    times = np.array(looks(48, before)) / 48
    bounds = norm.isf(levels(48, ALARM, before=before))
    correlation = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    normal = multivariate_normal(np.zeros(len(times)), correlation, abseps=1e-9, maxpts=2_000_000)
    spent = ALARM * sum(4.0**-times for times in range(len(before) + 1))
    assert 1 - float(normal.cdf(bounds)) == pytest.approx(spent, rel=5e-3)
    assert levels(48, ALARM, before=before)[0] == pytest.approx(levels(before[0], ALARM)[0], rel=1e-9)


def log_ratios(change: float, spread: float, pairs: int = 12, seed: int = 1) -> list[float]:
    generator = np.random.default_rng(seed)
    noise = generator.normal(0, spread * math.sqrt(2), pairs)
    return (math.log1p(change) + noise - noise.mean()).tolist()


@pytest.mark.parametrize(
    ("change", "spread", "outcome"),
    [
        (0.10, 0.02, Outcome.WORSE),
        (0.50, 0.04, Outcome.WORSE),
        (0.00, 0.02, Outcome.PASS),
        (-0.30, 0.02, Outcome.PASS),
        (0.05, 0.10, Outcome.CANNOT_TELL),
        (0.00, 0.00, Outcome.PASS),
        (0.20, 0.00, Outcome.WORSE),
    ],
)
def test_an_outcome(change: float, spread: float, outcome: Outcome) -> None:
    decision = decide(log_ratios(change, spread), larger_than=0.1, max_pairs=12)
    assert decision.outcome is outcome
    assert decision.low is not None
    assert decision.high is not None
    assert decision.low <= decision.change <= decision.high


@pytest.mark.parametrize(
    ("change", "larger_than", "outcome"),
    [
        (0.009, 0.005, Outcome.CANNOT_TELL),
        (0.03, 0.02, Outcome.WORSE),
        (0.095, 0.1, Outcome.WORSE),
        (0.0, 0.1, Outcome.PASS),
    ],
)
def test_runs_in_one_bin_show_a_change_to_its_width(
    change: float, larger_than: float, outcome: Outcome
) -> None:
    decision = decide([math.log1p(change)] * 6, larger_than=larger_than, max_pairs=6)
    assert decision.low is not None
    assert decision.high is not None
    assert decision.high - decision.low >= 2 * RESOLUTION
    assert decision.outcome is outcome


def test_a_significant_change_below_the_limit_passes() -> None:
    decision = decide(log_ratios(0.03, 0.005), larger_than=0.1, max_pairs=12)
    assert decision.outcome is Outcome.PASS
    assert decision.low is not None
    assert decision.low > 0


def test_the_gate_stops_at_the_first_look_that_shows_enough() -> None:
    values = log_ratios(0.5, 0.02)
    assert [decide(values[:pairs], larger_than=0.1, max_pairs=12).outcome for pairs in range(6)] == [
        "go on"
    ] * 6
    decided = decide(values, larger_than=0.1, max_pairs=12)
    assert (decided.outcome, decided.pairs) == (Outcome.WORSE, 6)
    wide = log_ratios(0.05, 0.1)
    assert decide(wide[:11], larger_than=0.1, max_pairs=12).outcome is Outcome.GO_ON


def test_no_pair_and_one_pair_have_no_interval() -> None:
    assert decide([], larger_than=0.1, max_pairs=6).low is None
    decision = decide([math.log(1.2)], larger_than=0.1, max_pairs=6)
    assert (decision.change, decision.low, decision.spread) == (pytest.approx(0.2), None, None)


@pytest.mark.parametrize("pairs", [-1, 0, 5, MOST_PAIRS + 1])
def test_a_gate_of_too_few_or_too_many_pairs_is_refused(pairs: int) -> None:
    with pytest.raises(InputError, match="must have 6 to"):
        decide([0.1], larger_than=0.1, max_pairs=pairs)


@pytest.mark.parametrize(
    ("values", "larger_than"), [([math.nan], 0.1), ([-math.inf], 0.1), ([101.0], 0.1), ([0.0], 0.0)]
)
def test_values_that_are_no_numbers_are_refused(values: list[float], larger_than: float) -> None:
    with pytest.raises(InputError):
        decide(values, larger_than=larger_than, max_pairs=6)


def test_what_can_be_found_agrees_with_what_is_needed() -> None:
    assert pairs_needed(0.04, 0.1) == 12
    assert detectable(0.04, 12) == pytest.approx(0.1, rel=0.05)
    assert pairs_needed(0.0, 0.1) == BLOCK
    assert pairs_needed(5.0, 0.1) is None
    assert (pairs_needed(0.0, 0.02), pairs_needed(0.0, 0.015)) == (BLOCK, None)
    assert detectable(0.0, BLOCK) == 2 * RESOLUTION


@pytest.mark.parametrize("spread", [0.0005, 0.004, 0.006, 0.01, 0.02])
def test_a_small_spread_needs_the_fewest_pairs(spread: float) -> None:
    assert pairs_needed(spread, 0.1) == BLOCK
    assert detectable(spread, BLOCK) < 0.1


def simulated(boots: np.ndarray, change: float, seed: int) -> dict[str, int]:
    """The outcomes of gates of 12 pairs: a gate a row, 24 log values in the order of measurement."""
    generator = np.random.default_rng(seed)
    outcomes: dict[str, int] = dict.fromkeys(Outcome, 0)
    for row in boots.reshape(len(boots), -1, 2):
        seed = int(generator.integers(2**32))
        first = np.concatenate([first_sides(seed, block) for block in range(len(row) // BLOCK)]) == 0
        ratios = np.where(first, row[:, 1] - row[:, 0], row[:, 0] - row[:, 1]) + math.log1p(change)
        outcomes[decide(ratios.tolist(), larger_than=0.1, max_pairs=12).outcome] += 1
    return outcomes


def drawn(kind: str, spread: float, gates: int = 1_500) -> np.ndarray:
    generator = np.random.default_rng(3)
    boots = generator.normal(0, spread, (gates, 24))
    if kind == "drift":
        for boot in range(1, 24):
            boots[:, boot] = 0.5 * boots[:, boot - 1] + math.sqrt(0.75) * boots[:, boot]
    if kind == "slow boots":
        boots += math.log(1.5) * (generator.random(boots.shape) < 0.15)
    if kind == "period":
        turns = np.arange(24) / generator.uniform(3.6, 4.4, (gates, 1)) + generator.random((gates, 1))
        boots += 10 * spread * np.sin(2 * np.pi * turns)
    if kind == "heavy tails":
        boots = generator.standard_t(3, boots.shape) * spread / math.sqrt(3)
    return boots


def test_a_gate_passes_late_because_a_few_boots_say_little() -> None:
    same = [0.0] * 48
    passed = [decide(same[:pairs], larger_than=0.1, max_pairs=48).outcome for pairs in (6, 11, 12)]
    assert passed == ["go on", "go on", "pass"]
    assert decide(same[:6], larger_than=0.1, max_pairs=6).outcome is Outcome.PASS, "if it has no more pairs"
    rare = [decide(same[:pairs], larger_than=0.1, max_pairs=48, rare=0.1).pairs for pairs in (12, 42, 48)]
    assert rare == [12, 42, 48]
    assert decide(same, larger_than=0.1, max_pairs=48, rare=0.1).outcome is Outcome.PASS
    assert decide([0.5] * 6, larger_than=0.1, max_pairs=48, rare=0.1).outcome is Outcome.WORSE
    small = [0.03] * 12
    outcomes = [decide(small[:pairs], larger_than=0.1, max_pairs=12).outcome for pairs in (6, 12)]
    assert outcomes == ["go on", "pass"], "a change below the wanted one never counts as worse"


def test_the_boots_that_show_a_rare_state() -> None:
    assert 0.9 ** boots_to_show(0.1) <= 0.01 < 0.9 ** (boots_to_show(0.1) - 1)
    assert rarest_shown(boots_to_show(0.1)) == pytest.approx(0.1, rel=0.01)
    for share in (0.0, 1.0, 0.01):
        with pytest.raises(InputError, match="and less than 100%"):
            boots_to_show(share)
    with pytest.raises(InputError, match=r"--rare 1%: give at least 2\.3%"):
        boots_to_show(0.01)


def test_a_candidate_that_is_worse_in_some_boots_seldom_passes() -> None:
    generator = np.random.default_rng(2)
    ratios = generator.normal(0, 0.03, (1_000, 48)) + generator.gamma(0.5, 2 * math.log(1.1), (1_000, 48))
    passed = [decide(row.tolist(), larger_than=0.1, max_pairs=48, rare=0.1).outcome for row in ratios]
    assert passed.count(Outcome.PASS) <= 25


@pytest.mark.parametrize("kind", ["independent", "drift", "slow boots", "heavy tails", "period"])
def test_like_with_like_is_hardly_ever_worse(kind: str) -> None:
    # 1 in 500 of 1,500 is 3; more than 9 come once in a thousand times then.
    assert simulated(drawn(kind, 0.08), 0.0, 4)["worse"] <= 9


def test_ten_percent_are_found_in_nine_of_ten() -> None:
    assert simulated(drawn("independent", 0.04), 0.1, 4)["worse"] >= 0.88 * 1_500


@given(st.lists(st.floats(-100, 100), max_size=40), st.floats(1e-9, 1e6), st.integers(6, 30))
def test_any_numbers_lead_to_a_decision(values: list[float], larger_than: float, max_pairs: int) -> None:
    decision = decide(values, larger_than=larger_than, max_pairs=max_pairs)
    assert decision.pairs <= max_pairs
    assert (decision.outcome is Outcome.GO_ON) <= (len(values) < max_pairs)
