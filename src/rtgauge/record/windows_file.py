# SPDX-License-Identifier: MIT
"""Reads and writes windows.parquet. It checks the file before decoding, and the values afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from rtgauge.errors import RecordError
from rtgauge.input_file import open_regular
from rtgauge.record.files import for_polars
from rtgauge.record.histogram import OVERFLOW_BIN, Integers, lower_ns, upper_ns
from rtgauge.record.parquet_check import check_parquet
from rtgauge.record.record_folder import RecordFile, damaged
from rtgauge.record.windows import HISTOGRAMS, INTEGERS, UNKNOWN, Bins, Windows

SCHEMA = {
    "series": pl.UInt32,
    "phase": pl.String,
    "index": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "count": pl.UInt64,
    "missed": pl.UInt64,
    "min_ns": pl.Int64,
    "max_ns": pl.Int64,
    "sum_ns": pl.Int64,
    "m2_ns2": pl.Float64,
    "bins": pl.List(pl.Int32),
    "counts": pl.List(pl.UInt64),
    "missed_bins": pl.List(pl.UInt32),
    "missed_counts": pl.List(pl.UInt64),
}
MOST_COUNT = 1 << 48
MOST_TIME_NS = 1 << 62
ROW_GROUP = 2_048
"""How many windows are decoded at once when a file is read in parts."""
NULLABLE = {"min_ns", "max_ns", "sum_ns", "m2_ns2"}


def table_of(windows: Windows) -> pl.DataFrame:
    """Make a table with one row per window. Raises RecordError if a number does not fit its column."""
    columns = {name: pl.Series(name, getattr(windows, name)) for name in INTEGERS}
    for name in NULLABLE & columns.keys():
        columns[name] = columns[name].replace(UNKNOWN, None)
    columns["phase"] = pl.Series(np.where(windows.measured, "measure", "warm-up"))
    columns["m2_ns2"] = pl.Series(windows.m2_ns2).fill_nan(None)
    for name, counts in HISTOGRAMS.items():
        bins: Bins = getattr(windows, name)
        columns[name], columns[counts] = _lists(bins.bins, bins), _lists(bins.counts, bins)
    try:
        # polars also accepts the classes of types.
        return pl.DataFrame({name: columns[name] for name in SCHEMA}).cast(SCHEMA)  # pyright: ignore[reportArgumentType]
    except pl.exceptions.PolarsError as error:
        raise RecordError(f"its counts and times per window are damaged: {error}") from None


def _lists(flat: npt.NDArray[Any], bins: Bins) -> pl.Series:
    """Return a column of lists. `flat` contains the values of all lists one after another; `bins` says where
    each list begins.
    """
    if not len(bins.lengths):
        return pl.Series(dtype=pl.List(pl.Int64))
    cut = pl.DataFrame({"begin": bins.ends[:-1], "length": bins.lengths})
    return cut.select(lists=pl.lit(pl.Series(flat)).implode().list.slice("begin", "length"))["lists"]


def windows_of(table: pl.DataFrame) -> Windows:
    """Make windows from a table, with or without bins. Raises ValueError for a missing or too large value."""
    if any(table[name].null_count() for name in table.columns if name not in NULLABLE):
        raise ValueError("a window has an empty value")
    if not table["phase"].is_in(["warm-up", "measure"]).all():
        raise ValueError("a window has an unknown phase")
    if table["m2_ns2"].is_finite().not_().any():
        raise ValueError("a window has a deviation that is not a number")
    try:
        columns: dict[str, Any] = {
            name: table[name].cast(pl.Int64).fill_null(UNKNOWN).to_numpy() for name in INTEGERS
        }
        for bins, counts in HISTOGRAMS.items():
            columns[bins] = _bins_of(table, bins, counts)
    except pl.exceptions.PolarsError:
        raise ValueError("a window has too large a count") from None
    return Windows(
        **columns,
        measured=(table["phase"] == "measure").to_numpy(),
        m2_ns2=table["m2_ns2"].fill_null(float("nan")).to_numpy(),
    )


def _bins_of(table: pl.DataFrame, bins: str, counts: str) -> Bins:
    if bins not in table.columns:
        nothing = np.empty(0, dtype=np.int64)
        return Bins(nothing.astype(np.int32), nothing, np.zeros(len(table), dtype=np.int64))
    lengths = table[bins].list.len().cast(pl.Int64).to_numpy()
    if not (table[counts].list.len() == table[bins].list.len()).all():
        raise ValueError("a window has bins without counts")
    flat = [
        table[name].explode().drop_nulls().cast(kind) for name, kind in ((bins, pl.Int32), (counts, pl.Int64))
    ]
    if any(len(values) != lengths.sum() for values in flat):
        raise ValueError("a window has an empty bin")
    return Bins(flat[0].to_numpy(), flat[1].to_numpy(), lengths)


@contextmanager
def _without_standard_error() -> Generator[None]:
    """Suppress what a panicking decoder prints. Its exception is caught."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def write_windows(windows: Windows, file: BinaryIO) -> None:
    """Write windows. Raises OSError, or RecordError if a number does not fit its column."""
    with for_polars(file) as writer:
        table_of(windows).write_parquet(writer, row_group_size=ROW_GROUP)


