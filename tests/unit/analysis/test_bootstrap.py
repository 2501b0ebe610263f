# SPDX-License-Identifier: MIT
"""The calculated block bootstrap against one that is drawn and against every possible draw, Holm's correction against a worked example."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from rtgauge.analysis.bootstrap import (
    ENDLESS_NS,
    LEAST_P,
    QUANTILES,
    Resampled,
    Stretches,
    block_length,
    exact,
    holm,
    interval,
    quantile,
    resampled_quantile,
    why_no_interval,
)


def stretches(windows: list[np.ndarray]) -> Stretches:
    """Whole numbers, one array a window."""
    values, where = np.unique(np.concatenate(windows), return_inverse=True)
    counts = np.zeros((len(windows), len(values)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(windows)), [len(window) for window in windows]), where), 1)
    return exact(values.astype(np.int64), counts)


def drawn(sample: Stretches, share: Fraction, resamples: int) -> np.ndarray:
    """The quantile of each of `resamples` samples, drawn block by block."""
    rng = np.random.default_rng(1)
    number = len(sample.counts)
    length = block_length(number)
    quantiles = []
    for _ in range(resamples):
        starts = rng.integers(0, number, math.ceil(number / length))
        chosen = ((starts[:, None] + np.arange(length)) % number).ravel()[:number]
        quantiles.append(quantile(sample.values_ns, sample.counts[chosen].sum(axis=0), share))
    return np.array(quantiles)


def every_draw(sample: Stretches, share: Fraction) -> dict[int, float]:
    """Each value of the quantile with its probability, from every possible sequence of blocks."""
    number = len(sample.counts)
    length = block_length(number)
    sequences = list(itertools.product(range(number), repeat=math.ceil(number / length)))
    found: dict[int, float] = {}
    for starts in sequences:
        chosen = ((np.array(starts)[:, None] + np.arange(length)) % number).ravel()[:number]
        value = quantile(sample.values_ns, sample.counts[chosen].sum(axis=0), share)
        found[value] = found.get(value, 0.0) + 1 / len(sequences)
    return found


def of(resampled: Resampled) -> dict[int, float]:
    return {int(ns): float(p) for ns, p in zip(resampled.high_ns, resampled.probability, strict=True) if p > 1e-12}


def fixed(ns: int, *, low: int = 0, high: int = 0) -> Resampled:
    """A quantile that every resample has, in a bin that reaches so far below and above."""
    return Resampled(np.array([ns - low]), np.array([ns + high]), np.array([1.0]), 10**6)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.integers(1, 9999))
def test_a_quantile_is_the_nearest_rank(values, per_ten_thousand):
    at, counts = np.unique(values, return_counts=True)
    rank = max(1, -(-per_ten_thousand * len(values) // 10_000))
    assert quantile(at, counts, Fraction(per_ten_thousand, 10_000)) == sorted(values)[rank - 1]


@given(st.data())
def test_it_is_the_distribution_of_every_possible_draw(data):
    """Windows of one size and of several, down to one sample; up to 6 windows: 216 draws."""
    windows = data.draw(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=2, max_size=6))
    if data.draw(st.booleans()):
        windows = [(window * 6)[:6] for window in windows]
    sample = stretches([np.array(window) for window in windows])
    share = data.draw(st.sampled_from([Fraction(1, 2), Fraction(3, 4), Fraction(99, 100)]))
    expected = every_draw(sample, share)
    found = of(resampled_quantile(sample, share))
    if len({len(window) for window in windows}) == 1:
        assert found == pytest.approx(expected, abs=1e-9)
    else:  # where a rank is met exactly, the size of the draw is a fraction away
        assert sum(found.values()) == pytest.approx(1)
        assert set(found) <= set(sample.values_ns.tolist())


RNG = np.random.default_rng(5)
BURST = [RNG.integers(0, 300, 1_000) for _ in range(60)]
BURST[17][:70] = 5_000
SAMPLES = {
    "fine values": [RNG.integers(0, 3_000, 500) for _ in range(60)],
    "windows of several sizes": [RNG.integers(0, 300, RNG.integers(300, 600)) for _ in range(60)],
    "a burst in one window": BURST,
    "wandering": [(RNG.lognormal(8, 0.3, 2_000) * RNG.lognormal(0, 0.05)).astype(int) // 50 for _ in range(200)],
    "few": [RNG.integers(0, 3, 40) for _ in range(20)],
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("share", QUANTILES.values(), ids=QUANTILES)
def test_it_is_the_distribution_of_many_draws(name, share):
    sample = stretches(SAMPLES[name])
    resampled = resampled_quantile(sample, share)
    assert resampled.probability.sum() == pytest.approx(1)
    assert resampled.probability.min() >= 0
    draws = np.sort(drawn(sample, share, 1_000))
    seen = np.searchsorted(draws, resampled.high_ns, side="right") / len(draws)
    # Kolmogorov's bound at a probability of 1e-6 is 0.083; what is interpolated between places adds a little.
    assert np.abs(np.cumsum(resampled.probability) - seen).max() < 0.11


def test_the_spread_of_an_independent_sample_is_the_exact_one():
    """The rank of the true quantile among n independent samples is binomial."""
    sample = stretches(list(np.random.default_rng(1).permutation(10_000).reshape(200, 50)))
    resampled = resampled_quantile(sample, Fraction(95, 100))
    mean = float(resampled.probability @ resampled.high_ns)
    deviation = math.sqrt(float(resampled.probability @ (resampled.high_ns - mean) ** 2))
    exact_deviation = binom.std(10_000, 0.95)
    assert deviation == pytest.approx(exact_deviation, rel=0.15)
    assert mean == pytest.approx(9_500, abs=exact_deviation / 3)


def test_windows_that_differ_widen_the_spread_beyond_that_of_independent_samples():
    rng = np.random.default_rng(2)
    level = np.repeat(rng.integers(0, 10_000, 20), 10)  # ten windows alike, then another level
    together = rng.integers(0, 1_000, (200, 500)) + level[:, None]
    apart = rng.permutation(together.ravel()).reshape(200, 500)

    def width(windows):
        found = resampled_quantile(stretches(list(windows)), Fraction(1, 2))
        reached = found.high_ns[np.searchsorted(np.cumsum(found.probability), [0.025, 0.975])]
        return reached[1] - reached[0]

    assert width(together) > 10 * width(apart)


@pytest.mark.parametrize("comparisons", [4, 51, 72, 1_000])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_a_clear_difference_is_shown_among_any_number_of_comparisons(comparisons, alpha):
    """All others show nothing: the hardest place for the one that does. Windows of a minute."""
    rng = np.random.default_rng(3)
    slow, fast = (stretches([rng.integers(0, 1_000, 200) + shift for _ in range(60)]) for shift in (9_000, 0))
    clear = interval(*(resampled_quantile(sample, Fraction(1, 2)) for sample in (slow, fast)), alpha=alpha, within_ns=2_000)
    equal = interval(*(resampled_quantile(sample, Fraction(1, 2)) for sample in (fast, fast)), alpha=alpha, within_ns=2_000)
    for found, name in ((clear, "p_different"), (clear, "p_not_beyond"), (equal, "p_not_within")):
        assert holm([getattr(found, name), *[1.0] * (comparisons - 1)])[0] < alpha


def test_an_interval_and_what_it_shows():
    values = np.arange(-1_000, 9_001, 10)
    spread = Resampled(values, values, np.full(len(values), 1 / len(values)), 10**6)
    found = interval(spread, fixed(0), alpha=0.1, within_ns=20_000)
    assert (found.low_ns, found.high_ns) == pytest.approx((-500, 8_500), abs=10)
    assert found.p_different == pytest.approx(0.2, abs=0.01)
    assert found.p_not_within == LEAST_P
    assert found.p_not_beyond == 1
    beyond = interval(fixed(9_000), fixed(0), alpha=0.05, within_ns=2_000)
    assert beyond.p_not_within == 1
    assert beyond.p_not_beyond == pytest.approx(2 * LEAST_P)
    equal = interval(fixed(5), fixed(5), alpha=0.05, within_ns=0)
    assert (equal.p_different, equal.p_not_within) == (1, LEAST_P)
    assert (equal.low_ns, equal.high_ns) == (0, 0)


def test_few_blocks_widen_the_interval_as_students_t_does():
    values = np.arange(-4_000, 4_001)
    weights = np.exp(-((values / 1_000) ** 2) / 2)
    limits = []
    for freedom in (6, 10**6):
        resampled = Resampled(values, values, weights / weights.sum(), freedom)
        limits.append(interval(resampled, fixed(0), alpha=0.05, within_ns=0).high_ns)
    assert limits == pytest.approx([2_447, 1_960], abs=3)  # t with 6 degrees of freedom, and the normal distribution


def test_the_width_of_bins_is_part_of_the_interval():
    """Two quantiles in bins of 500 ns, read as equal: the truth may be 499 ns apart."""
    side, baseline = (fixed(50_499, low=499) for _ in range(2))
    found = interval(side, baseline, alpha=0.05, within_ns=100)
    assert (found.low_ns, found.high_ns) == (-499, 499)
    assert (found.p_not_within, found.p_different) == (1, 1)
    assert interval(side, baseline, alpha=0.05, within_ns=499).p_not_within == LEAST_P
    next_bin = fixed(50_999, low=499)
    assert interval(next_bin, baseline, alpha=0.05, within_ns=100).p_not_beyond == 1  # 50,500 and 50,499 are 1 ns apart
    assert interval(next_bin, baseline, alpha=0.05, within_ns=100).p_different == pytest.approx(2 * LEAST_P)


def test_a_value_without_an_end_gives_no_limit():
    endless = Resampled(np.array([10**10]), np.array([ENDLESS_NS]), np.array([1.0]), 10**6)
    found = interval(endless, fixed(1_000), alpha=0.05, within_ns=100)
    assert (found.low_ns, found.high_ns) == (10**10 - 1_000, None)
    assert (interval(fixed(1_000), endless, alpha=0.05, within_ns=100).low_ns, found.p_not_within) == (None, 1)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    assert [c for _, c in sorted(zip(p_values, corrected, strict=True))] == sorted(corrected)


def test_too_few_windows_or_samples_are_said():
    one = np.array([1])
    assert "only 1 window of time" in (why_no_interval(exact(one, np.array([[5_000]])), Fraction(1, 2)) or "")
    many = exact(one, np.full((30, 1), 1_000))
    assert why_no_interval(many, Fraction(999, 1000)) is None
    assert "only 3 samples lie" in (why_no_interval(many, Fraction(9999, 10000)) or "")
    assert block_length(30) == 4
