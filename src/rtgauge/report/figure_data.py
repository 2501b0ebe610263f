# SPDX-License-Identifier: MIT
"""Computes the numbers that the figures show: exact sums and maxima of a step's windows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from rtgauge.record.histogram import NO_BINS, OVERFLOW_BIN, Histogram, Integers, lower_ns, upper_ns
from rtgauge.record.merged_windows import merge
from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.record.windows import UNKNOWN, Windows
from rtgauge.report.record_view import (
    Condition,
    RecordView,
    RequiredBound,
    has_distribution,
    quantities,
    quantity_of,
)

ALL = "all"
"""The name for all CPUs together, used instead of a CPU's number."""

Key = TypeVar("Key")
WIDTHS_US = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""The possible bin widths of a drawn histogram."""


def time_series(step: Step) -> dict[int, str]:
    """Return series number -> CPU for each main series in ns; without a CPU, its labels or number. Empty if
    the probe has tables and figures of its own.
    """
    named: dict[int, str] = {}
    if not has_distribution(step):
        return named  # the probe has tables and figures of its own
    for summary in step.main_series:
        if summary.unit == "ns" and summary.series is not None:
            cpu = summary.labels.get("cpu")
            other = " ".join(str(part) for part in summary.labels.values())
            named[summary.series] = str(cpu) if cpu is not None else other or str(summary.series)
    return named


def cpu_order(cpus: set[str]) -> list[str]:
    """Sort CPUs by number, followed by other names."""
    return sorted(cpus, key=lambda c: (not c.isdigit(), int(c) if c.isdigit() else 0, c))


@dataclass(frozen=True)
class CpuHistograms:
    """The results of one CPU under one condition, summed over repeats: histograms of measured and missed
    activations, and the exact largest value.

    `unplaced` samples are in no bin, because another tool's histogram lacks them.
    """

    plain: Histogram = NO_BINS
    missed: Histogram = NO_BINS
    max_ns: int | None = None
    unplaced: int = 0

    def plus(self, other: CpuHistograms) -> CpuHistograms:
        """Return the sum of both results."""
        known = [value for value in (self.max_ns, other.max_ns) if value is not None]
        return CpuHistograms(
            self.plain.plus(other.plain),
            self.missed.plus(other.missed),
            max(known, default=None),
            self.unplaced + other.unplaced,
        )


def measured(windows: Windows, cpus: Mapping[int, str]) -> dict[str, CpuHistograms]:
    """Return each CPU's results in a step, without the warm-up. `cpus`: from `time_series`."""
    by_cpu: dict[str, CpuHistograms] = {}
    for series, cpu in cpus.items():
        merged = merge(windows, series)
        placed = Histogram(merged.bins, merged.counts)
        missed = Histogram(merged.missed_bins, merged.missed_counts)
        part = CpuHistograms(placed, missed, merged.max_ns, merged.count - merged.placed)
        by_cpu[cpu] = by_cpu.get(cpu, CpuHistograms()).plus(part)
    return by_cpu


def by_cpu(record: Record, condition: Condition) -> dict[str, CpuHistograms]:
    """Return the results of each CPU and of `ALL` under a condition; empty if nothing was measured in ns."""
    by_cpu: dict[str, CpuHistograms] = {}
    for step in condition.steps:
        cpus = time_series(step)
        if cpus:
            for cpu, part in measured(record.windows(step), cpus).items():
                by_cpu[cpu] = by_cpu.get(cpu, CpuHistograms()).plus(part)
    ordered = {cpu: by_cpu[cpu] for cpu in cpu_order(set(by_cpu))}
    return {ALL: functools.reduce(CpuHistograms.plus, ordered.values()), **ordered} if ordered else {}


@dataclass(frozen=True)
class Outline:
    """A histogram as steps: from `x_us[i]` on, each bin holds `count[i]`. The last count is 0."""

    x_us: npt.NDArray[np.float64]
    count: Integers

    @property
    def points(self) -> list[tuple[float, int]]:
        """The corners of the steps, as (x in us, count)."""
        return list(zip(self.x_us.tolist(), self.count.tolist(), strict=True))


