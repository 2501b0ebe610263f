# SPDX-License-Identifier: MIT
"""Counts a step's activations that broke a bound: certain violations, and possible ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.violation_bounds import Counted, design_effect, lower_bound, upper_bound
from rtgauge.record.histogram import OVERFLOW_BIN, lower_ns, signed_bin_of, upper_ns
from rtgauge.record.windows import UNKNOWN, Windows, largest, least

IntArray = npt.NDArray[np.int64]

MOST_BLOCKS = 1_000
TOO_COARSE = "the figures are too coarse to decide"
"""Why bins that contain the bound leave it open how many activations broke it."""


@dataclass(frozen=True)
class Violations:
    """Of `activations` (measured and missed), `certain` ones broke the bound, and at most `possible` ones,
    which include the certain ones.

    The two differ if the bound is inside a bin, if a foreign histogram does not show how late its overflow
    was, or if figures are coarser than 1 ns. Both include `missed` ones, because a missed activation breaks
    any bound.
    """

    activations: int
    certain: int
    possible: int
    missed: int
    unplaced: int = 0
    """Activations that no histogram shows, because there is none, or it ends below their value."""
    by_window: tuple[IntArray, IntArray] | None = field(default=None, compare=False, repr=False)
    """Possible violations and activations in each block of time, in order, at most MOST_BLOCKS."""

    @cached_property
    def counted(self) -> Counted:
        """The possible violations with their variance."""
        if self.by_window is not None:
            return Counted.of_windows(*self.by_window)
        return Counted.of_windows([self.possible], [self.activations])

    @property
    def assumes_independence(self) -> bool:
        """Whether bounds assume independent violations, because the counts cannot show bursts."""
        return not self.possible or self.counted.freedom is None

    def at_most(self, confidence: float) -> float:
        """Return the largest share of violations that these counts do not rule out, one-sided."""
        effect = design_effect([[self.counted]], confidence)
        return upper_bound(self.possible / effect, self.activations / effect, confidence)

    def at_least(self, confidence: float) -> float:
        """Return the smallest share of violations that these counts do not rule out, one-sided."""
        effect = design_effect([[self.counted]], confidence)
        return lower_bound(self.certain / effect, self.activations / effect, confidence)


def _without_signs(low: int | None, high: int | None) -> tuple[int | None, int | None]:
    """Return the extremes of a window's absolute values. The smallest is known only if none is negative."""
    if low is None or low >= 0:
        return low, high
    return -high if high is not None and high < 0 else None, max(high if high is not None else 0, -low)


def count_violations(
    windows: Windows, bound_ns: int, *, series: Collection[int] | None = None, resolution_ns: int = 1
) -> Violations:
    """Count the activations of these series (None: all) in the measured phase that are later than `bound_ns`.

    Each window is counted separately, because its exact extremes show more than its bins: none is late if the
    maximum is not, and all are late if the minimum is. `resolution_ns`: a recorded figure v stands for v ...
    v + resolution - 1. Values that are early by more than the bound break it too.
    """
    chosen = windows.are_of(series)
    missed, count = int(windows.missed[chosen].sum()), int(windows.count[chosen].sum())
    together = 1 + int(windows.index[chosen].max(initial=0)) // MOST_BLOCKS
    block = windows.index // together
    every = np.bincount(block[chosen], (windows.count + windows.missed)[chosen]).astype(np.int64)
    broken = np.bincount(block[chosen], windows.missed[chosen]).astype(np.int64)
    slack = resolution_ns - 1
    certain = possible = every_unplaced = 0
    beyond = (
        (windows.max_ns == UNKNOWN)
        | (windows.max_ns + slack > bound_ns)
        | ((windows.min_ns != UNKNOWN) & (windows.min_ns < -bound_ns))
    )
    for at in np.flatnonzero(chosen & (windows.count > 0) & beyond).tolist():
        own = int(windows.count[at])
        low, top = _without_signs(least(windows.min_ns[at : at + 1]), largest(windows.max_ns[at : at + 1]))
        if low is not None and low > bound_ns:
            certain += own
            possible += own
            broken[block[at]] += own
            continue
        signed, counts = windows.bins.of(at)
        bins = np.abs(signed) if UNKNOWN < windows.min_ns[at] < 0 else signed
        ends = upper_ns(bins) // resolution_ns * resolution_ns + slack
        surely = int(counts[lower_ns(bins) > bound_ns].sum())
        maybe = int(counts[(ends > bound_ns) | (bins >= OVERFLOW_BIN)].sum())
        unplaced = own - int(counts.sum())
        # The maximum is exact: if it is late and its bin does not show this, one violation is certain.
        if (
            top is not None
            and top > bound_ns
            and (unplaced > 0 or int(lower_ns(signed_bin_of(top))) <= bound_ns)
        ):
            surely += 1
        certain += surely
        every_unplaced += unplaced + int(counts[bins >= OVERFLOW_BIN].sum())
        possible += max(surely, maybe + unplaced)
        broken[block[at]] += max(surely, maybe + unplaced)
    return Violations(
        count + missed,
        certain + missed,
        possible + missed,
        missed,
        every_unplaced,
        (broken[every > 0], every[every > 0]),
    )


def late_time(windows: Windows, bound_ns: int, series: int) -> int:
    """Return the sum (ns) of what the values of a series exceed the bound by, to the width of their bins."""
    late_ns = 0
    for at in np.flatnonzero(windows.are_of([series]) & (windows.max_ns > bound_ns)).tolist():
        bins, counts = windows.bins.of(at)
        late_ns += int((np.maximum(lower_ns(bins) - bound_ns, 0) * counts).sum())
    return late_ns
