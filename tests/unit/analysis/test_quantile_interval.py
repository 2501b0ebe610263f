# SPDX-License-Identifier: MIT
"""The standard error of dependent scores against its definition and known variances; the bounds of a
quantile, and what bounds nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.analysis.quantile_interval import (
    ENDLESS_NS,
    RunQuantile,
    WindowCounts,
    cosine_terms,
    error_of_sum,
    why_no_interval,
)


def of_windows(windows: list[np.ndarray]) -> WindowCounts:
    """Whole numbers, one array a window; values without width."""
    values, where = np.unique(np.concatenate(windows), return_inverse=True)
    counts = np.zeros((len(windows), len(values)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(windows)), [len(window) for window in windows]), where), 1)
    values = values.astype(np.int64)
    return WindowCounts(values, counts, values, values)


@given(st.lists(st.integers(0, 1000), min_size=20, max_size=200), st.integers(1, 9999))
def test_a_quantile_is_the_nearest_rank(values, per_ten_thousand):
    quantile = RunQuantile(
        of_windows([np.array([value]) for value in values]), Fraction(per_ten_thousand, 10_000)
    )
    assert (
        quantile.low_ns
        == quantile.high_ns
        == sorted(values)[max(1, -(-per_ten_thousand * len(values) // 10_000)) - 1]
    )
    assert quantile.bounds(0) == (quantile.low_ns, quantile.high_ns)


def test_the_terms_are_those_that_lazarus_and_others_recommend():
    """0.4 n^(2/3)."""
    assert [cosine_terms(n) for n in (20, 60, 200, 1_000)] == [2, 6, 13, 40]


def test_the_error_of_one_cosine_is_its_transform():
    """A series that is the second cosine has all of its sum of squares, n / 2, in one of the terms."""
    number, terms = 60, 6
    cosine = np.cos(2 * np.pi * (np.arange(number) + 0.5) / number)
    error, freedom = error_of_sum(cosine)
    assert freedom == terms
    assert error == pytest.approx(math.sqrt(number * (number / 2) / terms))
    assert error_of_sum(np.full(60, 7.0))[0] == pytest.approx(0, abs=1e-9)  # a mean has no part in it


@pytest.mark.parametrize("dependence", [0.0, 0.5])
def test_the_error_is_that_of_dependent_values(dependence):
    """The variance of the sum of n values of an AR(1) is n / (1 - r)² for shocks of variance 1, as n
    grows.
    """
    rng = np.random.default_rng(1)
    squares = []
    for _ in range(200):
        series = np.zeros(400)
        for i, shock in enumerate(rng.standard_normal(400)):
            series[i] = dependence * series[i - 1] + shock
        squares.append(error_of_sum(series)[0] ** 2)
    assert np.mean(squares) == pytest.approx(400 / (1 - dependence) ** 2, rel=0.12)


def test_an_independent_runs_bounds_are_binomial():
    """The rank of the true median among n is binomial, with the deviation sqrt(n) / 2.

    Its bounds hold it: the true one is 5,000.
    """
    widths = []
    for seed in range(20):
        windows = list(np.random.default_rng(seed).permutation(10_000).reshape(200, 50))
        low, high = RunQuantile(of_windows(windows), Fraction(1, 2)).bounds(1)
        widths.append(high - low)
        assert low <= 5_000 <= high
    assert np.mean(widths) == pytest.approx(100, rel=0.15)


def test_differing_windows_widen_the_bounds():
    rng = np.random.default_rng(2)
    level = np.repeat(rng.integers(0, 10_000, 20), 10)  # ten windows alike, then another level
    together = rng.integers(0, 1_000, (200, 500)) + level[:, None]
    apart = rng.permutation(together.ravel()).reshape(200, 500)

    def width(windows):
        low, high = RunQuantile(of_windows(list(windows)), Fraction(1, 2)).bounds(2)
        return high - low

    assert width(together) > 10 * width(apart)


def test_where_the_run_has_no_more_samples_the_bound_is_endless():
    rng = np.random.default_rng(3)
    burst = [rng.integers(0, 1_000, 500) for _ in range(60)]
    burst[17][:200] = 5_000  # all that is beyond the 99 % quantile happened at once
    quantile = RunQuantile(of_windows(burst), Fraction(99, 100))
    assert quantile.bounds(3)[1] == ENDLESS_NS
    assert RunQuantile(of_windows(burst), Fraction(1, 2)).bounds(1_000) == (-ENDLESS_NS, ENDLESS_NS)


def test_too_few_windows_or_samples_are_reported():
    item = np.array([1])
    assert "only 1 window of time" in (
        why_no_interval(WindowCounts(item, np.array([[5_000]]), item, item), Fraction(1, 2)) or ""
    )
    many = WindowCounts(item, np.full((30, 1), 1_000), item, item)
    assert why_no_interval(many, Fraction(999, 1000)) is None
    assert "only 3 samples lie" in (why_no_interval(many, Fraction(9999, 10000)) or "")
