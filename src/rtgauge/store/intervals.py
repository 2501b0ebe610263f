# SPDX-License-Identifier: MIT
"""Intervals of a run's quantiles, from its windows: what lies within a run is kept with the run, so that the
spread between runs can be told from it without opening a record again.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rtgauge.analysis.quantile_interval import ENDLESS_NS, RunQuantile, why_no_interval
from rtgauge.analysis.window_counts import window_counts
from rtgauge.record.open_values import LIMITS
from rtgauge.store.names import INTERVALS

if TYPE_CHECKING:
    from collections.abc import Collection

    from rtgauge.record.model import Distribution, Step
    from rtgauge.record.reader import Record
    from rtgauge.record.windows import Windows

LEVEL = 0.95


class Intervals:
    """Of one step; its windows are read once, if at all."""

    def __init__(self, record: Record, step: Step) -> None:
        self._record, self._step = record, step

    @cached_property
    def _windows(self) -> Windows:
        return self._record.windows(self._step)

    def of(self, numbers: Collection[int], filled: Distribution) -> dict[str, Any]:
        """The columns of `result` with intervals at 95 % (None: too short for one), and the number and the
        length (ns) of the windows.

        `numbers`: the series together; `filled`: their figures. Raises RecordError.
        """
        columns: dict[str, Any] = {f"{name}_{end}_ns": None for name in INTERVALS for end in ("low", "high")}
        if not numbers or not filled.count:
            return columns | {"windows": None, "window_ns": None}
        from scipy.special import stdtrit

        windows = self._windows.chosen(self._windows.are_of(numbers))
        lengths = windows.end_ns - windows.start_ns
        columns |= {
            "windows": len(np.unique(windows.index)),
            "window_ns": round(float(np.median(lengths))) if len(lengths) else None,
        }
        if self._step.parameters.get(LIMITS):
            return columns  # a tool's histogram that ends: not all samples are in the bins
        resolution_ns = int(self._step.parameters.get("resolution_ns") or 1)
        run = window_counts(windows, windows.index, resolution_ns, filled)
        for name, share in INTERVALS.items():
            if why_no_interval(run, share) is None:
                quantile = RunQuantile(run, share)
                low, high = quantile.bounds(float(stdtrit(quantile.freedom, (1 + LEVEL) / 2)))
                columns[f"{name}_low_ns"] = low if abs(low) < ENDLESS_NS else None
                columns[f"{name}_high_ns"] = high if abs(high) < ENDLESS_NS else None
        return columns
