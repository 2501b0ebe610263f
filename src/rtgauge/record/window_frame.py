# SPDX-License-Identifier: MIT
"""The table of windows (docs/formats/record.md) as a frame of polars: its columns, and how it is made from
windows of the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rtgauge.errors import RecordError
from rtgauge.record.window_columns import WindowColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rtgauge.record.stream import Window

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


def list_column(name: str, values: pl.Series, lengths: npt.NDArray[np.int64]) -> pl.Series:
    """A column of lists of these lengths, which are `values` one after the other."""
    if not len(lengths):
        return pl.Series(name, dtype=pl.List(values.dtype))
    cut = pl.DataFrame({"begin": np.cumsum(lengths) - lengths, "length": lengths})
    return cut.select(pl.lit(values).implode().list.slice("begin", "length").alias(name))[name]


def frame_of_columns(columns: WindowColumns) -> pl.DataFrame:
    """One row per window. Raises RecordError if a number is not one of its column."""
    plain: dict[str, Any] = {
        **columns.integers,
        "phase": columns.phase.tolist(),
        **columns.extremes,
        "m2_ns2": columns.m2_ns2,
    }
    lists = _list_columns(columns, "bins", "counts") | _list_columns(columns, "missed_bins", "missed_counts")
    try:
        frame = pl.DataFrame({name: lists[name] if name in lists else plain[name] for name in SCHEMA})
        # polars takes the classes of types too
        return frame.cast(SCHEMA)  # pyright: ignore[reportArgumentType]
    except (pl.exceptions.PolarsError, OverflowError, TypeError) as error:
        raise RecordError(f"not windows of the engine's stream: {error}") from None


def as_frame(windows: pl.DataFrame | WindowColumns) -> pl.DataFrame:
    """The windows as a table of polars. Raises RecordError if a number is not one of its column."""
    return frame_of_columns(windows) if isinstance(windows, WindowColumns) else windows


def windows_frame(windows: Sequence[Window]) -> pl.DataFrame:
    """One row per window, in the given order. Raises RecordError if the bins are none."""
    return frame_of_columns(WindowColumns.of(windows))


def _list_columns(columns: WindowColumns, bins: str, counts: str) -> dict[str, pl.Series]:
    lists = columns.lists[bins]
    return {
        bins: list_column(bins, pl.Series(lists.bins.astype(np.int32)), lists.lengths),
        counts: list_column(counts, pl.Series(lists.counts.astype(np.uint64)), lists.lengths),
    }
