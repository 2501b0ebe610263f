# SPDX-License-Identifier: MIT
"""The bins keep what docs/formats/histogram.md says of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.record.histogram import (
    EDGES_NS,
    OVERFLOW_BIN,
    OVERFLOW_NS,
    SEGMENTS,
    bin_of,
    lower_ns,
    signed_bin_of,
    upper_ns,
)

values = st.one_of(st.integers(0, 1000), st.integers(0, 10**7), st.integers(0, OVERFLOW_NS - 1))


@settings(max_examples=500)
@given(values)
def test_a_value_lies_in_its_bin_and_the_bin_is_narrow(value):
    index = int(bin_of(value))
    lower, upper = int(EDGES_NS[index]), int(upper_ns(index))
    assert lower <= value <= upper
    if value >= 10:
        assert upper - value <= value / 100
    if value < 10_000_000:
        # 1 us bins are sums of these: none reaches over a whole us.
        assert lower // 1000 == upper // 1000


def test_first_bins_are_those_of_the_document():
    document = [
        0,
        200,
        350,
        450,
        550,
        700,
        800,
        900,
        1050,
        1150,
        11050,
        11150,
        11300,
        11400,
        11500,
        11650,
        11750,
        11850,
        12000,
    ]
    assert bin_of([first for first, _ in SEGMENTS]).tolist() == document
    assert OVERFLOW_BIN == 12100


def test_bins_are_in_order_without_a_gap():
    assert (np.diff(EDGES_NS) > 0).all()
    assert (upper_ns(np.arange(OVERFLOW_BIN)) + 1 == EDGES_NS[1:]).all()


@settings(max_examples=100)
@given(st.integers(OVERFLOW_NS, 2**62))
def test_ten_seconds_or_more_overflow(value):
    assert int(bin_of(value)) == OVERFLOW_BIN
    assert int(upper_ns(OVERFLOW_BIN)) == OVERFLOW_NS


@given(st.integers(-(2**62), -1))
def test_a_negative_value_has_no_bin(value):
    with pytest.raises(ValueError, match="negative"):
        bin_of([5, value])


@given(st.integers(min_value=-(10**11), max_value=10**11))
def test_the_bins_of_negative_values_mirror_the_others(value):
    index = int(signed_bin_of(value))
    assert int(signed_bin_of(-value)) == -index
    assert abs(index) == int(bin_of(abs(value)))
    if abs(value) < OVERFLOW_NS:
        assert int(lower_ns(index)) <= value <= int(upper_ns(index))
    assert int(lower_ns(-index)) == -int(upper_ns(index)) or index == 0
    assert (
        int(upper_ns(index)) < int(lower_ns(index + 1))
        or abs(index) >= OVERFLOW_BIN
        or index + 1 > OVERFLOW_BIN
    )
