# SPDX-License-Identifier: MIT
"""The course of the maxima over time: one value a window, or fewer that keep every maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def course(windows: pl.DataFrame, *, points: int = 1000, origin_ns: int | None = None) -> pl.DataFrame:
    """For each series, its windows in time order, neighbours put together where they are more than `points`.

    Windows put together keep the largest of their maxima, the smallest of their minima, and the sums of their counts and missed ones:
    a peak is never lost, only placed to within the row's `start_ns` ... `end_ns`. Warm-up and measured phase stay apart.
    Times are relative to `origin_ns` (default: the first window's start). Columns: series u32, phase str, start_ns i64, end_ns i64, count
    u64, missed u64, min_ns i64?, max_ns i64? (null where nothing was counted). Raises ValueError for fewer than 1 point.
    """
    import polars as pl

    if points < 1:
        raise ValueError(f"{points} points cannot show a course")
    first = windows["start_ns"].min() if origin_ns is None else origin_ns
    origin = first if isinstance(first, int) else 0
    ordered = windows.select("series", "phase", "start_ns", "end_ns", "count", "missed", "min_ns", "max_ns").sort("series", "start_ns")
    together = (pl.len().over("series", "phase") + points - 1) // points
    group = pl.int_range(pl.len()).over("series", "phase") // together
    return (
        ordered.with_columns(group.alias("group"))
        .group_by("series", "phase", "group", maintain_order=True)
        .agg(pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("count").sum(), pl.col("missed").sum(), pl.col("min_ns").min(), pl.col("max_ns").max())
        .with_columns(pl.col("start_ns") - origin, pl.col("end_ns") - origin)
        .drop("group")
    )
