# SPDX-License-Identifier: MIT
"""The table of windows: both forms of the stream, part files, and long steps merged in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from rtgauge.errors import RecordError
from rtgauge.record import window_table
from rtgauge.record.histogram import OVERFLOW_BIN, bin_of, encode
from rtgauge.record.merged_windows import UnplacedGroup, merge
from rtgauge.record.stream import Window
from rtgauge.record.window_table import MOST_BLOCKS, WindowTable, block_span, in_blocks
from rtgauge.record.windows import Windows
from rtgauge.record.windows_file import SCHEMA, check_windows, table_of, windows_of

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = st.dictionaries(st.integers(-OVERFLOW_BIN, OVERFLOW_BIN), st.integers(1, 2**32 - 1), max_size=20).map(
    lambda pairs: sorted(pairs.items())
)


def table_of_lines(lines: list[Window]) -> pl.DataFrame:
    return table_of(Windows.of(lines))


def gaps(pairs: list[tuple[int, int]]) -> str:
    before, numbers = 0, []
    for at, count in pairs:
        numbers += [at - before, count]
        before = at
    return encode(numbers)


def window(series: int, index: int, values: list[int], phase: str = "measure") -> Window:
    bins, counts = np.unique(bin_of(values), return_counts=True)
    array = np.asarray(values, dtype=np.int64)
    return Window(
        type="window", series=series, phase="measure" if phase == "measure" else "warm-up", index=index,
        start_ns=index * 10**9, end_ns=(index + 1) * 10**9,
        count=len(values), missed=index % 2, min_ns=min(values, default=None),
        max_ns=max(values, default=None), sum_ns=sum(values),
        m2_ns2=float(((array - array.mean()) ** 2).sum()) if values else 0.0,
        bins=gaps(list(zip(bins.tolist(), counts.tolist(), strict=True))),
        missed_bins=encode([700, 1]) if index % 2 else "",
    )  # fmt: skip


@given(st.lists(st.tuples(PAIRS, PAIRS), min_size=1, max_size=8))
def test_a_table_has_the_bins_of_the_lines(
    rows: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]],
):
    empty = window(0, 0, [])
    lines = [
        empty.model_copy(
            update={"bins": gaps(plain), "missed_bins": gaps([(abs(at), n) for at, n in missed[-1:]])}
        )
        for plain, missed in rows
    ]
    frame = table_of_lines(lines)
    assert_frame_equal(frame, table_of(windows_of(frame)))
    assert frame.schema == pl.Schema(SCHEMA)
    assert [
        list(zip(bins, counts, strict=True)) for bins, counts in frame.select("bins", "counts").rows()
    ] == [plain for plain, _ in rows]


@pytest.mark.parametrize(
    "bins",
    [
        encode([5]),
        encode([5, 1, 0, 1]),
        encode([5, 1, -2, 1]),
        encode([5, 0]),
        encode([OVERFLOW_BIN + 1, 1]),
    ],
)
def test_bins_that_are_none_are_refused(bins: str):
    with pytest.raises(RecordError):
        table_of_lines([window(0, 0, [1, 2, 3]), window(0, 0, []).model_copy(update={"bins": bins})])


def test_a_count_that_no_column_holds_is_refused():
    line = window(0, 0, []).model_copy(update={"count": 2**70})
    with pytest.raises(RecordError, match="per window are damaged"):
        table_of_lines([line])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts and long steps of a few windows."""
    for name, value in (("PACK_EVERY", 8), ("FIRST_PART", 16), ("MOST_PART", 32), ("MOST_WINDOWS", 100)):
        monkeypatch.setattr(window_table, name, value)


def fill(table: WindowTable, seconds: int, series: int = 2) -> Windows:
    rng = np.random.default_rng(1)
    windows = [
        window(number, index, rng.integers(0, 20_000_000, rng.integers(0, 30)).tolist())
        for index in range(seconds)
        for number in range(series)
    ]
    for item in windows:
        table.add(item)
    return Windows.of(windows)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["warm-up", "measure"]),
            st.lists(st.integers(0, 20_000_000_000), max_size=9),
        ),
        max_size=12,
    )
)
def test_merged_windows_have_the_figures_of_their_values(rows: list[tuple[int, str, list[int]]]):
    windows = Windows.of(
        [window(series, index, values, phase) for index, (series, phase, values) in enumerate(rows)]
    )
    check_windows(windows)
    for chosen, numbers in ((0, {0}), ([1, 2], {1, 2}), (None, {0, 1, 2})):
        for phase in ("warm-up", "measure"):
            own = [at for at, row in enumerate(rows) if row[0] in numbers and row[1] == phase]
            values = [value for at in own for value in rows[at][2]]
            merged = merge(windows, chosen, measured=phase == "measure")
            assert np.repeat(merged.bins, merged.counts).tolist() == sorted(bin_of(values).tolist())
            assert merged.missed == sum(at % 2 for at in own) == merged.missed_counts.sum()
            assert (merged.count, merged.sum_ns) == (len(values), sum(values))
            assert (merged.min_ns, merged.max_ns) == (min(values, default=None), max(values, default=None))
            assert merged.m2_ns2 == pytest.approx(np.var(values) * len(values) if values else 0, rel=1e-9)


