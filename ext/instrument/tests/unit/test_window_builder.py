# SPDX-License-Identifier: MIT
"""Windows from samples: the same as one computes from all of them at once, however they are cut into
pieces.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.windows import info

from rtgauge.record.histogram import signed_bin_of
from rtgauge.record.summary import summarise_step
from rtgauge.record.window_table import WindowTable
from rtgauge.record.windows_file import table_of
from rtgauge_ext.instrument.window_builder import WindowBuilder, summary_line

SECOND = 10**9
SAMPLES = st.lists(
    st.tuples(st.integers(0, 5 * SECOND - 1), st.integers(-(10**10), 10**10), st.booleans()),
    min_size=1,
    max_size=60,
)


def _array(values) -> np.ndarray:
    return np.asarray(list(values), dtype=np.int64)


@given(SAMPLES, st.lists(st.integers(0, 60), max_size=4), st.integers(-(10**12), 10**12))
def test_any_pieces_make_the_windows_of_the_whole(samples, cuts, start_ns):
    samples.sort()
    builder, table = WindowBuilder(3, start_ns), WindowTable()
    bounds = [0, *sorted(min(cut, len(samples)) for cut in cuts), len(samples)]
    for begin, end in itertools.pairwise(bounds):
        answered = [(start_ns + time, value) for time, value, missed in samples[begin:end] if not missed]
        missed = [(start_ns + time, abs(value)) for time, value, missed in samples[begin:end] if missed]
        for window in builder.add(
            *(_array(row) for row in zip(*answered, strict=True)) if answered else (_array([]), _array([])),
            *(_array(row) for row in zip(*missed, strict=True)) if missed else (),
        ):
            table.add(window)
    for window in builder.close(start_ns + 5 * SECOND):
        table.add(window)
    windows = table.windows()
    frame = table_of(windows)
    assert frame["index"].to_list() == [0, 1, 2, 3, 4]
    assert frame["start_ns"].to_list() == [start_ns + i * SECOND for i in range(5)]
    for second, row in enumerate(frame.iter_rows(named=True)):
        inside = [value for time, value, missed in samples if time // SECOND == second and not missed]
        overdue = [abs(value) for time, value, missed in samples if time // SECOND == second and missed]
        assert (row["count"], row["missed"], row["sum_ns"]) == (len(inside), len(overdue), sum(inside))
        assert (row["min_ns"], row["max_ns"]) == ((min(inside), max(inside)) if inside else (None, None))
        assert row["m2_ns2"] == pytest.approx(np.var(inside) * len(inside) if inside else 0, rel=1e-6, abs=1)
        assert sorted(np.repeat(row["bins"], row["counts"]).tolist()) == sorted(
            signed_bin_of(inside).tolist()
        )
        assert sorted(np.repeat(row["missed_bins"], row["missed_counts"]).tolist()) == sorted(
            signed_bin_of(overdue).tolist()
        )
    largest = sorted((abs(value) for _, value, missed in samples if not missed), reverse=True)[:20]
    assert [abs(outlier.value_ns) for outlier in builder.outliers] == largest
    summary = summary_line(3, builder.totals(), builder.warm_up())
    assert summarise_step(windows, [info(3, "jitter")], [summary]).marks == []


def test_the_warm_up_is_counted_apart():
    builder, table = WindowBuilder(0, 0), WindowTable()
    builder.begin("warm-up", 0)
    windows = [*builder.add(_array([5]), _array([900])), *builder.close(SECOND // 2)]
    builder.begin("measure", SECOND)
    windows += [*builder.add(_array([SECOND + 1, 3 * SECOND]), _array([10, 20])), *builder.close(4 * SECOND)]
    for window in windows:
        table.add(window)
    frame = table_of(table.windows())
    assert frame.filter(pl.col("phase") == "warm-up")["end_ns"].to_list() == [SECOND // 2]
    assert frame.filter(pl.col("phase") == "measure")["count"].to_list() == [1, 0, 1]
    assert (builder.totals().count, builder.warm_up().count, builder.warm_up().max_ns) == (2, 1, 900)
    assert [outlier.value_ns for outlier in builder.outliers] == [20, 10]


def test_a_gap_of_days_is_not_filled_with_empty_windows():
    builder = WindowBuilder(0, 0)
    windows = [*builder.add(_array([0, 40 * 86_400 * SECOND]), _array([1, 2])), *builder.close()]
    assert [(window.index, window.count) for window in windows] == [(0, 1), (40 * 86_400, 1)]
