# SPDX-License-Identifier: MIT
"""Shares of activations within a few round bounds, to show which deadline a machine could keep."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rtgauge.record.histogram import OVERFLOW_BIN, Histogram, upper_ns
from rtgauge.record.windows import Windows, largest

ROUND = (1, 2, 5)
MOST_BOUNDS = 5
USUAL = 0.5
"""The smallest bound holds for about this share of the activations."""


@dataclass(frozen=True)
class Values:
    """The measured values of some series. `count` includes values in no bin."""

    histogram: Histogram
    count: int
    missed: int
    max_ns: int | None

    @classmethod
    def of(cls, windows: Windows, series: Collection[int] | None) -> Values:
        """Return the values of these series (None: all) in the measured phase."""
        chosen = windows.are_of(series)
        return cls(
            windows.bins.total(chosen),
            int(windows.count[chosen].sum()),
            int(windows.missed[chosen].sum()),
            largest(windows.max_ns[chosen]),
        )

    @property
    def activations(self) -> int:
        """Measured and missed activations."""
        return self.count + self.missed

    def within(self, bound_ns: int) -> int:
        """Return how many activations were certainly not later (or earlier) than the bound."""
        bins, counts = self.histogram
        low = min(bins.min(initial=0), 0)
        if low == 0 and self.max_ns is not None and self.max_ns <= bound_ns:
            return self.count
        placed = np.abs(bins)
        return int(counts[(upper_ns(placed) <= bound_ns) & (placed < OVERFLOW_BIN)].sum())


def round_bounds(every: Sequence[Values]) -> list[int]:
    """Return at most MOST_BOUNDS round bounds (ns): from one that about half of the activations keep, to the
    first that all measured values keep.
    """
    maxima = [values.max_ns for values in every if values.max_ns is not None]
    if not maxima:
        return []
    bounds = [digit * 10**power for power in range(3, 12) for digit in ROUND]
    last = next((at for at, bound in enumerate(bounds) if bound >= max(maxima)), len(bounds) - 1)
    first = next(
        (
            at
            for at, bound in enumerate(bounds[:last])
            if any(values.within(bound) >= USUAL * values.activations for values in every)
        ),
        last,
    )
    step = math.ceil((last - first + 1) / MOST_BOUNDS)
    return bounds[first : last + 1][::-step][::-1]


def share_within(values: Values, bound_ns: int) -> str:
    """Return the share in percent, rounded down: "100 %" only if every activation is within the bound."""
    every, within = values.activations, values.within(bound_ns)
    if not every:
        return ""
    if within == every:
        return "100 %"
    digits = max(1, -math.floor(math.log10(100 * (every - within) / every)))
    return f"{math.floor(100 * within * 10**digits / every) / 10**digits:.{digits}f} %"
