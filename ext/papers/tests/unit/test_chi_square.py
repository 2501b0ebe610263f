# SPDX-License-Identifier: MIT
"""The chi-square test against the paper, scipy and printed tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from rtgauge.record.histogram import Histogram, bin_of
from rtgauge_ext.papers.chi_square import (
    critical_value,
    microseconds,
    paper_test,
    reshape,
)


def histogram(counts, first=0):
    at = np.arange(first, first + len(counts))
    counts = np.array(counts, dtype=np.int64)
    return Histogram(at[counts > 0], counts[counts > 0])


def test_the_papers_critical_value():
    """Delgado and Choi (2020), table 4: 22 bins, 5 %."""
    assert critical_value(22, 0.05) == pytest.approx(33.924, abs=5e-4)


@pytest.mark.parametrize(
    ("freedom", "alpha", "value"),
    [(1, 0.05, 3.841), (10, 0.05, 18.307), (10, 0.01, 23.209), (100, 0.05, 124.342)],
)
def test_critical_values_of_printed_tables(freedom, alpha, value):
    assert critical_value(freedom, alpha) == pytest.approx(value, abs=6e-4)
    assert chi2.sf(critical_value(freedom, alpha), freedom) == pytest.approx(alpha)


def test_the_papers_test_over_22_bins():
    baseline = histogram([100] * 22, first=1)
    actual = paper_test(histogram([110, 90, *[100] * 20], first=1), baseline)
    assert (actual.degrees_of_freedom, actual.bins, actual.empty_bins_merged, actual.rejected) == (
        22,
        22,
        0,
        False,
    )
    assert actual.critical == pytest.approx(33.924, abs=5e-4)
    # (10^2 + 10^2) / 100 on counts, but 100 in place of 2200 samples
    assert actual.statistic == pytest.approx(2.0 / 22)


def test_the_statistic_is_scipys_also_where_the_sizes_differ():
    rng = np.random.default_rng(1)
    base, side = rng.integers(5, 500, 30), rng.integers(5, 900, 30)
    expected = base * side.sum() / base.sum()
    assert paper_test(histogram(side), histogram(base)).statistic == pytest.approx(
        chisquare(side, expected).statistic / side.sum() * 100
    )


def test_values_outside_the_baselines_range_go_to_its_ends():
    baseline = Histogram(np.array([3, 4, 7]), np.array([10, 20, 30]))
    side = Histogram(np.array([0, 2, 3, 5, 6, 7, 90]), np.array([1, 2, 4, 8, 16, 32, 64]))
    assert reshape(side, baseline).tolist() == [7, 24, 96]
    assert paper_test(side, baseline).empty_bins_merged == 2


def test_identical_histograms_have_no_statistic():
    same = histogram([5, 50, 500, 50, 5])
    test = paper_test(same, same)
    assert test.statistic == pytest.approx(0)
    assert not test.rejected


def test_one_bin_empty_and_equal_samples_are_refused():
    item, more, none = histogram([9]), histogram([5, 50, 5]), histogram([])
    for test, why in (
        (paper_test(more, item), "in one bin"),
        (paper_test(none, more), "sample is empty"),
        (paper_test(more, none), "baseline is empty"),
    ):
        assert why in (test.cannot or "")
        assert test.statistic is None


def test_bins_become_the_papers_microseconds():
    at, counts = microseconds(bin_of([0, 999, 1_000, 1_990, 150_500, 9_999_999]), [1, 2, 3, 4, 5, 6])
    assert at.tolist() == [0, 1, 150, 9_999]
    assert counts.tolist() == [3, 7, 5, 6]


def test_table_4_of_the_paper_cannot_come_from_raw_counts():
    """Two samples of one distribution: by chance alone the statistic is near twice the number of bins, above
    the paper's critical value.
    """
    rng = np.random.default_rng(7)
    shares = np.full(22, 1 / 22)
    actual = [
        paper_test(
            histogram(rng.multinomial(6_000_000, shares)),
            histogram(rng.multinomial(6_000_000, shares)),
        )
        for _ in range(200)
    ]
    on_counts = np.array([test.statistic for test in actual]) * 6_000_000 / 100
    assert on_counts.mean() == pytest.approx(2 * 21, rel=0.1)
    assert (on_counts > actual[0].critical).sum() > 100