def outline(histogram: Histogram, width_us: int = 1) -> Outline:
    """Return the outline with bins of `width_us`, or beyond 10 ms with the histogram's own. Gaps count 0."""
    if not len(histogram.bins):
        return Outline(np.array([], dtype=np.float64), np.array([], dtype=np.int64))
    lower = lower_ns(histogram.bins)
    upper = upper_ns(histogram.bins) + 1
    width = width_us * 1_000
    start = lower // width * width
    end = np.maximum(start + width, upper)
    start, first = np.unique(start, return_index=True)
    end = np.maximum.reduceat(end, first)
    count = np.add.reduceat(histogram.counts, first)
    x: list[float] = []
    y: list[int] = []
    last: int | None = None
    for here, following, number in zip(start.tolist(), end.tolist(), count.tolist(), strict=True):
        if last is None or here > last:
            x.append((here if last is None else last) / 1_000)
            y.append(0)
        if y[-1] != number:
            x.append(here / 1_000)
            y.append(number)
        last = following
    return Outline(np.array([*x, (last or 0) / 1_000]), np.array([*y, 0], dtype=np.int64))


class Outlines(NamedTuple, Generic[Key]):
    """The outlines of several histograms with bins of one width."""

    width_us: int
    of: dict[Key, Outline]


def outlines(histograms: Mapping[Key, Histogram], most_corners: int) -> Outlines[Key]:
    """Return each histogram's outline, with the narrowest bins that need at most `most_corners` corners in
    total, or else the widest of WIDTHS_US.
    """
    width, drawn = 1, dict[Key, Outline]()
    for width in WIDTHS_US:
        drawn = {key: outline(histogram, width) for key, histogram in histograms.items()}
        if sum(len(shape.x_us) for shape in drawn.values()) <= most_corners:
            break
    return Outlines(width, drawn)


@dataclass(frozen=True)
class Curve:
    """An exceedance curve as steps: the share of activations above `x_us[i]` is `share[i]`. No activation is
    above the last `x_us`, but the last share repeats the previous one, because a log axis has no 0.
    """

    x_us: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]
    lower_bound: bool
    """Whether the histogram overflows at the end, so that the curve really ends further right."""
    upper_bound: bool = False
    """Whether samples in no bin count as the largest value, so that the curve is an upper bound."""

    @property
    def points(self) -> list[tuple[float, float]]:
        """The corners of the steps, as (x in us, share)."""
        return list(zip(self.x_us.tolist(), self.share.tolist(), strict=True))


def exceedance(histogram: Histogram, max_ns: int | None, points: int = 250, *, unplaced: int = 0) -> Curve:
    """Return the curve of one histogram. `max_ns`: the exact largest value, if known; `unplaced`: samples in
    no bin.

    The curve is thinned to about `points` points: steps smaller than the line's width are dropped. The last
    `points` // 8 corners, the tail, are all kept.
    """
    total = histogram.total + unplaced
    if histogram.total == 0:
        return Curve(np.array([]), np.array([]), lower_bound=False)
    overflowed = int(histogram.bins[-1]) >= OVERFLOW_BIN
    top = upper_ns(histogram.bins)
    if max_ns is not None:
        top = np.where(histogram.bins >= OVERFLOW_BIN, max_ns, np.minimum(top, max_ns))
    above = total - np.cumsum(histogram.counts)
    if unplaced:
        top, above = np.append(top, top[-1] if max_ns is None else max_ns), np.append(above, 0)
    x = np.concatenate([[int(lower_ns(histogram.bins[0]))], top])
    x = np.maximum(x, 1).astype(np.float64) / 1_000  # a log axis cannot show 0 ns
    share = np.concatenate([[total], above[:-1], [above[-2] if len(above) > 1 else total]]) / total
    keep = _thin(x, share, points)
    lower_bound = (overflowed or unplaced > 0) and max_ns is None
    return Curve(x[keep], share[keep], lower_bound=lower_bound, upper_bound=unplaced > 1)


