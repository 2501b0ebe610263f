# SPDX-License-Identifier: MIT
"""Effect sizes against scipy and known values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, wasserstein_distance
from scipy.stats.contingency import association

from rtgauge.analysis.effect_size import cramers_v, wasserstein

values = st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 100)), min_size=1, max_size=30)


@given(values, values)
def test_wasserstein_is_scipys(one, other):
    (a, wa), (b, wb) = zip(*one, strict=True), zip(*other, strict=True)
    assert wasserstein(a, wa, b, wb) == pytest.approx(wasserstein_distance(a, b, wa, wb), rel=1e-6, abs=1e-3)


def test_a_shifted_sample_is_as_far_as_it_was_shifted():
    at = np.array([1_000, 2_000, 5_000])
    assert wasserstein(at + 700, [1, 2, 3], at, [10, 20, 30]) == pytest.approx(700)
    with pytest.raises(ValueError, match="empty"):
        wasserstein([], [], [1], [1])


def test_cramers_v_of_a_known_table():
    """The 2 x 2 table of scipy's manual and the extremes 0 and 1."""
    table = np.array([[12, 3], [17, 16]])
    statistic = chi2_contingency(table, correction=False).statistic
    assert cramers_v(statistic, 48, 2, 2) == pytest.approx(association(table, method="cramer"))
    assert cramers_v(100.0, 100, 2, 2) == 1
    assert cramers_v(0.0, 100, 2, 5) == 0
    assert cramers_v(1.0, 10, 1, 5) is None
