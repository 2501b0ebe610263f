# SPDX-License-Identifier: MIT
"""The histogram of a run, window by window: what the intervals of its quantiles are estimated from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtgauge.analysis.quantile_interval import ENDLESS_NS, WindowCounts
from rtgauge.record.histogram import OVERFLOW_BIN, lower_ns, upper_ns

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtgauge.record.model import Distribution
    from rtgauge.record.windows import Integers, Windows

MOST_WINDOWS = 1_000
"""More windows of a run are merged for its intervals: their cost stays bounded, and slow changes stay."""


def values_ns(bins: npt.NDArray[np.int64], resolution_ns: int) -> npt.NDArray[np.int64]:
    """The value (ns) for each bin: the largest it can hold, at the resolution of the tool."""
    return upper_ns(bins) // resolution_ns * resolution_ns


def window_counts(
    windows: Windows, stretch: Integers, resolution_ns: int, filled: Distribution
) -> WindowCounts:
    """How many samples of each window have each value, missed activations filled in.

    `windows`: of one phase; `stretch`: the number of each window's stretch of time, which the CPUs share.
    `filled`: the figures of all of them.
    """
    number = int(stretch.max(initial=-1)) + 1
    together = max(1, -(-number // MOST_WINDOWS))
    parts = (windows.bins, windows.missed_bins)
    bins = np.union1d(*(part.bins for part in parts)).astype(np.int64)
    counts = np.zeros((-(-number // together), len(bins)), dtype=np.int64)
    for part in parts:
        of_bin = np.repeat(stretch // together, part.lengths)
        np.add.at(counts, (of_bin, np.searchsorted(bins, part.bins)), part.counts)
    low = lower_ns(bins) // resolution_ns * resolution_ns
    high = np.where(bins >= OVERFLOW_BIN, ENDLESS_NS, values_ns(bins, resolution_ns) + resolution_ns - 1)
    if filled.max_ns is not None and "max_ns" not in filled.lower_bounds:
        high = np.minimum(high, filled.max_ns)
    return WindowCounts(
        values_ns(bins, resolution_ns), counts[counts.sum(axis=1) > 0], low, np.maximum(low, high)
    )
