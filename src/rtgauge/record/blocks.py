# SPDX-License-Identifier: MIT
"""Windows merged in time: the blocks of a long step, so few that they fit into memory.

Nothing but the resolution in time is lost: histograms, counts, extremes and sums of a block are those of its
windows together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from rtgauge.record.window_frame import SCHEMA, list_column

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_BLOCKS = 8_192
"""Of a step. With 1,000 bins each they take 100 MB of memory."""
SPANS = (2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
"""Windows in a block: round times."""
SLICE = 2048
"""Windows that are merged at once."""
GROUPS = 64
"""Blocks whose bins are counted at once."""
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
                self._closed = (
                    [pl.concat([*self._closed, closed], rechunk=True)]
                    if len(self._closed) >= FRAMES
                    else [*self._closed, closed]
                )
            self._open = merged.filter(newest)

    def frame(self) -> pl.DataFrame:
        """The blocks, with the columns of windows; `index` counts the blocks of a series and phase."""
        return pl.concat([*self._closed, self._open])


def in_blocks(windows: Iterable[pl.DataFrame], span: int) -> pl.DataFrame:
    """Windows that come in order of time, `span` of a series merged into one each; `index` counts these of a
    series and phase.
    """
    blocks = Blocks(span)
    for part in windows:
        blocks.add(part)
    return blocks.frame()


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
    lists = [
        column
        for names in (("bins", "counts"), ("missed_bins", "missed_counts"))
        for column in _merged_bins(rows, len(sums), *names)
    ]
    return sums.with_columns(lists).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _merged_bins(rows: pl.DataFrame, groups: int, bins: str, counts: str) -> list[pl.Series]:
    """The columns `bins` and `counts` of the groups 0 to `groups` - 1, of which the column "group" of `rows`
    says where each belongs.
    """
    lengths = rows[bins].list.len().to_numpy()
    at, count = (rows[name].explode().drop_nulls().cast(pl.Int64).to_numpy() for name in (bins, counts))
    group = np.repeat(rows["group"].to_numpy().astype(np.int64), lengths)
    low, width = (int(at.min()), int(at.max() - at.min()) + 1) if len(at) else (0, 1)
    merged_at, merged_counts, merged_lengths = [[np.empty(0, dtype=np.int64)] for _ in range(3)]
    for first in range(0, groups, GROUPS):
        here = (group >= first) & (group < first + GROUPS)
        totals = np.zeros((min(GROUPS, groups - first), width), dtype=np.int64)
        np.add.at(totals, (group[here] - first, at[here] - low), count[here])
        filled = totals > 0
        merged_at.append(np.nonzero(filled)[1] + low)
        merged_counts.append(totals[filled])
        merged_lengths.append(filled.sum(axis=1))
    in_lists = np.concatenate(merged_lengths)
    return [
        list_column(name, pl.Series(np.concatenate(flat)), in_lists)
        for name, flat in ((bins, merged_at), (counts, merged_counts))
    ]
