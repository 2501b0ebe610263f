# SPDX-License-Identifier: MIT
"""Quantiles by rank, their bounds by order statistics, and what has no end."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from rtgauge.record.histogram import signed_bin_of
from rtgauge.record.merged_windows import Merged, UnplacedGroup
from rtgauge_ext.papers.frequency.order_statistics import quantile, rank_above, rank_below, ranked

EMPTY = np.empty(0, dtype=np.int64)


def merged(values, *, missed=(), lost=0) -> Merged:
    values = np.asarray(values, dtype=np.int64)
    bins, counts = np.unique(signed_bin_of(values), return_counts=True) if len(values) else (EMPTY, EMPTY)
    missed_bins, missed_counts = (
        np.unique(signed_bin_of(np.asarray(missed, dtype=np.int64)), return_counts=True)
        if len(missed)
        else (EMPTY, EMPTY)
    )
    low, high = (int(values.min()), int(values.max())) if len(values) else (None, None)
    return Merged(
        bins, counts, len(values), len(missed) + lost, low, high, None, None, missed_bins, missed_counts
    )


@settings(max_examples=200)
@given(
    values=st.lists(st.integers(-5_000_000, 5_000_000), min_size=1, max_size=60),
    share=st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=1000),
    signed=st.booleans(),
)
def test_a_quantile_is_the_nearest_rank_within_a_bin(values, share, signed):
    values = values if signed else [abs(value) for value in values]
    ordered = sorted(map(abs, values))
    true = ordered[max(1, -(-share.numerator * len(ordered) // share.denominator)) - 1]
    actual = quantile(ranked(merged(values), absolute=signed), share, 0.95)
    assert actual.ns is not None
    assert true <= actual.ns <= true + abs(true) * 0.01 + 1
    assert actual.ns <= max(ordered)
    assert actual.low_ns is not None
    assert actual.low_ns <= actual.ns
    assert actual.high_ns is None or actual.high_ns >= actual.ns


@settings(max_examples=200)
@given(count=st.integers(1, 5_000_000), share=st.floats(0.01, 0.99999), confidence=st.floats(0.6, 0.999))
def test_the_ranks_are_those_of_the_binomial_distribution(count, share, confidence):
    for rank, probability in (
        (rank_below(share, count, confidence), 1 - confidence),
        (rank_above(share, count, confidence) - 1, confidence),
    ):
        assert binom.cdf(rank, count, share) >= probability - 1e-9
        assert binom.cdf(rank - 1, count, share) < probability + 1e-9


def test_the_ranks_of_more_samples_than_32_bits_count():
    """The normal approximation, which is good to a millionth of the standard deviation there."""
    count, share = 3 * 10**9, 0.95
    deviation = math.sqrt(count * share * (1 - share))
    assert rank_below(share, count, 0.975) == pytest.approx(count * share - 1.959964 * deviation, abs=2)
    assert rank_above(share, count, 0.975) == pytest.approx(count * share + 1.959964 * deviation, abs=2)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_bounds_hold_as_often_as_they_say(share: float):
    """Of 2 000 samples of 200 drawn numbers, at least 95 % of the bounds are on their side of the true
    quantile.
    """
    rng = np.random.default_rng(7)
    drawn = np.sort(rng.random((2_000, 200)), axis=1)
    below = (drawn[:, rank_below(share, 200, 0.95) - 1] <= share).mean()
    above = (drawn[:, rank_above(share, 200, 0.95) - 1] >= share).mean()
    assert below > 0.94
    assert above > 0.94


def test_a_lost_answer_is_later_than_any():
    values = ranked(merged([1_000] * 97, lost=3))
    assert values.count == 100
    assert quantile(values, Fraction(1), 0.95).ns is None
    assert quantile(values, Fraction(95, 100), 0.95).ns == 1_000
    assert quantile(values, Fraction(95, 100), 0.95).high_ns is None
    assert values.later_than(10**12) == 3


def test_a_missed_activation_counts_with_its_later_latency():
    values = ranked(merged([10] * 98 + [3_000_000], missed=[2_000_000, 1_000_000]))
    assert values.count == 101
    assert values.later_than(900_000) == 3
    assert quantile(values, Fraction(1), 0.95).ns == 3_000_000


def test_of_all_of_them_the_largest_is_only_a_lower_bound():
    actual = quantile(ranked(merged(range(1_000))), Fraction(1), 0.95)
    assert (actual.ns, actual.low_ns, actual.high_ns) == (999, 999, None)


@settings(max_examples=100)
@given(st.lists(st.integers(-5_000_000, 5_000_000), min_size=1, max_size=60), st.data())
def test_values_keep_their_signs_if_requested(values, data):
    rank = data.draw(st.integers(1, len(values)))
    true, actual = sorted(values)[rank - 1], ranked(merged(values))
    assert actual.smallest_at(rank) <= true <= actual.largest_at(rank)
    assert actual.largest_at(rank) - actual.smallest_at(rank) <= abs(true) * 0.011 + 1


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, 5_000_000), min_size=1, max_size=40),
    st.lists(st.integers(0, 5_000_000), min_size=1, max_size=40),
    st.data(),
)
def test_unplaced_samples_widen_the_bounds_of_every_rank(placed, hidden, data):
    every = sorted(placed + hidden)
    rank = data.draw(st.integers(1, len(every)))
    group = UnplacedGroup(from_ns=every[0], count=len(hidden), max_ns=every[-1])
    actual = ranked(
        replace(merged(placed), count=len(every), min_ns=every[0], max_ns=every[-1], unplaced=[group])
    )
    assert actual.smallest_at(rank) <= every[rank - 1] <= actual.largest_at(rank)


def test_no_samples_have_no_quantile():
    with pytest.raises(ValueError, match="an empty sample"):
        quantile(ranked(merged([])), Fraction(1, 2), 0.95)
