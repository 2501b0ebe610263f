# SPDX-License-Identifier: MIT
"""Quantiles of a histogram with bounds from order statistics: which ranked sample a quantile may lie beside,
and what that sample is read as.

David and Nagaraja, Order Statistics (2003), sec. 7.1: the interval rests on no distribution, only on
independent samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from rtgauge.record.histogram import EDGES_NS, OVERFLOW_BIN, lower_ns, signed_bin_of, upper_ns
from rtgauge.record.summary import nearest_rank
from rtgauge.record.windows import Merged, add_bins

IntArray = npt.NDArray[np.int64]


def rank_below(share: float, count: int, confidence: float) -> int:
    """The largest rank that the quantile is not below, at `confidence` (one-sided); 0: there is none."""
    return _first_reaching(share, count, 1 - confidence)


def rank_above(share: float, count: int, confidence: float) -> int:
    """The smallest rank that the quantile is not above, one-sided; `count` + 1: there is none."""
    return _first_reaching(share, count, confidence) + 1


def _first_reaching(share: float, count: int, probability: float) -> int:
    """The smallest k with P(Binomial(count, share) <= k) >= `probability`."""
    from scipy.special import (
        bdtrik,
        betainc,
    )  # binom.ppf of scipy.stats is these two lines, and takes 0.5 s longer to import

    k = max(0, math.ceil(float(bdtrik(probability, count, share))))
    # Rounding may have lifted it to the next one. betainc is P(X <= k - 1), also for counts beyond 32 bits.
    return k - 1 if k and float(betainc(count - k + 1, k, 1 - share)) >= probability else k


@dataclass(frozen=True)
class Ranked:
    """Times in the order of their `largest`, as (smallest, largest) that each group of `counts` may be; the
    last `endless` ones have no end.

    `largest_ns` is None for a group whose values have no known upper end.
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
        """How many there are."""
        return int(self.counts.sum()) + self.endless

    def later_than(self, bound_ns: int) -> int:
        """How many surely are above the bound; those without an end are."""
        return int(self.counts[self.smallest > bound_ns].sum()) + self.endless

    def largest_at(self, rank: int) -> int | None:
        """The most (ns) that the sample of this rank (1: the smallest) may be; None: unknown."""
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
        """The least that the sample of this rank may be (ns); None: it has no end at all."""
        if rank > int(self.counts.sum()):
            return None
        if rank == int(self.counts.sum()) and self.max_ns is not None:
            return self.max_ns
        order = np.argsort(
            self.smallest, kind="stable"
        )  # one that may lie anywhere is among the first here, and among the last by its largest
        value = int(self.smallest[order][int(np.searchsorted(np.cumsum(self.counts[order]), rank))])
        return value if self.min_ns is None else max(value, self.min_ns)

    def is_known(self, rank: int) -> bool:
        """Whether the least and the most that this sample may be lie in one bin, or it has no end."""
        least, most = self.smallest_at(rank), self.largest_at(rank)
        return most is None or least is None or int(signed_bin_of(least)) == int(signed_bin_of(most))


def ranked(merged: Merged, *, resolution_ns: int = 1, absolute: bool = False) -> Ranked:
    """The samples of merged windows with the missed activations filled in; a missed one without a latency (a
    lost answer) has no end.

    `resolution_ns`: a figure v of the record means v ... v + resolution - 1; it is read as v, as everywhere.
    `absolute`: without their signs.
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
        top = None  # the largest is a missed one, known to its bin only
    if len(merged.missed_bins):
        least = None
    endless = max(0, merged.missed - int(merged.missed_counts.sum()))
    return Ranked(smallest[order], largest[order], open_ended[order], counts[order], endless, least, top)


@dataclass(frozen=True)
class Quantile:
    """A quantile (ns) and its bounds, each one-sided at the confidence asked.

    None: more than any number. `at_most`: it may be anything up to `ns`.
    """

    ns: int | None
    low_ns: int | None
    high_ns: int | None
    at_most: bool = False


def quantile(values: Ranked, share: Fraction, confidence: float, *, rank_error: float = 0.0) -> Quantile:
    """The value that `share` of the samples, none of them negative, do not exceed (nearest rank), with its
    bounds.

    `rank_error`: the bounds are at least so many ranks away, since samples depend on each other. Of all of
    them (`share` 1) the lower bound is the largest that was seen, and there is no upper one. Raises
    ValueError if there are none.
    """
    count = values.count
    if count == 0:
        raise ValueError("no samples have no quantile")
    rank = nearest_rank(share, count)
    estimate = values.largest_at(rank)
    if share == 1:
        return Quantile(estimate, values.smallest_at(rank), None)
    low = min(rank_below(float(share), count, confidence), max(0, math.floor(rank - rank_error)))
    high = max(rank_above(float(share), count, confidence), math.ceil(rank + rank_error))
    highest = values.largest_at(high) if high <= count else None
    return Quantile(
        estimate, values.smallest_at(low) if low else 0, highest, at_most=not values.is_known(rank)
    )
