# SPDX-License-Identifier: MIT
"""Bounds against published values, the binomial distribution itself and the rule of three."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from rtgauge.analysis.violation_bounds import (
    Counted,
    activations_needed,
    activations_to_refute,
    design_effect,
    lower_bound,
    upper_bound,
)
from tests.support.repeated_runs import MEDIAN_NS, System, latencies


@pytest.mark.parametrize(
    ("violations", "count", "low", "high"),
    [
        # R 4, binom.test(x = 682, n = 925), its own help page (Conover 1971, p. 97): 95 % two-sided
        # 0.7076683, 0.7654066.
        (682, 925, 0.7076683, 0.7654066),
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 5 (Clopper-Pearson): 81/263, 15/148,
        # 0/20, 1/29.
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_published_two_sided_intervals(violations, count, low, high):
    """A two-sided 95 % interval is made of two one-sided bounds at 97.5 %."""
    digits = 5e-8 if count == 925 else 5.1e-5
    assert lower_bound(violations, count, 0.975) == pytest.approx(low, abs=digits)
    assert upper_bound(violations, count, 0.975) == pytest.approx(high, abs=digits)


@pytest.mark.parametrize("count", [100, 10_000, 1_000_000, 10**9])
def test_rule_of_three(count):
    """Hanley and Lippman-Hand, If nothing goes wrong, is everything all right?, JAMA 249 (1983): about
    3/n.
    """
    assert upper_bound(0, count) == pytest.approx(3 / count, rel=0.02)
    assert upper_bound(0, count) < 3 / count


def test_without_violations_299_support_one_percent_at_95():
    """The well-known 59 and 299 of the one-sided success-run theorem at 95 %: R = 95 % and 99 %."""
    assert activations_needed(0.05) == 59
    assert activations_needed(0.01) == 299
    assert activations_needed(1e-5) == 299_572


@settings(max_examples=200)
@given(count=st.integers(1, 5000), data=st.data(), confidence=st.floats(0.5, 0.9999))
def test_bounds_are_where_the_binomial_tail_reaches_the_error(count, data, confidence):
    violations = data.draw(st.integers(0, count))
    high, low = upper_bound(violations, count, confidence), lower_bound(violations, count, confidence)
    assert 0 <= low <= violations / count <= high <= 1
    if violations < count:
        assert binom.cdf(violations, count, high) == pytest.approx(1 - confidence, rel=1e-6)
    if violations > 0:
        assert binom.sf(violations - 1, count, low) == pytest.approx(1 - confidence, rel=1e-6)


@settings(max_examples=50)
@given(violations=st.integers(0, 5), count=st.integers(100, 10_000), allowed=st.floats(1e-5, 0.2))
def test_the_activations_needed_do_support_it(violations, count, allowed):
    needed = activations_needed(allowed, violations=violations, count=count)
    rate = violations / count
    if needed is None:
        assert rate >= allowed or needed is None
        assert rate > allowed * 0.999
        return
    assert upper_bound(math.ceil(rate * needed), needed) <= allowed * (1 + 1e-9)
    fewer = int(needed * 0.99) - 1
    if violations == 0 and fewer > 0:
        assert upper_bound(0, fewer) > allowed


def test_nothing_counted_supports_nothing():
    assert upper_bound(0, 0) == 1.0
    assert lower_bound(0, 0) == 0.0


@pytest.mark.parametrize("arguments", [(3, 2, 0.95), (-1, 2, 0.95), (0, 5, 0.0), (0, 5, 1.0)])
def test_impossible_counts_are_refused(arguments):
    with pytest.raises(ValueError, match=r"violations|confidence"):
        upper_bound(*arguments)


def bound(runs, confidence=0.95):
    """Return the upper bound of runs of one condition, each given as (violations, counts) by window."""
    counted = [Counted.of_windows(*run) for run in runs]
    effect = design_effect([counted], confidence)
    late, every = sum(run.violations for run in counted), sum(run.activations for run in counted)
    return upper_bound(late / effect, every / effect, confidence)


@pytest.mark.parametrize("windows", [10, 19, 60])
def test_bursts_need_their_design_effect_for_a_bound_to_hold(windows):
    """Bursts of 100 violations, 2 a window on average: how often the 95 % bound on their share holds."""
    rng = np.random.default_rng(5)
    plain = held = 0
    for _ in range(400):
        late = 100 * rng.poisson(2, windows)
        every = np.full(windows, 10_000)
        plain += upper_bound(int(late.sum()), int(every.sum())) >= 0.02
        held += bound([(late, every)]) >= 0.02
    assert plain < 280
    assert held >= 372


def test_dependent_latencies_have_a_bound_that_holds():
    """AR(1) 0.999, 60 windows of 1,000: how often the 95 % bound on the share above their 90 % quantile
    holds.
    """
    rng = np.random.default_rng(5)
    system = System(0.999, 1_000)
    limit = MEDIAN_NS * np.exp(0.35 * 1.2815515655446004)
    every = np.full(60, system.per_window)
    held = sum(bound([((latencies(system, rng) > limit).sum(axis=1), every)]) >= 0.1 for _ in range(100))
    assert held >= 93


def test_a_burst_in_one_step_is_not_diluted_by_calm_steps():
    """783 of 100,310 violated, nearly all in bursts of one step: no bound lies below this share."""
    bursty = Counted.of_windows([0, 0, 390, 0, 0, 0, 391, 0, 0, 0], [1_000] * 10)
    calm = [
        Counted.of_windows([0, 0, 1, 0, 0, 0, 0, 1, 0, 0], [4_515] * 10),
        Counted.of_windows([0], [45_160]),
    ]
    conditions = [[bursty], *([run] for run in calm)]
    late, every = 783, 10_000 + 45_150 + 45_160
    effect = design_effect(conditions)
    assert effect > 300
    assert upper_bound(late / effect, every / effect) > late / every


def test_runs_of_one_condition_that_differ_widen_the_bound():
    """The rate of each run is drawn from a gamma distribution (standard deviation: half of the mean)."""
    rng = np.random.default_rng(7)
    every = np.full(10, 1_000)
    held = alone = 0
    for _ in range(400):
        runs = [(rng.binomial(1_000, 0.02 * rng.gamma(4, 1 / 4), 10), every) for _ in range(5)]
        held += bound(runs) >= 0.02
        item = (np.concatenate([late for late, _ in runs]), np.tile(every, 5))
        alone += upper_bound(int(item[0].sum()), int(item[1].sum())) >= 0.02
    assert held >= 372
    assert alone < 320


@pytest.mark.parametrize("number", [2, 3, 5])
def test_runs_whose_rates_are_skewed_have_a_bound_that_holds(number):
    """Log-normal rates with a standard deviation of 85 %, some runs by chance alike."""
    rng = np.random.default_rng(8)
    sigma, every = np.sqrt(np.log(1 + 0.85**2)), np.full(10, 500)
    rates = 0.05 * np.exp(sigma * rng.standard_normal((400, number)) - sigma**2 / 2)
    held = sum(
        bound([(rng.binomial(500, min(rate, 0.9), 10), every) for rate in runs]) >= 0.05 for runs in rates
    )
    assert held >= 372


def test_independent_violations_hardly_widen_a_bound():
    rng = np.random.default_rng(6)
    every = np.full(200, 1_000)
    runs = [rng.binomial(1_000, 0.01, 200) for _ in range(200)]
    ratios = [bound([(late, every)]) / upper_bound(int(late.sum()), 200_000) for late in runs]
    assert min(ratios) == pytest.approx(1)
    assert np.mean(ratios) < 1.06


@pytest.mark.parametrize("late", [[0] * 60, [10] * 60, [5]])
def test_without_violations_or_windows_no_design_effect(late):
    assert design_effect([[Counted.of_windows(late, [10] * len(late))]]) == 1


@pytest.mark.parametrize(("rate", "allowed"), [(0.01, 0.012), (0.02, 0.018)])
def test_enough_activations_decide_with_80_percent_probability(rate, allowed):
    count = 10_000
    how = {"violations": round(rate * count), "count": count}
    above = rate > allowed
    needed = activations_to_refute(allowed, **how) if above else activations_needed(allowed, **how)
    late = np.random.default_rng(8).binomial(needed, rate, 1_000)
    decided = [
        lower_bound(int(each), needed) > allowed if above else upper_bound(int(each), needed) <= allowed
        for each in late
    ]
    assert np.mean(decided) == pytest.approx(0.8, abs=0.04)
