# SPDX-License-Identifier: MIT
"""Builds the windows of a series from samples that the engine did not measure, such as an instrument's."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from rtgauge.record.histogram import NO_BINS, NO_INTEGERS, Histogram, Integers, encode_bins, signed_bin_of
from rtgauge.record.merged_windows import merge_moments
from rtgauge.record.model import Outlier, ThreadCounts, WarmUp
from rtgauge.record.stream import Summary, Window
from rtgauge.units import NS_PER_S

Phase = Literal["warm-up", "measure"]
OUTLIERS = 20
"""How many of the largest values are kept, the same number as in the engine."""
LONGEST_GAP = 3_600
"""The longest gap between samples, in windows, that is filled with empty windows."""


@dataclass
class PhaseTotals:
    """Totals of the values in a phase or a window."""

    count: int = 0
    missed: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    sum_ns: int = 0
    m2_ns2: float = 0.0

    @property
    def figures(self) -> dict[str, Any]:
        """The totals by name, as a window and a summary have them."""
        return {each.name: getattr(self, each.name) for each in fields(PhaseTotals)}

    def add(self, values: Integers) -> None:
        """Add values (ns)."""
        if not len(values):
            return
        low, high = int(values.min()), int(values.max())
        # Sum in Python integers if 64 bits might overflow.
        total = int(values.sum()) if max(-low, high) < 2**62 // len(values) else sum(values.tolist())
        m2 = float(np.square(values - values.mean()).sum())
        merged = merge_moments([self.count, len(values)], [self.sum_ns, total], [self.m2_ns2, m2])
        self.count, self.sum_ns, self.m2_ns2 = merged.count, merged.sum_ns, merged.m2_ns2
        self.min_ns = low if self.min_ns is None else min(self.min_ns, low)
        self.max_ns = high if self.max_ns is None else max(self.max_ns, high)


@dataclass
class _Open(PhaseTotals):
    """The window that is being filled."""

    index: int = 0
    measured: Histogram = NO_BINS
    late: Histogram = NO_BINS
    """The latencies that the missed activations would have had."""


def _with(histogram: Histogram, values: Integers) -> Histogram:
    """Return the histogram with these values added."""
    if not len(values):
        return histogram
    added = signed_bin_of(values)
    return histogram.plus(Histogram(added, np.ones_like(added)))


class WindowBuilder:
    """Builds one-second windows of one series, starting at `start_ns`, from samples with their own times."""

    def __init__(self, series: int, start_ns: int) -> None:
        self._series = series
        self._phase: Phase = "measure"
        self._start_ns = start_ns
        self._last_ns = start_ns
        self._open = _Open()
        self._totals: dict[Phase, PhaseTotals] = {"warm-up": PhaseTotals(), "measure": PhaseTotals()}
        self._largest = np.empty((0, 2), dtype=np.int64)

    def begin(self, phase: Phase, start_ns: int) -> None:
        """Start this phase at `start_ns`. The previous phase must be closed."""
        self._phase, self._start_ns, self._last_ns, self._open = phase, start_ns, start_ns, _Open()

    def add(
        self,
        times_ns: Integers,
        values_ns: Integers,
        missed_times_ns: Integers = NO_INTEGERS,
        missed_values_ns: Integers = NO_INTEGERS,
    ) -> list[Window]:
        """Add samples (times and values of equal length) and missed activations (times, and the smallest
        latency that each would have had); return the completed windows.

        No sample may be from an earlier second than the last one that was added.
        """
        completed: list[Window] = []
        seconds = (times_ns - self._start_ns) // NS_PER_S
        missed_seconds = (missed_times_ns - self._start_ns) // NS_PER_S
        for second in np.union1d(seconds, missed_seconds).tolist():
            completed += self._advance(max(int(second), self._open.index))
            self._add_here(values_ns[seconds == second], missed_values_ns[missed_seconds == second])
        for times in (times_ns, missed_times_ns):
            if len(times):
                self._last_ns = max(self._last_ns, int(times.max()))
        if self._phase == "measure" and len(values_ns):
            every = np.concatenate([self._largest, np.stack([times_ns, values_ns], axis=1)])
            self._largest = every[np.argsort(-np.abs(every[:, 1]), kind="stable")[:OUTLIERS]]
        return completed

    def close(self, end_ns: int | None = None) -> list[Window]:
        """Close the phase at `end_ns`, or at its last sample if not given; return its last windows."""
        end = max(self._last_ns + 1, self._start_ns + 1 if end_ns is None else end_ns)
        completed = self._advance((end - 1 - self._start_ns) // NS_PER_S)
        completed.append(self._window(self._open, end))
        return completed

    @property
    def outliers(self) -> list[Outlier]:
        """The largest values by magnitude, the largest first."""
        return [
            Outlier(series=self._series, time_ns=time, value_ns=value, cpu=None)
            for time, value in self._largest.tolist()
        ]

    def totals(self, phase: Phase = "measure") -> PhaseTotals:
        """Return the totals of everything that was added in a phase."""
        return self._totals[phase]

    def warm_up(self) -> WarmUp:
        """Return the warm-up's counts, for the summary."""
        totals = self.totals("warm-up")
        return WarmUp(count=totals.count, missed=totals.missed, max_ns=totals.max_ns)

    def _advance(self, index: int) -> list[Window]:
        """Open the window `index`; return the windows before it."""
        completed: list[Window] = []
        while self._open.index < index:
            if index - self._open.index > LONGEST_GAP and not self._open.count and not self._open.missed:
                self._open = _Open(index=index)
                break
            completed.append(self._window(self._open, self._start_ns + (self._open.index + 1) * NS_PER_S))
            self._open = _Open(index=self._open.index + 1)
        return completed

    def _add_here(self, values: Integers, missed_values: Integers) -> None:
        window = self._open
        window.add(values)
        self._totals[self._phase].add(values)
        window.missed += len(missed_values)
        self._totals[self._phase].missed += len(missed_values)
        window.measured, window.late = _with(window.measured, values), _with(window.late, missed_values)

    def _window(self, counts: _Open, end_ns: int) -> Window:
        return Window(
            type="window",
            series=self._series,
            phase=self._phase,
            index=counts.index,
            start_ns=self._start_ns + counts.index * NS_PER_S,
            end_ns=end_ns,
            **counts.figures,
            bins=encode_bins(*counts.measured),
            missed_bins=encode_bins(*counts.late),
        )


def summary_line(series: int, totals: PhaseTotals, warm_up: WarmUp, lost: int = 0) -> Summary:
    """Return the `summary` line that an engine would write for the series."""
    return Summary(
        type="summary",
        series=series,
        **totals.figures,
        lost=lost,
        impossible=0,
        warm_up=warm_up,
        thread=ThreadCounts(),
    )