def _thin(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], points: int) -> list[int]:
    if len(x) <= points:
        return list(range(len(x)))
    # Python numbers take a fifth of numpy's time if used one by one.
    log_x, log_y = np.log10(x).tolist(), np.log10(y).tolist()
    step_x, step_y = (log_x[-1] - log_x[0]) / points, (log_y[0] - log_y[-1]) / points
    keep = [0]
    for i in range(1, len(x)):
        if (
            i >= len(x) - points // 8
            or log_x[i] - log_x[keep[-1]] > step_x
            or log_y[keep[-1]] - log_y[i] > step_y
        ):
            keep.append(i)
    return keep


@dataclass(frozen=True)
class StepPhase:
    """One phase of a step, on the course's time axis (s)."""

    step: str
    kind: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Point:
    """One CPU's largest latency in an interval of time, and its missed activations."""

    step: str
    cpu: str
    kind: str
    start_s: float
    end_s: float
    max_us: float | None
    missed: int


@dataclass(frozen=True)
class Course:
    """Maxima over time. `bucket_s`: the time that a point covers. `continuous`: whether the steps
    are drawn with the true times between them, instead of one directly after another.
    """

    phases: list[StepPhase]
    points: list[Point]
    bucket_s: float
    continuous: bool


@dataclass(frozen=True)
class _Span:
    step: Step
    start_ns: int
    end_ns: int
    windows: Windows


def _spans(record: Record) -> list[_Span]:
    spans: list[_Span] = []
    for step in record.steps:
        cpus = time_series(step)
        if not cpus:
            continue
        windows = record.windows(step, bins=False)
        windows = windows.chosen(np.isin(windows.series, list(cpus)))
        if len(windows) <= len(cpus):
            continue  # an import has one window per series, and so no course
        first, last = int(windows.start_ns.min()), int(windows.end_ns.max())
        load = step.load
        first = first if load.started_ns is None else min(first, load.started_ns)
        last = last if load.ended_ns is None else max(last, load.ended_ns)
        spans.append(_Span(step, first, last, windows))
    return spans


def _offsets(spans: Sequence[_Span]) -> tuple[list[int], bool]:
    """Return the time to subtract from each span's clock (ns), and whether the true times between steps are
    kept.
    """
    together = sum(span.end_ns - span.start_ns for span in spans)
    gaps = [later.start_ns - earlier.end_ns for earlier, later in itertools.pairwise(spans)]
    shared_clock = len({tuple(sorted(span.step.key.targets.items())) for span in spans}) == 1
    if shared_clock and all(gap > -(10**9) for gap in gaps) and sum(gaps) <= together:
        return [spans[0].start_ns] * len(spans), True
    offsets: list[int] = []
    begin = 0
    for span in spans:
        offsets.append(span.start_ns - begin)
        begin += span.end_ns - span.start_ns + together // 100
    return offsets, False