def read_windows(file: BinaryIO, name: object, *, bins: bool = True) -> Windows:
    """Read the windows in an open file. `name`: the user's name for the file. `bins`: whether to read bins.

    Raises RecordError for a damaged file, ValueError if a value is missing or too large.
    """
    lists = {column for pair in HISTOGRAMS.items() for column in pair}
    return windows_of(
        read_table(file, name, None if bins else [column for column in SCHEMA if column not in lists])
    )


def read_table(file: BinaryIO, name: object, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read a table of windows from an open file: its `columns` (docs/formats/record.md), by default all.
    `name` is the user's name for the file.

    polars decodes the checked bytes. It never opens a file, because it might take the name for a pattern, a
    URL or `~`. Raises RecordError for a damaged file.
    """
    try:
        data = BytesIO(file.read())
        check_parquet(data, SCHEMA)
        with _without_standard_error():
            table = pl.read_parquet(data.getvalue(), columns=None if columns is None else list(columns))
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(name, error) from None
    if table.schema.get("bins") == pl.List(pl.UInt32):
        table = table.cast({"bins": SCHEMA["bins"]})  # the file is older than signed series
    wrong = [
        name
        for name, kind in SCHEMA.items()
        if (columns is None or name in columns) and table.schema.get(name) != kind
    ]
    if wrong:
        raise RecordError(f"{name} is not a table of windows (column {wrong[0]}): the record is damaged")
    return table.select(
        [name for name in SCHEMA if columns is None or name in columns]
    )  # a file may order the columns differently


def slices_of(path: Path) -> Iterator[Windows]:
    """Yield the windows of one of this process's own part files, some at a time. Raises OSError."""
    with open_regular(path) as file:
        table = pl.scan_parquet(file.read())
    for first in range(0, int(table.select(pl.len()).collect().item()), ROW_GROUP):
        yield windows_of(table.slice(first, ROW_GROUP).collect())


def scan_windows(parts: Sequence[RecordFile]) -> pl.LazyFrame:
    """Return a lazy frame over a long step's part files. Each file is read and checked when needed, which may
    raise RecordError.
    """

    def tables(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,  # noqa: ARG001 - polars' signature
        batch: int | None,  # noqa: ARG001
    ) -> Iterator[pl.DataFrame]:
        for part in parts:
            with opened(part) as file:
                table = read_table(file, part, columns)
            yield table if predicate is None else table.filter(predicate)

    return register_io_source(tables, schema=SCHEMA)


@contextmanager
def opened(file: RecordFile) -> Generator[BinaryIO]:
    """Open a file of a record for reading. Raises RecordError if it cannot be opened."""
    try:
        with file.open() as content:
            yield content
    except OSError as error:
        raise damaged(file, error) from None


def check_windows(windows: Windows) -> None:
    """Check that the values of every window are consistent. Raises ValueError, which names the mismatch."""
    for name, is_broken in _rules(windows):
        if is_broken.any():
            raise ValueError(f"a window has {name}")
    if any(numbers.sum(dtype=np.float64) > MOST_COUNT * 16 for numbers in (windows.count, windows.missed)):
        raise ValueError("its windows have more values than a measurement can have")


def _beyond(times: Integers) -> Any:
    """Return whether a time's magnitude exceeds the limit. The smallest integer has no absolute value."""
    return (times < -MOST_TIME_NS) | (times > MOST_TIME_NS)


def _rules(windows: Windows) -> Iterator[tuple[str, Any]]:
    """Yield (a rule's violation in words, whether each window or bin has it)."""
    least, most, total, count = windows.min_ns, windows.max_ns, windows.sum_ns, windows.count
    known = (least != UNKNOWN) & (most != UNKNOWN)
    yield (
        "times out of order",
        (windows.start_ns > windows.end_ns) | _beyond(windows.start_ns) | _beyond(windows.end_ns),
    )
    for numbers in (count, windows.missed, windows.bins.counts, windows.missed_bins.counts):
        yield "too large a count", numbers > MOST_COUNT
    for bins in (windows.bins, windows.missed_bins):
        yield "bins out of order", np.array([not bins.are_rising()])
    yield "bins out of range", np.abs(windows.bins.bins) > OVERFLOW_BIN
    yield "bins out of range", (windows.missed_bins.bins < 0) | (windows.missed_bins.bins > OVERFLOW_BIN)
    yield "more values in its bins than samples", windows.bins.sums > count
    yield (
        "extremes out of order",
        (known & (least > most))
        | ((least == UNKNOWN) != (most == UNKNOWN))
        | (known & (_beyond(least) | _beyond(most))),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / count
    slack = 1_000 + 1e-6 * np.maximum(np.abs(least.astype(np.float64)), np.abs(most.astype(np.float64)))
    yield (
        "a mean outside its extremes",
        known & (total != UNKNOWN) & ~((mean >= least - slack) & (mean <= most + slack)),
    )
    yield "a deviation that is not a number", windows.m2_ns2 < 0
    has_bins = known & (windows.bins.lengths > 0)
    bounds = windows.bins.ends
    first, last = windows.bins.bins[bounds[:-1][has_bins]], windows.bins.bins[bounds[1:][has_bins] - 1]
    # The overflow bin has no outer edge.
    yield (
        "values outside its extremes",
        ((least[has_bins] > upper_ns(first)) & (first < OVERFLOW_BIN))
        | ((most[has_bins] < lower_ns(last)) & (last > -OVERFLOW_BIN)),
    )
