# SPDX-License-Identifier: MIT
"""Reads and writes windows.parquet, and checks it once: against its checksum, before it is decoded, and
whether its values fit together.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

import polars as pl
from polars.io.plugins import register_io_source

from rtgauge.errors import RecordError
from rtgauge.input_file import open_regular
from rtgauge.record.files import for_polars
from rtgauge.record.histogram import OVERFLOW_BIN, lower_ns, upper_ns
from rtgauge.record.parquet_check import check_parquet
from rtgauge.record.record_folder import damaged
from rtgauge.record.window_frame import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from rtgauge.record.record_folder import RecordFile

MOST_COUNT = 1 << 48
MOST_TIME_NS = 1 << 62
ROW_GROUP = 2_048
"""Windows that are decoded at once when a file is read in parts."""
NULLABLE = {"min_ns", "max_ns", "sum_ns", "m2_ns2"}


@contextmanager
def _without_standard_error() -> Generator[None]:
    """A decoder that panics is caught as an exception; what it prints before is of no use to anybody."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def write_windows(windows: pl.DataFrame, file: BinaryIO) -> None:
    """Write a table of windows. Raises OSError."""
    with for_polars(file) as writer:
        windows.write_parquet(writer, row_group_size=ROW_GROUP)


def read_windows(file: BinaryIO, name: object, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The table of windows in an open file, columns as in docs/formats/record.md, or only those that are
    named; `name`: as the user knows it.

    The bytes that are checked are the bytes that are decoded: polars never opens a file, whose name it might
    read as a pattern, a URL or `~`.
    Raises RecordError.
    """
    try:
        data = BytesIO(file.read())
        check_parquet(data, SCHEMA)
        with _without_standard_error():
            frame = pl.read_parquet(data.getvalue(), columns=None if columns is None else list(columns))
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(name, error) from None
    if frame.schema.get("bins") == pl.List(pl.UInt32):
        frame = frame.cast({"bins": SCHEMA["bins"]})  # written before there were signed series
    wrong = [
        name
        for name, kind in SCHEMA.items()
        if (columns is None or name in columns) and frame.schema.get(name) != kind
    ]
    if wrong:
        raise RecordError(f"{name} is not a table of windows (column {wrong[0]}): the record is damaged")
    return frame.select(
        [name for name in SCHEMA if columns is None or name in columns]
    )  # a file may have them in another order


def slices_of(path: Path) -> Iterator[pl.DataFrame]:
    """The windows in a part file that this process has written, some at a time, so that they take little
    memory.

    Raises OSError.
    """
    with open_regular(path) as file:
        table = pl.scan_parquet(file.read())
    for first in range(0, int(table.select(pl.len()).collect().item()), ROW_GROUP):
        yield table.slice(first, ROW_GROUP).collect()


def scan_windows(parts: Sequence[RecordFile]) -> pl.LazyFrame:
    """The tables of windows in the part files of a long step, one after the other, each read and checked when
    it is needed: `collect` raises RecordError.
    """

    def frames(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,  # noqa: ARG001 - polars' signature
        batch: int | None,  # noqa: ARG001
    ) -> Iterator[pl.DataFrame]:
        for part in parts:
            with opened(part) as file:
                frame = read_windows(file, part, columns)
            yield frame if predicate is None else frame.filter(predicate)

    return register_io_source(frames, schema=SCHEMA)


@contextmanager
def opened(file: RecordFile) -> Generator[BinaryIO]:
    """A file of a record, for reading. Raises RecordError."""
    try:
        with file.open() as content:
            yield content
    except OSError as error:
        raise damaged(file, error) from None


def _beyond(name: str) -> pl.Expr:
    """Whether a time is larger than any, either way; the least integer has no absolute value."""
    return ~pl.col(name).is_between(-MOST_TIME_NS, MOST_TIME_NS)


def _rules() -> dict[str, pl.Expr]:
    """What a row may not be -> whether it is."""
    bins, counts, missed_bins, missed_counts = (
        pl.col(name) for name in ("bins", "counts", "missed_bins", "missed_counts")
    )
    count, least, most, total = pl.col("count"), pl.col("min_ns"), pl.col("max_ns"), pl.col("sum_ns")
    placed = counts.list.sum()
    first, last = bins.list.first(), bins.list.last()
    mean, slack = total.cast(pl.Float64) / count, 1_000 + 1e-6 * pl.max_horizontal(least.abs(), most.abs())
    return {
        "an empty value": pl.any_horizontal(
            pl.col(name).is_null() for name in SCHEMA if name not in NULLABLE
        ),
        "an unknown phase": ~pl.col("phase").is_in(["warm-up", "measure"]),
        "times out of order": (pl.col("start_ns") > pl.col("end_ns"))
        | _beyond("start_ns")
        | _beyond("end_ns"),
        "too large a count": (count > MOST_COUNT)
        | (pl.col("missed") > MOST_COUNT)
        | (counts.list.max() > MOST_COUNT)
        | (missed_counts.list.max() > MOST_COUNT),
        "bins without counts": (bins.list.len() != counts.list.len())
        | (missed_bins.list.len() != missed_counts.list.len()),
        "bins out of order": (bins.list.diff().list.min() <= 0)
        | (missed_bins.cast(pl.List(pl.Int64)).list.diff().list.min() <= 0),
        "bins out of range": (first < -OVERFLOW_BIN)
        | (last > OVERFLOW_BIN)
        | (missed_bins.list.max() > OVERFLOW_BIN),
        "an empty bin": pl.any_horizontal(
            part.list.drop_nulls().list.len() != part.list.len()
            for part in (bins, counts, missed_bins, missed_counts)
        ),
        "more values in bins than there are": placed > count,
        "extremes out of order": (least > most)
        | (least.is_null() != most.is_null())
        | _beyond("min_ns")
        | _beyond("max_ns"),
        "a mean outside of its extremes": (mean < least - slack) | (mean > most + slack),
        "a deviation that is no number": ~pl.col("m2_ns2").is_finite() | (pl.col("m2_ns2") < 0),
    }


def check_windows(frame: pl.DataFrame) -> None:
    """Check that the values of every window fit together. Raises ValueError, which says what does not."""
    # In slices: every rule makes lists of its own.
    for part in frame.iter_slices(ROW_GROUP):
        _check_slice(part)
    if (
        float(frame["count"].cast(pl.Float64).sum()) > MOST_COUNT * 16
        or float(frame["missed"].cast(pl.Float64).sum()) > MOST_COUNT * 16
    ):
        raise ValueError("its windows have too many values")


def _check_slice(frame: pl.DataFrame) -> None:
    broken = frame.select([rule.fill_null(value=False).any().alias(name) for name, rule in _rules().items()])
    for name, is_broken in broken.row(0, named=True).items() if frame.height else ():
        if is_broken:
            raise ValueError(f"a window has {name}")
    ends = frame.filter(pl.col("bins").list.len() > 0).select(
        "min_ns",
        "max_ns",
        first=pl.col("bins").list.first().cast(pl.Int64),
        last=pl.col("bins").list.last().cast(pl.Int64),
    )
    # An overflow bin has no outer edge.
    too_low = (ends["min_ns"] > pl.Series(upper_ns(ends["first"].to_numpy()))) & (
        ends["first"] < OVERFLOW_BIN
    )
    too_high = (ends["max_ns"] < pl.Series(lower_ns(ends["last"].to_numpy()))) & (
        ends["last"] > -OVERFLOW_BIN
    )
    if bool(too_low.any()) or bool(too_high.any()):
        raise ValueError("a window has values outside of its extremes")
