# SPDX-License-Identifier: MIT
"""The exceedance curve and the course over time, against the samples they were made of."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.analysis.confidence import upper_bound
from rtgauge.analysis.course import course
from rtgauge.analysis.exceedance import exceedance
from rtgauge.record.histogram import OVERFLOW_NS

from .windows import frame, row


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.one_of(st.integers(0, 3000), st.integers(0, 12 * 10**9)), max_size=60), missed=st.lists(st.integers(0, 10**6), max_size=10))
def test_the_share_above_x_is_exact(values, missed):
    windows = frame(row(values[: len(values) // 2], missed=missed), row(values[len(values) // 2 :], series=1))
    for filled in (False, True):
        everything = np.array([*values, *(missed if filled else [])], dtype=np.int64)
        curve = exceedance(windows, filled=filled, confidence=0.95)
        x = curve["x_ns"].to_list()
        assert x == sorted(set(x))
        for at, above, share, upper in curve.rows():
            assert above == (everything > at).sum()
            assert share == above / len(everything)
            assert upper == pytest.approx(upper_bound(above, len(everything)), rel=1e-9)
        if len(values):
            assert curve["above"][-1] == 0


def test_without_a_confidence_there_is_no_bound():
    assert exceedance(frame(row([1, 2, 3])))["upper"].to_list() == [None, None, None]


def test_nothing_counted_is_an_empty_curve():
    assert exceedance(frame(row([]))).height == 0


def test_the_curve_ends_where_a_foreign_histogram_does():
    r = {**row([12_000] * 98), "count": 100, "max_ns": 65_000}
    curve = exceedance(frame(r), limits_ns={0: 20_000})
    assert curve.select("x_ns", "above").rows() == [(12_099, 2), (65_000, 0)]


def test_overflow_is_not_placed():
    curve = exceedance(frame(row([100, 2 * OVERFLOW_NS, 3 * OVERFLOW_NS])))
    assert curve.select("x_ns", "above").rows() == [(100, 2), (3 * OVERFLOW_NS, 0)]


@settings(max_examples=60, deadline=None)
@given(maxima=st.lists(st.one_of(st.none(), st.integers(0, 10**6)), min_size=1, max_size=80), points=st.integers(1, 100))
def test_a_course_keeps_every_maximum_and_count(maxima, points):
    rows = [row([] if m is None else [m], index=i, missed=[5] * (i % 3)) for i, m in enumerate(maxima)]
    result = course(frame(*rows), points=points)
    assert result.height <= points
    assert result["count"].sum() == sum(m is not None for m in maxima)
    assert result["missed"].sum() == sum(i % 3 for i in range(len(maxima)))
    for part in result.iter_rows(named=True):
        inside = [m for i, m in enumerate(maxima) if part["start_ns"] <= i * 10**9 < part["end_ns"] and m is not None]
        assert part["max_ns"] == max(inside, default=None)
        assert part["min_ns"] == min(inside, default=None)
    assert result["start_ns"].is_sorted()
    if points >= len(maxima):
        assert result.height == len(maxima)


def test_series_and_phases_stay_apart():
    rows = [row([9], phase="warm-up"), row([1]), row([2], series=1)]
    rows[1]["start_ns"], rows[1]["end_ns"] = 10**9, 2 * 10**9
    result = course(frame(*rows), points=1)
    assert result.select("series", "phase", "start_ns", "max_ns").rows() == [(0, "warm-up", 0, 9), (0, "measure", 10**9, 1), (1, "measure", 0, 2)]
    assert result.schema["max_ns"] == pl.Int64
    with pytest.raises(ValueError, match="points"):
        course(frame(*rows), points=0)
