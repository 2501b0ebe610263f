# SPDX-License-Identifier: MIT
"""Makes windows as the engine would write them, from plain lists of latencies."""

from __future__ import annotations

import numpy as np

from rtgauge.record.histogram import bin_of
from rtgauge.record.model import ThreadCounts, WarmUp
from rtgauge.record.stream import SeriesLine, Summary
from rtgauge.record.windows import Windows


def row(values, *, missed=(), series=0, index=0, phase="measure"):
    values = np.asarray(values, dtype=np.int64)
    bins, counts = np.unique(bin_of(values), return_counts=True)
    missed_bins, missed_counts = np.unique(bin_of(np.asarray(missed, dtype=np.int64)), return_counts=True)
    return {
        "series": series, "phase": phase, "index": index, "start_ns": index * 10**9,
        "end_ns": (index + 1) * 10**9, "count": len(values), "missed": len(missed),
        "min_ns": int(values.min()) if len(values) else None,
        "max_ns": int(values.max()) if len(values) else None,
        "sum_ns": int(values.sum()),
        "m2_ns2": float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0,
        "bins": bins.tolist(), "counts": counts.tolist(), "missed_bins": missed_bins.tolist(),
        "missed_counts": missed_counts.tolist(),
    }  # fmt: skip


def windows_of(*rows):
    return Windows.of_rows(rows)


def engine_line(values, *, missed=(), series=0):
    """The `summary` line that belongs to these values."""
    r = row(values, missed=missed)
    figures = {k: r[k] for k in ("count", "missed", "min_ns", "max_ns", "sum_ns", "m2_ns2")}
    return Summary(
        type="summary",
        series=series,
        **figures,
        lost=0,
        impossible=0,
        warm_up=WarmUp(),
        thread=ThreadCounts(),
    )


def info(series=0, metric="latency", unit="ns", **labels):
    return SeriesLine(
        type="series", series=series, metric=metric, unit=unit, labels=labels or {"cpu": series}
    )
