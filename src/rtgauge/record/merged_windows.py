# SPDX-License-Identifier: MIT
"""Merges the windows of a step into one: its histogram, counts, extremes and moments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rtgauge.record.histogram import Integers, upper_ns
from rtgauge.record.windows import UNKNOWN, Chosen, Windows, largest, least


@dataclass(frozen=True)
class UnplacedGroup:
    """Values outside the histogram, all at `from_ns` or above. `max_ns` is the largest, if known."""

    from_ns: int
    count: int
    max_ns: int | None


@dataclass(frozen=True)
class Merged:
    """Windows merged into one.

    `count` includes the values in `unplaced`, which are in no bin, because imported histograms have their own
    limits (docs/formats/record.md). `sum_ns` and `m2_ns2` (sum of squared deviations from the mean) are None
    if the source does not give them.
    """

    bins: Integers
    counts: Integers
    count: int
    missed: int
    min_ns: int | None
    max_ns: int | None
    sum_ns: int | None
    m2_ns2: float | None
    missed_bins: Integers
    missed_counts: Integers
    unplaced: list[UnplacedGroup] = field(default_factory=list[UnplacedGroup])

    @property
    def placed(self) -> int:
        """How many values are in bins."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Moments:
    """The number of values, their sum, and the sum of their squared deviations from the mean."""

    count: int
    sum_ns: int
    m2_ns2: float


def merge_moments(counts: Sequence[int], sums: Sequence[int], m2s: Sequence[float]) -> Moments:
    """Return the moments of all groups together.

    Chan, Golub and LeVeque (Updating formulae and a pairwise algorithm for computing sample variances, 1979),
    for all groups at once: m2 = sum of m2_i + sum of n_i (mean_i - mean)^2.
    """
    count, total = sum(counts), sum(sums)
    if count == 0:
        return Moments(0, 0, 0.0)
    m2 = sum(m2s)
    for n, s in zip(counts, sums, strict=True):
        if n:
            # Computed with integers, (mean_i - mean) does not cancel for nearly equal means.
            m2 += n * ((s * count - total * n) / (n * count)) ** 2
    return Moments(count, total, m2)


def _unplaced(windows: Windows, chosen: Chosen, limits_ns: Mapping[int, int]) -> list[UnplacedGroup]:
    """Return how many values of each window are in none of its bins."""
    absent = windows.count - windows.bins.sums
    groups: list[UnplacedGroup] = []
    for at in np.flatnonzero(chosen & (absent > 0)).tolist():
        bins = windows.bins.of(at).bins
        lowest = max(int(upper_ns(bins[-1])) + 1 if len(bins) else 0, least(windows.min_ns[at : at + 1]) or 0)
        most = largest(windows.max_ns[at : at + 1])
        lowest = limits_ns.get(int(windows.series[at]), lowest)
        groups.append(UnplacedGroup(lowest if most is None else min(lowest, most), int(absent[at]), most))
    return groups


def merge(
    windows: Windows,
    series: int | Collection[int] | None = None,
    *,
    measured: bool = True,
    limits_ns: Mapping[int, int] | None = None,
) -> Merged:
    """Merge the windows of one series, of several, or of all (None), in the measured phase or, if not
    `measured`, the warm-up.

    `limits_ns`: series -> lower bound (ns) of its unplaced samples; by default the lowest value that the
    window allows.
    """
    chosen = windows.are_of(series, measured=measured)
    bins, counts = windows.bins.total(chosen)
    missed_bins, missed_counts = windows.missed_bins.total(chosen)
    numbers: list[int] = windows.count[chosen].tolist()
    sums: list[int] = windows.sum_ns[chosen].tolist()
    m2s: list[float] = windows.m2_ns2[chosen].tolist()
    count = sum(numbers)
    sum_is_known = UNKNOWN not in sums
    m2_is_known = sum_is_known and not np.isnan(m2s).any()
    return Merged(
        bins=bins,
        counts=counts,
        count=count,
        missed=sum(windows.missed[chosen].tolist()),
        min_ns=least(windows.min_ns[chosen]),
        max_ns=largest(windows.max_ns[chosen]),
        sum_ns=sum(sums) if sum_is_known else None,
        m2_ns2=merge_moments(numbers, sums, m2s).m2_ns2 if m2_is_known else None,
        missed_bins=missed_bins,
        missed_counts=missed_counts,
        unplaced=_unplaced(windows, chosen, limits_ns or {}) if int(counts.sum()) != count else [],
    )
