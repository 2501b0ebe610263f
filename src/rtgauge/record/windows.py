# SPDX-License-Identifier: MIT
"""The windows of a step (docs/formats/record.md): numbers of some of them, and merging them into one
histogram, count, mean and deviation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtgauge.record.histogram import OVERFLOW_BIN, upper_ns
from rtgauge.record.window_columns import WindowColumns

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt
    import polars as pl

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

    `count` values, of which those in `unplaced` are in no bin (imported histograms with a limit of their own;
    docs/formats/record.md).
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


def add_bins(
    bins: npt.ArrayLike, counts: npt.ArrayLike
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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


def _chosen(series: int | Collection[int] | None, phase: str) -> pl.Expr:
    import polars as pl

    chosen = pl.col("phase") == phase
    if series is None:
        return chosen
    return chosen & (
        pl.col("series") == series if isinstance(series, int) else pl.col("series").is_in(list(series))
    )


def numbers_of(
    windows: pl.DataFrame | WindowColumns,
    names: Sequence[str],
    series: int | Collection[int] | None = None,
    *,
    phase: str = "measure",
) -> dict[str, list[Any]]:
    """These columns of the windows of one series, or of several (None: of all), in one phase; a number that
    is not known is None.
    """
    if isinstance(windows, WindowColumns):
        return windows.numbers(names, windows.chosen(series, phase))
    rows = windows.select(list(dict.fromkeys(("series", "phase", *names)))).filter(_chosen(series, phase))
    return {name: rows[name].to_list() for name in names}


def series_of(windows: pl.DataFrame | WindowColumns) -> set[int]:
    """The series of which there are windows, in any phase."""
    return set(
        windows.integers["series"].tolist()
        if isinstance(windows, WindowColumns)
        else windows["series"].unique().to_list()
    )


def _sum_bins(
    windows: pl.DataFrame | WindowColumns,
    series: int | Collection[int] | None,
    phase: str,
    bins: str,
    counts: str,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(bins in ascending order, sum of counts of each) of two list columns of the chosen windows; bins with
    count 0 are left out.
    """
    if isinstance(windows, WindowColumns):
        return add_bins(*windows.lists[bins].of(windows.chosen(series, phase)))
    import polars as pl

    chosen = _chosen(series, phase)
    totals = np.zeros(2 * OVERFLOW_BIN + 1, dtype=np.int64)
    # In slices: all bins of a long step side by side take several times what its table takes.
    for many in windows.select("series", "phase", bins, counts).iter_slices(MOST_AT_ONCE):
        for part in many.filter(chosen).iter_slices(SLICE):
            at, count = (
                part[name].explode().drop_nulls().cast(pl.Int64).to_numpy() for name in (bins, counts)
            )
            np.add.at(totals, at + OVERFLOW_BIN, count)
    where = np.flatnonzero(totals)
    return where - OVERFLOW_BIN, totals[where]


def _unplaced(
    windows: pl.DataFrame | WindowColumns,
    series: int | Collection[int] | None,
    phase: str,
    limits_ns: Mapping[int, int] | None,
) -> list[Group]:
    """The values of each window that are in none of its bins."""
    from rtgauge.record.window_frame import as_frame

    groups: list[Group] = []
    frame = as_frame(windows)
    for row in (
        frame.filter(_chosen(series, phase))
        .select("series", "count", "min_ns", "max_ns", "bins", "counts")
        .iter_rows(named=True)
    ):
        absent = row["count"] - sum(row["counts"])
        if absent > 0:
            lowest = max(int(upper_ns(row["bins"][-1])) + 1 if row["bins"] else 0, row["min_ns"] or 0)
            if limits_ns and row["series"] in limits_ns:
                lowest = limits_ns[row["series"]]
            lowest = lowest if row["max_ns"] is None else min(lowest, row["max_ns"])
            groups.append(Group(lowest, absent, row["max_ns"]))
    return groups


def merge(
    windows: pl.DataFrame | WindowColumns,
    series: int | Collection[int] | None = None,
    *,
    phase: str = "measure",
    limits_ns: Mapping[int, int] | None = None,
) -> Merged:
    """Merge the windows of one series, or of several together (None: of all), in one phase.

    `limits_ns`: series -> lower bound (ns) of its unplaced samples; by default the lowest value that the
    window allows.
    """
    bins, counts = _sum_bins(windows, series, phase, "bins", "counts")
    missed_bins, missed_counts = _sum_bins(windows, series, phase, "missed_bins", "missed_counts")
    part = numbers_of(
        windows, ("count", "missed", "min_ns", "max_ns", "sum_ns", "m2_ns2"), series, phase=phase
    )
    numbers: list[int] = part["count"]
    sums: list[int | None] = part["sum_ns"]
    m2s: list[float | None] = part["m2_ns2"]
    count = sum(numbers)
    total: int | None = None
    m2: float | None = None
    known = [s for s in sums if s is not None]
    if len(known) == len(sums):
        total = sum(known)
        known_m2 = [v for v in m2s if v is not None]
        if len(known_m2) == len(m2s):
            m2 = merge_moments(numbers, known, known_m2)[2]
    return Merged(
        bins=bins,
        counts=counts,
        count=count,
        missed=sum(part["missed"]),
        min_ns=min((v for v in part["min_ns"] if v is not None), default=None),
        max_ns=max((v for v in part["max_ns"] if v is not None), default=None),
        sum_ns=total,
        m2_ns2=m2,
        missed_bins=missed_bins,
        missed_counts=missed_counts,
        unplaced=_unplaced(windows, series, phase, limits_ns) if int(counts.sum()) != count else [],
    )