def test_columns_with_values_in_no_bin_say_from_where_they_are():
    columns = Windows.of([window(0, 0, [5, 7]).model_copy(update={"count": 3, "max_ns": 90})])
    assert merge(columns).unplaced == [UnplacedGroup(8, 1, 90)]


@pytest.mark.usefixtures("small")
def test_part_files_come_back_if_the_step_is_short(tmp_path: Path):
    written: list[int] = []
    table = WindowTable(tmp_path, written=lambda: written.append(1))
    expected = fill(table, 45)
    assert len(list(tmp_path.glob("windows-*.parquet"))) == len(written) == 3
    assert_frame_equal(table_of(table.windows()), table_of(expected))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small")
def test_a_long_steps_part_files_hold_the_same_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rtgauge.record.window_table.MOST_BLOCKS", 20)
    monkeypatch.setattr("rtgauge.record.window_table.SLICE", 7)
    table = WindowTable(tmp_path)
    expected = fill(table, 83)
    blocks = table.windows()
    parts = [pl.read_parquet(path) for path in sorted(tmp_path.glob("windows-*.parquet"))]
    assert_frame_equal(pl.concat(parts), table_of(expected))
    assert all(len(part) <= 40 for part in parts)
    assert len(blocks) == 2 * -(-83 // 10)
    assert blocks.index[blocks.series == 1].tolist() == list(range(9))
    assert blocks.end_ns[0] == 10 * 10**9
    for series in (0, 1, None):
        whole, merged = merge(expected, series), merge(blocks, series)
        for name in ("bins", "counts", "missed_bins", "missed_counts"):
            assert getattr(whole, name).tolist() == getattr(merged, name).tolist()
        assert (whole.count, whole.missed, whole.min_ns, whole.max_ns, whole.sum_ns) == (
            merged.count,
            merged.missed,
            merged.min_ns,
            merged.max_ns,
            merged.sum_ns,
        )
        assert merged.m2_ns2 == pytest.approx(whole.m2_ns2, rel=1e-12)


@pytest.mark.usefixtures("small")
def test_wide_windows_make_a_step_long_and_its_blocks_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(window_table, "PART_BYTES", 2_000)
    monkeypatch.setattr(window_table, "MOST_BYTES", 20_000)
    monkeypatch.setattr(window_table, "MOST_WINDOWS", 1_000)
    table = WindowTable(tmp_path)
    expected = fill(table, 83)
    blocks = table.windows()
    assert len(blocks) < len(expected)
    assert blocks.nbytes <= 20_000 < expected.nbytes
    assert blocks.count.sum() == expected.count.sum()
    parts = [pl.read_parquet(path) for path in sorted(tmp_path.glob("windows-*.parquet"))]
    assert_frame_equal(pl.concat(parts), table_of(expected))
    assert max(map(len, parts)) < 32


@pytest.mark.usefixtures("small")
def test_the_other_end_has_series_on_the_targets_clock(tmp_path: Path):
    table = WindowTable(tmp_path, "windows-slave")
    table.place(3, 500)
    fill(table, 20)
    other = WindowTable(tmp_path, "windows-master")
    other.count = 1_000
    windows = table.windows(other)
    assert next(path.name for path in tmp_path.iterdir()).startswith("windows-slave-")
    assert set(windows.series.tolist()) == {3, 4}
    assert windows.start_ns.min() == 500


def test_warm_up_and_measured_windows_are_apart():
    rows = [window(0, index, [index + 1], phase) for phase in ("warm-up", "measure") for index in range(4)]
    blocks = table_of(in_blocks([Windows.of(rows)], 3))
    assert blocks.select("phase", "index", "count", "max_ns").sort("phase", "index").rows() == [
        ("measure", 0, 3, 3), ("measure", 1, 1, 4), ("warm-up", 0, 3, 3), ("warm-up", 1, 1, 4),
    ]  # fmt: skip


@given(st.integers(1, 7 * 10**8))
def test_the_blocks_of_a_step_are_few(windows: int):
    assert windows <= block_span(windows) * MOST_BLOCKS
