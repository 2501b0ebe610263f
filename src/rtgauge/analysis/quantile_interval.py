# SPDX-License-Identifier: MIT
"""Bounds a quantile of one run, allowing for serial dependence.

The standard error of the share of samples above the quantile comes from the slow changes of this share over
the windows: the mean square of the first cosine transforms, with Student's t (Lazarus, Lewis, Stock and
Watson, HAR inference: recommendations for practice, 2018). The transforms capture dependence over several
windows. The quantiles at the bounds of the share bound the quantile (Woodruff, Confidence intervals for
medians and other position measures, 1952). A quantile with too little independent information beyond it has
an infinite bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from rtgauge.record.histogram import OVERFLOW_BIN, lower_ns, upper_ns
from rtgauge.record.quantiles import LEAST_BEYOND
from rtgauge.units import plural

if TYPE_CHECKING:
    from rtgauge.record.histogram import Integers
    from rtgauge.record.model import Distribution
    from rtgauge.record.windows import Windows

IntArray = npt.NDArray[np.int64]

LEAST_WINDOWS = 20
"""The spread of fewer windows than this says little."""
ENDLESS_NS = 2**60
"""Stands for infinity, the upper end of an unlimited value."""


@dataclass(frozen=True)
class WindowCounts:
    """The windows of a run: `counts[i, j]` samples of window i have the value `values_ns[j]` (ascending).

    The value j lies between `low_ns[j]` and `high_ns[j]`, the ends of its bin (ENDLESS_NS if there is no
    upper end). `counts` has the shape (windows, values), and the other arrays have the shape (values,).
    """

    values_ns: IntArray
    counts: IntArray
    low_ns: IntArray
    high_ns: IntArray

    @cached_property
    def cumulative(self) -> IntArray:
        """The number of samples up to each value, shape (values,)."""
        return np.cumsum(self.counts.sum(axis=0))

    @property
    def total(self) -> int:
        """The number of samples."""
        return int(self.cumulative[-1]) if len(self.cumulative) else 0

    def at_rank(self, rank: int) -> int:
        """Return the column of the sample with this rank; the smallest has rank 1."""
        return int(np.searchsorted(self.cumulative, rank))


def why_no_interval(run: WindowCounts, share: Fraction) -> str | None:
    """Return why this quantile of the run can have no interval; None if it can have one."""
    number = len(run.counts)
    if number < LEAST_WINDOWS:
        return f"the run has only {plural(number, 'window')} of time; at least {LEAST_WINDOWS} are needed"
    return too_few_beyond(run.total, share)


def too_few_beyond(samples: int, share: Fraction) -> str | None:
    """Return a message if fewer than LEAST_BEYOND samples lie above the quantile, else None."""
    beyond = math.floor((1 - share) * samples)
    if beyond >= LEAST_BEYOND:
        return None
    return (
        f"only {beyond} sample{'s lie' if beyond != 1 else ' lies'} beyond this quantile, but at least "
        f"{LEAST_BEYOND} are needed"
    )


def cosine_terms(windows: int) -> int:
    """Return the number of cosine transforms to average (degrees of freedom): 0.4 n^(2/3) (Lazarus)."""
    return max(1, math.floor(0.4 * math.cbrt(windows) ** 2 + 1e-9))


class SumError(NamedTuple):
    """The standard error of a sum, and its degrees of freedom."""

    error: float
    freedom: int


def error_of_sum(scores: npt.NDArray[np.float64], terms: int | None = None) -> SumError:
    """Return the standard error of the sum of a serially dependent series, shape (windows,).

    `terms`: how many cosine transforms to average, at most one fewer than windows; None: `cosine_terms`.
    """
    number = len(scores)
    terms = cosine_terms(number) if terms is None else max(1, min(terms, number - 1))
    angles = np.pi * np.outer(np.arange(1, terms + 1), (np.arange(number) + 0.5) / number)
    transforms = math.sqrt(2 / number) * (np.cos(angles) @ scores)
    return SumError(math.sqrt(number * float(transforms @ transforms) / terms), terms)


MOST_TERMS = 4
"""`cautious_error_of_sum` averages at most this many transforms: changes as slow as half of it count."""


def cautious_error_of_sum(scores: npt.NDArray[np.float64], terms: int = MOST_TERMS) -> SumError:
    """Return the standard error of the sum of a serially dependent series, shape (windows,), of at least two
    windows. It is at least the error of independent windows. `terms`: as for `error_of_sum`.
    """
    number = len(scores)
    error, freedom = error_of_sum(scores, terms)
    return SumError(max(error, math.sqrt(number / (number - 1) * float(scores @ scores))), freedom)


class RunQuantile:
    """A quantile of one run. It lies between `low_ns` and `high_ns`, the ends of its bin."""

    def __init__(self, run: WindowCounts, share: Fraction) -> None:
        self._run = run
        self._rank = max(1, math.ceil(share * run.total))
        column = run.at_rank(self._rank)
        self.low_ns, self.high_ns = int(run.low_ns[column]), int(run.high_ns[column])
        above = run.counts[:, column + 1 :].sum(axis=1).astype(np.float64)
        self._error, self.freedom = error_of_sum(above - float(1 - share) * run.counts.sum(axis=1))

    def bounds(self, errors: float) -> tuple[int, int]:
        """Return the bounds (ns) at this many standard errors, or ±ENDLESS_NS beyond the run's samples."""
        low = math.floor(self._rank - errors * self._error)
        high = math.ceil(self._rank + errors * self._error)
        run = self._run
        low_ns = int(run.low_ns[run.at_rank(low)]) if low >= 1 else -ENDLESS_NS
        high_ns = int(run.high_ns[run.at_rank(high)]) if high <= run.total else ENDLESS_NS
        return low_ns, high_ns


MOST_WINDOWS = 1_000
"""Intervals use at most this many windows. Merging further windows limits the cost and keeps slow changes."""


def values_ns(bins: npt.NDArray[np.int64], resolution_ns: int) -> npt.NDArray[np.int64]:
    """Return the largest value (ns) that each bin can hold, at the tool's resolution, in the shape of
    `bins`.
    """
    return upper_ns(bins) // resolution_ns * resolution_ns


def window_counts(
    windows: Windows, block: Integers, resolution_ns: int, filled: Distribution
) -> WindowCounts:
    """Count the samples of each window at each value, with missed activations filled in.

    `windows`: the windows of one phase. `block`: for each window, the number of its block of time, which
    all CPUs share. `filled`: the figures of all windows together. Stretches without samples are left out.
    """
    number = int(block.max(initial=-1)) + 1
    together = max(1, -(-number // MOST_WINDOWS))
    parts = (windows.bins, windows.missed_bins)
    bins = np.union1d(*(part.bins for part in parts)).astype(np.int64)
    counts = np.zeros((-(-number // together), len(bins)), dtype=np.int64)
    for part in parts:
        of_bin = np.repeat(block // together, part.lengths)
        np.add.at(counts, (of_bin, np.searchsorted(bins, part.bins)), part.counts)
    low = lower_ns(bins) // resolution_ns * resolution_ns
    high = np.where(bins >= OVERFLOW_BIN, ENDLESS_NS, values_ns(bins, resolution_ns) + resolution_ns - 1)
    if filled.max_ns is not None and "max_ns" not in filled.lower_bounds:
        high = np.minimum(high, filled.max_ns)
    return WindowCounts(
        values_ns(bins, resolution_ns), counts[counts.sum(axis=1) > 0], low, np.maximum(low, high)
    )
