# SPDX-License-Identifier: MIT
"""The windows of a step (docs/formats/record.md): the columns of their table, and merging them into one histogram, count, mean and deviation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy.typing as npt

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

SLICE, MOST_AT_ONCE = 512, 8_192
"""Windows whose bins are taken apart at once, and of which those wanted are looked for at once."""


@dataclass(frozen=True)
class Group:
    """Values outside the histogram: none is below `from_ns`; the largest may be known (`max_ns`)."""

    from_ns: int
    count: int
    max_ns: int | None


@dataclass(frozen=True)
class Merged:
    """Windows merged into one.

    `count` values, of which those in `unplaced` are in no bin (imported histograms with a limit of their own; docs/formats/record.md).
    `sum_ns` and `m2_ns2` (sum of squared deviations from the mean) are None if the source does not have them.
    """

    bins: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    count: int
    missed: int
    min_ns: int | None
    max_ns: int | None
    sum_ns: int | None
    m2_ns2: float | None
    missed_bins: npt.NDArray[np.int64]
    missed_counts: npt.NDArray[np.int64]
    unplaced: list[Group] = field(default_factory=list[Group])

    @property
    def placed(self) -> int:
        """Number of values in the bins."""
        return int(self.counts.sum())


def add_bins(bins: npt.ArrayLike, counts: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(distinct bins in ascending order, sum of counts of each); bins with count 0 are left out."""
    unique, where = np.unique(np.asarray(bins, dtype=np.int64), return_inverse=True)
    total = np.zeros(len(unique), dtype=np.int64)
    np.add.at(total, where, np.asarray(counts, dtype=np.int64))
    return unique[total > 0], total[total > 0]


def merge_moments(counts: list[int], sums: list[int], m2s: list[float]) -> tuple[int, int, float]:
    """Count, sum and sum of squared deviations of all groups together.

    Chan, Golub and LeVeque (Updating formulae and a pairwise algorithm for computing sample variances,
    1979), for all groups at once: m2 = sum of m2_i + sum of n_i (mean_i - mean)^2.
    """
    count, total = sum(counts), sum(sums)
    if count == 0:
        return 0, 0, 0.0
    m2 = sum(m2s)
    for n, s in zip(counts, sums, strict=True):
        if n:
            # (mean_i - mean) from integers: nearly equal means do not cancel.
            m2 += n * ((s * count - total * n) / (n * count)) ** 2
    return count, total, m2


def _sum_bins(windows: pl.DataFrame, chosen: pl.Expr, bins: str, counts: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(bins in ascending order, sum of counts of each) of two list columns of the chosen rows; bins with count 0 are left out."""
    from rtgauge.record.histogram import OVERFLOW_BIN

    totals = np.zeros(2 * OVERFLOW_BIN + 1, dtype=np.int64)
    # In slices: all bins of a long step side by side take several times what its table takes.
    for many in windows.select("series", "phase", bins, counts).iter_slices(MOST_AT_ONCE):
        for part in many.filter(chosen).iter_slices(SLICE):
            at, count = (part[name].explode().drop_nulls().cast(pl.Int64).to_numpy() for name in (bins, counts))
            np.add.at(totals, at + OVERFLOW_BIN, count)
    where = np.flatnonzero(totals)
    return where - OVERFLOW_BIN, totals[where]


def list_column(name: str, values: pl.Series, lengths: npt.NDArray[np.int64]) -> pl.Series:
    """A column of lists of these lengths, which are `values` one after the other."""
    cut = pl.DataFrame({"begin": np.cumsum(lengths) - lengths, "length": lengths})
    return cut.select(pl.lit(values).implode().list.slice("begin", "length").alias(name))[name]


def merge(windows: pl.DataFrame, series: int | Collection[int] | None = None, *, phase: str = "measure", limits_ns: Mapping[int, int] | None = None) -> Merged:
    """Merge the windows of one series, or of several together (None: of all), in one phase.

    `limits_ns`: series -> lower bound (ns) of its unplaced samples; by default the lowest value that the window allows.
    """
    from rtgauge.record.histogram import upper_ns

    chosen = pl.col("phase") == phase
    if series is not None:
        chosen &= pl.col("series") == series if isinstance(series, int) else pl.col("series").is_in(list(series))
    bins, counts = _sum_bins(windows, chosen, "bins", "counts")
    missed_bins, missed_counts = _sum_bins(windows, chosen, "missed_bins", "missed_counts")
    part = windows.select("series", "phase", "count", "missed", "min_ns", "max_ns", "sum_ns", "m2_ns2").filter(chosen)
    numbers: list[int] = part["count"].to_list()
    sums: list[int | None] = part["sum_ns"].to_list()
    m2s: list[float | None] = part["m2_ns2"].to_list()
    count = sum(numbers)
    total: int | None = None
    m2: float | None = None
    known = [s for s in sums if s is not None]
    if len(known) == len(sums):
        total = sum(known)
        known_m2 = [v for v in m2s if v is not None]
        if len(known_m2) == len(m2s):
            m2 = merge_moments(numbers, known, known_m2)[2]
    unplaced: list[Group] = []
    if int(counts.sum()) != count:
        for row in windows.filter(chosen).select("series", "count", "min_ns", "max_ns", "bins", "counts").iter_rows(named=True):
            absent = row["count"] - sum(row["counts"])
            if absent > 0:
                lowest = max(int(upper_ns(row["bins"][-1])) + 1 if row["bins"] else 0, row["min_ns"] or 0)
                if limits_ns and row["series"] in limits_ns:
                    lowest = limits_ns[row["series"]]
                lowest = lowest if row["max_ns"] is None else min(lowest, row["max_ns"])
                unplaced.append(Group(lowest, absent, row["max_ns"]))
    return Merged(
        bins=bins,
        counts=counts,
        count=count,
        missed=sum(part["missed"].to_list()),
        min_ns=min((v for v in part["min_ns"].to_list() if v is not None), default=None),
        max_ns=max((v for v in part["max_ns"].to_list() if v is not None), default=None),
        sum_ns=total,
        m2_ns2=m2,
        missed_bins=missed_bins,
        missed_counts=missed_counts,
        unplaced=unplaced,
    )
