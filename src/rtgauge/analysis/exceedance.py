# SPDX-License-Identifier: MIT
"""The share of activations that are later than x, for every x that the histogram knows: the log-log figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtgauge.record.histogram import OVERFLOW_BIN, upper_ns
from rtgauge.record.merge import add_bins, merge

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


def exceedance(
    windows: pl.DataFrame, series: int | None = None, *, filled: bool = False, confidence: float | None = None, limits_ns: Mapping[int, int] | None = None
) -> pl.DataFrame:
    """The share of the measured activations with a latency greater than `x_ns`; one row a filled bin, x rising.

    Exact at each x, since x is the largest value of a bin (the last x is the exact maximum, above which is none). `filled`: with the missed
    activations filled in. With `confidence`, `upper` is what the count above x does not rule out (confidence.py), else null.
    The curve ends where the histogram does: what lies in the overflow or in no bin is above the last x but one, and nothing is said of where.
    `series` None: all in `windows` together. Columns: x_ns i64, above u64, share f64, upper f64. Empty where nothing was counted.
    """
    import polars as pl

    merged = merge(windows, series, limits_ns=limits_ns)
    bins, counts, count = merged.bins, merged.counts, merged.count
    maximum = merged.max_ns
    if filled and len(merged.missed_bins):
        bins, counts = add_bins(np.concatenate([bins, merged.missed_bins]), np.concatenate([counts, merged.missed_counts]))
        count += int(merged.missed_counts.sum())
        highest = int(upper_ns(merged.missed_bins[-1]))
        maximum = highest if maximum is None or int(upper_ns(bins[-1])) > int(upper_ns(merged.bins[-1])) else maximum
    x = upper_ns(bins)
    above = count - np.cumsum(counts)
    known = bins < OVERFLOW_BIN
    if merged.unplaced:
        known &= x < min(group.from_ns for group in merged.unplaced)
    x, above = x[known], above[known]
    if maximum is not None and count:
        x, above = x[x < maximum], above[x < maximum]
        x, above = np.append(x, maximum), np.append(above, 0)
    upper = np.full(len(x), np.nan)
    if confidence is not None and count:
        from scipy.stats import beta

        upper = np.where(above < count, beta.ppf(confidence, above + 1, np.maximum(count - above, 1)), 1.0)
    share = above / count if count else np.zeros(len(x))
    frame = pl.DataFrame({"x_ns": x.astype(np.int64), "above": above.astype(np.uint64), "share": share.astype(np.float64), "upper": upper})
    return frame.with_columns(pl.col("upper").fill_nan(None))