def course(record: Record, buckets: int = 900) -> Course | None:
    """Return the maxima over time, thinned to about `buckets` per CPU; None if there are no data."""
    spans = sorted(_spans(record), key=lambda span: record.run.steps.index(span.step.id))
    if not spans:
        return None
    offsets, continuous = _offsets(spans)
    length = sum(span.end_ns - span.start_ns for span in spans)
    window_ns = max(int((span.windows.end_ns - span.windows.start_ns).max()) for span in spans)
    bucket_ns = window_ns * max(1, -(-length // (window_ns * buckets)))
    phases: list[StepPhase] = []
    points: list[Point] = []
    for span, offset in zip(spans, offsets, strict=True):
        phases += _phases(span, offset)
        points += _points(span, offset, bucket_ns)
    return Course(phases, points, bucket_ns / 1e9, continuous)


def _phases(span: _Span, offset: int) -> list[StepPhase]:
    measured = span.windows.measured
    if not measured.any():
        return [
            StepPhase(span.step.id, "warm-up", (span.start_ns - offset) / 1e9, (span.end_ns - offset) / 1e9)
        ]
    first, last = int(span.windows.start_ns[measured].min()), int(span.windows.end_ns[measured].max())
    phases = [StepPhase(span.step.id, "measure", (first - offset) / 1e9, (last - offset) / 1e9)]
    if first > span.start_ns:
        phases.insert(
            0, StepPhase(span.step.id, "warm-up", (span.start_ns - offset) / 1e9, (first - offset) / 1e9)
        )
    return phases


def _points(span: _Span, offset: int, bucket_ns: int) -> list[Point]:
    cpus, windows = time_series(span.step), span.windows
    cpu_of_window = np.array([cpus[number] for number in windows.series.tolist()])
    buckets = 2 * ((windows.start_ns - windows.start_ns.min()) // bucket_ns) + windows.measured
    points: list[Point] = []
    for cpu in sorted({*cpu_of_window.tolist(), ALL}):
        own = np.full(len(windows), fill_value=True) if cpu == ALL else cpu_of_window == cpu
        numbers, group = np.unique(buckets[own], return_inverse=True)
        starts = np.full(len(numbers), np.iinfo(np.int64).max)
        ends, largest = np.full((2, len(numbers)), UNKNOWN)
        missed = np.zeros(len(numbers), dtype=np.int64)
        np.minimum.at(starts, group, windows.start_ns[own])
        np.maximum.at(ends, group, windows.end_ns[own])
        np.maximum.at(largest, group, windows.max_ns[own])
        np.add.at(missed, group, windows.missed[own])
        points += [
            Point(
                step=span.step.id,
                cpu=cpu,
                kind="measure" if numbers[at] % 2 else "warm-up",
                start_s=float(starts[at] - offset) / 1e9,
                end_s=float(ends[at] - offset) / 1e9,
                max_us=None if largest[at] == UNKNOWN else float(largest[at]) / 1_000,
                missed=int(missed[at]),
            )
            for at in np.argsort(starts, kind="stable")
        ]
    return points


@dataclass(frozen=True)
class Source:
    """The steps that no chapter draws: conditions by label, results of each CPU, and bounds by quantity."""

    view: RecordView
    conditions: dict[str, Condition]
    measured: dict[str, dict[str, CpuHistograms]]
    bounds: dict[str, RequiredBound]
    whole: RecordView
    """The view with all of the record's steps."""

    @classmethod
    def of(cls, whole: RecordView) -> Source:
        """Read the windows of every step. Raises RecordError for a damaged record."""
        view = whole.unfolded  # chapters draw the other steps
        by_label = {condition.label: condition for condition in view.conditions}
        numbers = {
            label: cpus for label, condition in by_label.items() if (cpus := by_cpu(view.record, condition))
        }
        return cls(view, by_label, numbers, whole.bounds, whole)

    @property
    def quantities(self) -> list[str]:
        """The measured quantities (latency, gap, switch, ...), latency first."""
        return quantities(step for condition in self.conditions.values() for step in condition.steps)

    def only(self, quantity: str) -> Source:
        """Return only the results of this quantity, with its bound."""
        conditions = self.conditions.items()
        kept = {label: each for label, each in conditions if quantity_of(each.steps[0]) == quantity}
        measured = {label: cpus for label, cpus in self.measured.items() if label in kept}
        bounds = {name: bound for name, bound in self.bounds.items() if name == quantity}
        return replace(self, conditions=kept, measured=measured, bounds=bounds)

    @property
    def bound(self) -> RequiredBound | None:
        """The bound on a measured quantity, on latency if there are several; None without one."""
        return next((self.bounds[name] for name in self.quantities if name in self.bounds), None)

    @property
    def cpus(self) -> list[str]:
        """Every CPU that was measured under any condition."""
        return cpu_order({cpu for cpus in self.measured.values() for cpu in cpus if cpu != ALL})

    @property
    def labels(self) -> list[str]:
        """The conditions with data to draw."""
        return list(self.measured)
