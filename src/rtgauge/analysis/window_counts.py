# SPDX-License-Identifier: MIT
"""The histogram of a run, window by window: what the intervals of its quantiles are estimated from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from rtgauge.analysis.quantile_interval import ENDLESS_NS, WindowCounts
from rtgauge.record.histogram import OVERFLOW_BIN, lower_ns, upper_ns

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtgauge.record.model import Distribution

MOST_WINDOWS = 1_000
"""More windows of a run are merged for its intervals: their cost stays bounded, and slow changes stay."""


def values_ns(bins: npt.NDArray[np.int64], resolution_ns: int) -> npt.NDArray[np.int64]:
    """The value (ns) for each bin: the largest it can hold, at the resolution of the tool."""
    return upper_ns(bins) // resolution_ns * resolution_ns


def window_counts(windows: pl.DataFrame, resolution_ns: int, filled: Distribution) -> WindowCounts:
    """How many samples of each window have each value, missed activations filled in.

    `windows`: columns as in docs/formats/record.md, of one phase; `stretch` numbers the stretches of time,
    the CPUs of one together. `filled`: the figures of all of them.
    """
    number = int(windows["stretch"].max() or 0) + 1 if windows.height else 0  # pyright: ignore[reportArgumentType]
    together = -(-number // MOST_WINDOWS) if number else 1
    parts = [
        windows.select(
            stretch=pl.col("stretch") // together, bin=pl.col(bins).cast(pl.List(pl.Int64)), count=counts
        )
        .filter(pl.col("bin").list.len() > 0)
        .explode("bin", "count")
        for bins, counts in (("bins", "counts"), ("missed_bins", "missed_counts"))
    ]
    long = pl.concat(parts)
    bins = np.unique(long["bin"].to_numpy()).astype(np.int64)
    counts = np.zeros((-(-number // together), len(bins)), dtype=np.int64)
    np.add.at(
        counts,
        (long["stretch"].to_numpy(), np.searchsorted(bins, long["bin"].to_numpy())),
        long["count"].cast(pl.Int64).to_numpy(),
    )
    low = lower_ns(bins) // resolution_ns * resolution_ns
    high = np.where(bins >= OVERFLOW_BIN, ENDLESS_NS, values_ns(bins, resolution_ns) + resolution_ns - 1)
    if filled.max_ns is not None and "max_ns" not in filled.lower_bounds:
        high = np.minimum(high, filled.max_ns)
    return WindowCounts(
        values_ns(bins, resolution_ns), counts[counts.sum(axis=1) > 0], low, np.maximum(low, high)
    )
