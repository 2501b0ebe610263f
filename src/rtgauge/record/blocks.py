# SPDX-License-Identifier: MIT
"""Windows merged in time: the blocks of a long step, so few that they fit into memory.

Nothing but the resolution in time is lost: histograms, counts, extremes and sums of a block are those of its windows together.
"""

from __future__ import annotations

import polars as pl

from rtgauge.record.windows import SCHEMA

MOST_BLOCKS = 8_192
"""Of a step. With 1,000 bins each they take 100 MB of memory."""
SPANS = (2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
"""Windows in a block: round times."""
SLICE = 2048
"""Windows that are merged at once."""
FRAMES = 16
"""Frames of blocks that are kept apart before they become one."""
KEY = ["series", "phase", "index"]


def block_span(windows: int) -> int:
    """How many windows of a series make a block, where a step has so many windows of all series."""
    return next((span for span in SPANS if windows <= span * MOST_BLOCKS), SPANS[-1])


class Blocks:
    """Merges windows that come in order of time, `span` of a series to a block."""

    def __init__(self, span: int) -> None:
        self._span = span
        self._closed: list[pl.DataFrame] = []
        self._open = pl.DataFrame(schema=SCHEMA)

    def add(self, windows: pl.DataFrame) -> None:
        """Add windows. Those of a series and phase come in rising order."""
        for part in windows.iter_slices(SLICE):
            numbered = part.with_columns((pl.col("index") // self._span).cast(SCHEMA["index"]))
            merged = merge_alike(pl.concat([self._open, numbered]))
            newest = pl.col("index") == pl.col("index").max().over("series", "phase")
            closed = merged.filter(~newest)
            if len(closed):
                # Small frames kept one by one would hold much more memory than they fill.
                self._closed = [pl.concat([*self._closed, closed], rechunk=True)] if len(self._closed) >= FRAMES else [*self._closed, closed]
            self._open = merged.filter(newest)

    def frame(self) -> pl.DataFrame:
        """The blocks, with the columns of windows; `index` counts the blocks of a series and phase."""
        return pl.concat([*self._closed, self._open])


def merge_alike(windows: pl.DataFrame) -> pl.DataFrame:
    """The windows that agree in series, phase and index as one each, in order of their first."""
    group = windows.with_row_index("row").group_by(KEY, maintain_order=True).agg(pl.col("row"))
    numbered = group.with_row_index("group").explode("row").sort("row")["group"]
    rows = windows.with_columns(numbered)
    mean = pl.col("sum_ns").sum() / pl.col("count").sum()
    own_mean = pl.col("sum_ns") / pl.col("count")
    # Chan, Golub and LeVeque (1979), as windows.merge_moments
    between = pl.when(pl.col("count") > 0).then(pl.col("count") * (own_mean - mean).pow(2)).otherwise(0.0)
    sums = rows.group_by("group", maintain_order=True).agg(
        *(pl.col(name).first() for name in KEY),
        pl.col("start_ns").min(),
        pl.col("end_ns").max(),
        pl.col("count", "missed").sum(),
        pl.col("min_ns").min(),
        pl.col("max_ns").max(),
        pl.col("sum_ns").sum(),
        pl.col("m2_ns2").sum() + between.sum(),
    )
    for bins, counts in (("bins", "counts"), ("missed_bins", "missed_counts")):
        lists = _merged_bins(rows.select("group", bins, counts), bins, counts)
        empty = pl.lit([], dtype=SCHEMA[bins]), pl.lit([], dtype=SCHEMA[counts])
        sums = sums.join(lists, on="group", how="left").with_columns(pl.col(bins).fill_null(empty[0]), pl.col(counts).fill_null(empty[1]))
    return sums.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _merged_bins(rows: pl.DataFrame, bins: str, counts: str) -> pl.DataFrame:
    pairs = rows.filter(pl.col(bins).list.len() > 0).explode(bins, counts)
    summed = pairs.group_by("group", bins).agg(pl.col(counts).sum()).sort("group", bins)
    return summed.group_by("group", maintain_order=True).agg(bins, counts)
