# SPDX-License-Identifier: MIT
"""The block bootstrap against the exact spread of a quantile, Holm's correction against a worked example."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from rtgauge.analysis.bootstrap import Stretches, block_length, holm, interval, quantile, resampled_quantiles, why_no_interval


def stretches(windows: np.ndarray) -> Stretches:
    """Whole numbers, a row a window."""
    values, where = np.unique(windows, return_inverse=True)
    counts = np.zeros((len(windows), len(values)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(windows)), windows.shape[1]), where.ravel()), 1)
    return Stretches(values.astype(np.int64), counts)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200), st.integers(1, 9999))
def test_a_quantile_is_the_nearest_rank(values, per_ten_thousand):
    at, counts = np.unique(values, return_counts=True)
    rank = max(1, -(-per_ten_thousand * len(values) // 10_000))
    assert quantile(at, counts, Fraction(per_ten_thousand, 10_000)) == sorted(values)[rank - 1]


def test_the_spread_of_an_independent_sample_is_the_exact_one():
    """The rank of the true quantile among n independent samples is binomial."""
    sample = stretches(np.random.default_rng(1).permutation(10_000).reshape(200, 50))
    drawn = resampled_quantiles(sample, [Fraction(95, 100)], resamples=1_500)[:, 0]
    exact = binom.std(10_000, 0.95)
    assert drawn.std() == pytest.approx(exact, rel=0.15)
    assert drawn.mean() == pytest.approx(9_500, abs=exact / 3)


def test_windows_that_differ_widen_the_spread_beyond_that_of_independent_samples():
    rng = np.random.default_rng(2)
    level = np.repeat(rng.integers(0, 10_000, 20), 10)  # ten windows alike, then another level
    together = rng.integers(0, 1_000, (200, 500)) + level[:, None]
    apart = rng.permutation(together.ravel()).reshape(200, 500)
    wide, narrow = (resampled_quantiles(stretches(w), [Fraction(1, 2)], resamples=400)[:, 0].std() for w in (together, apart))
    assert wide > 10 * narrow


def test_the_same_seed_draws_the_same_and_progress_adds_up():
    sample = stretches(np.random.default_rng(3).integers(0, 100, (30, 50)))
    seen: list[int] = []
    first = resampled_quantiles(sample, [Fraction(1, 2)], resamples=300, seed=9, progress=seen.append)
    assert (first == resampled_quantiles(sample, [Fraction(1, 2)], resamples=300, seed=9)).all()
    assert sum(seen) == 300
    assert len(seen) > 1


def test_an_interval_and_what_it_shows():
    drawn = np.arange(-1_000, 9_001, 10)
    found = interval(4_000, drawn, alpha=0.1, within_ns=20_000)
    assert (found.low_ns, found.high_ns) == pytest.approx((-500, 8_500), abs=10)
    assert found.p_different == pytest.approx(0.2, abs=0.01)
    assert found.p_not_within < 0.001
    assert found.p_not_beyond == 1
    beyond = interval(9_000, np.full(999, 9_000), alpha=0.05, within_ns=2_000)
    assert beyond.p_not_within == 1
    assert beyond.p_not_beyond == pytest.approx(0.002)
    equal = interval(0, np.zeros(999, dtype=np.int64), alpha=0.05, within_ns=0)
    assert (equal.p_different, equal.p_not_within) == (1, 0.001)


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
    assert "only 1 window of time" in (why_no_interval(Stretches(np.array([1]), np.array([[5_000]])), Fraction(1, 2)) or "")
    many = Stretches(np.array([1]), np.full((30, 1), 1_000))
    assert why_no_interval(many, Fraction(999, 1000)) is None
    assert "only 3 samples" in (why_no_interval(many, Fraction(9999, 10000)) or "")
    assert block_length(30) == 4
