# SPDX-License-Identifier: MIT
"""Computes quantiles of a histogram, and their bounds from order statistics.

David and Nagaraja, Order Statistics (2003), sec. 7.1: the interval assumes only independent samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from rtgauge.record.histogram import EDGES_NS, OVERFLOW_BIN, add_bins, lower_ns, signed_bin_of, upper_ns
from rtgauge.record.merged_windows import Merged
from rtgauge.record.summary import nearest_rank
from rtgauge_ext.papers.scipy_functions import stats

IntArray = npt.NDArray[np.int64]


def rank_below(share: float, count: int, confidence: float) -> int:
    """Return the largest rank whose sample bounds a quantile from below, at `confidence` (one-sided); 0 if
    there is none. `share` and `count`: the quantile's share, and the number of samples.
    """
    return int(stats().binom.ppf(1 - confidence, count, share))


def rank_above(share: float, count: int, confidence: float) -> int:
    """Return the smallest rank whose sample bounds a quantile from above, at `confidence` (one-sided);
    `count` + 1 if there is none. Parameters as in `rank_below`.
    """
    return int(stats().binom.ppf(confidence, count, share)) + 1


@dataclass(frozen=True)
class Ranked:
    """Times (ns) in groups, in the order of `largest`; the arrays have the shape (groups,). The `counts`
    times of a group lie between `smallest` and `largest`. After the groups come `endless` times without any
    upper bound (lost answers).

    `open_ended`: whether a group has no known upper end. `min_ns`, `max_ns`: the smallest and the largest
    time in the groups; None if unknown.
    """

    smallest: IntArray
    largest: IntArray
    open_ended: npt.NDArray[np.bool_]
    counts: IntArray
    endless: int
    min_ns: int | None
    max_ns: int | None

    @property
    def count(self) -> int:
        """The number of times, lost answers included."""
        return int(self.counts.sum()) + self.endless

    def later_than(self, bound_ns: int) -> int:
        """Return how many times are certainly above the bound, lost answers included."""
        return int(self.counts[self.smallest > bound_ns].sum()) + self.endless

    def largest_at(self, rank: int) -> int | None:
        """Return the largest value (ns) that the sample of this rank (from 1) can have; None if it has no
        known upper end.
        """
        if rank > int(self.counts.sum()):
            return None
        if rank == int(self.counts.sum()) and self.max_ns is not None:
            return self.max_ns
        at = int(np.searchsorted(np.cumsum(self.counts), rank))
        if self.open_ended[at]:
            return self.max_ns
        value = int(self.largest[at])
        value = value if self.min_ns is None else max(value, self.min_ns)
        return value if self.max_ns is None else min(value, self.max_ns)

    def smallest_at(self, rank: int) -> int | None:
        """Return the smallest value (ns) that the sample of this rank can have; None for a lost answer."""
        if rank > int(self.counts.sum()):
            return None
        if rank == int(self.counts.sum()) and self.max_ns is not None:
            return self.max_ns
        # A sample without known bounds comes first in this order, but last in the order of `largest`.
        order = np.argsort(self.smallest, kind="stable")
        value = int(self.smallest[order][int(np.searchsorted(np.cumsum(self.counts[order]), rank))])
        return value if self.min_ns is None else max(value, self.min_ns)

    def is_known(self, rank: int) -> bool:
        """Return whether both bounds of the sample lie in one bin, or the sample has no known upper end."""
        least, most = self.smallest_at(rank), self.largest_at(rank)
        return most is None or least is None or int(signed_bin_of(least)) == int(signed_bin_of(most))


def ranked(merged: Merged, *, resolution_ns: int = 1, absolute: bool = False) -> Ranked:
    """Rank the samples of merged windows with missed activations filled in. A lost answer, which has no
    latency, has no upper bound.

    `resolution_ns`: a recorded v means v ... v + resolution - 1, and is read as v. `absolute`: ignore signs.
    """
    folded = np.abs if absolute else np.asarray
    bins, counts = add_bins(
        np.concatenate([folded(merged.bins), merged.missed_bins]),
        np.concatenate([merged.counts, merged.missed_counts]),
    )
    smallest, largest = lower_ns(bins), upper_ns(bins) // resolution_ns * resolution_ns
    open_ended = bins >= OVERFLOW_BIN
    for group in merged.unplaced:
        smallest = np.append(smallest, group.from_ns)
        largest = np.append(largest, group.from_ns if group.max_ns is None else group.max_ns)
        open_ended = np.append(open_ended, group.max_ns is None)
        counts = np.append(counts, group.count)
    order = np.argsort(largest, kind="stable")
    least, top = merged.min_ns, merged.max_ns
    if absolute and least is not None and top is not None:
        least, top = (least if least >= 0 else None), max(top, -least)
    if top is not None and len(merged.missed_bins) and int(EDGES_NS[int(merged.missed_bins[-1])]) > top:
        top = None  # the largest sample is a missed activation, of which only the bin is known
    if len(merged.missed_bins):
        least = None
    endless = max(0, merged.missed - int(merged.missed_counts.sum()))
    return Ranked(smallest[order], largest[order], open_ended[order], counts[order], endless, least, top)


@dataclass(frozen=True)
class Quantile:
    """A quantile (ns) and its bounds, each one-sided at the requested confidence; None means unlimited.

    `at_most`: the quantile may be anything up to `ns`.
    """

    ns: int | None
    low_ns: int | None
    high_ns: int | None
    at_most: bool = False


def quantile(values: Ranked, share: Fraction, confidence: float, *, rank_error: float = 0.0) -> Quantile:
    """Return the value that a `share` of non-negative samples does not exceed (nearest rank), with bounds.

    `rank_error`: the least distance (in ranks) between the quantile and each bound, for dependent samples. If
    `share` is 1, the lower bound is the largest sample and there is no upper bound. Raises ValueError if
    there are no samples.
    """
    count = values.count
    if count == 0:
        raise ValueError("cannot calculate a quantile of an empty sample")
    rank = nearest_rank(share, count)
    estimate = values.largest_at(rank)
    if share == 1:
        return Quantile(estimate, values.smallest_at(rank), None)
    low = min(rank_below(float(share), count, confidence), max(0, math.floor(rank - rank_error)))
    high = max(rank_above(float(share), count, confidence), math.ceil(rank + rank_error))
    lowest = values.smallest_at(low) if low else 0
    highest = values.largest_at(high) if high <= count else None
    return Quantile(estimate, lowest, highest, at_most=not values.is_known(rank))
