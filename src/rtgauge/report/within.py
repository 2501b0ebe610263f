# SPDX-License-Identifier: MIT
"""Shares of activations within a few round bounds, to show which deadline a machine could keep."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rtgauge.record.histogram import OVERFLOW_BIN, upper_ns
from rtgauge.record.merged_windows import Merged

ROUND = (1, 2, 5)
MOST_BOUNDS = 5
USUAL = 0.5
"""The smallest bound holds for about this share of the activations."""


def activations(merged: Merged) -> int:
    """Return the number of measured and missed activations."""
    return merged.count + merged.missed


def within(merged: Merged, bound_ns: int) -> int:
    """Return how many activations were certainly not later (or earlier) than the bound."""
    low = min(merged.bins.min(initial=0), 0)
    if low == 0 and merged.max_ns is not None and merged.max_ns <= bound_ns:
        return merged.count
    placed = np.abs(merged.bins)
    return int(merged.counts[(upper_ns(placed) <= bound_ns) & (placed < OVERFLOW_BIN)].sum())


def round_bounds(every: Sequence[Merged]) -> list[int]:
    """Return at most MOST_BOUNDS round bounds (ns): from one that about half of the activations keep, to the
    first that all measured values keep.
    """
    maxima = [merged.max_ns for merged in every if merged.max_ns is not None]
    if not maxima:
        return []
    bounds = [digit * 10**power for power in range(3, 12) for digit in ROUND]
    last = next((at for at, bound in enumerate(bounds) if bound >= max(maxima)), len(bounds) - 1)
    first = next(
        (
            at
            for at, bound in enumerate(bounds[:last])
            if any(within(merged, bound) >= USUAL * activations(merged) for merged in every)
        ),
        last,
    )
    step = math.ceil((last - first + 1) / MOST_BOUNDS)
    return bounds[first : last + 1][::-step][::-1]


def share_within(merged: Merged, bound_ns: int) -> str:
    """Return the share in percent, rounded down: "100 %" only if every activation is within the bound."""
    every, kept = activations(merged), within(merged, bound_ns)
    if not every:
        return ""
    if kept == every:
        return "100 %"
    digits = max(1, -math.floor(math.log10(100 * (every - kept) / every)))
    return f"{math.floor(100 * kept * 10**digits / every) / 10**digits:.{digits}f} %"
