# SPDX-License-Identifier: MIT
"""Makes a step of a record from another tool's measurement.

Its values are kept as they are: cyclictest truncates latencies to whole us, so 12 us means 12.000 to 12.999 us. The record has
`resolution_ns` in the step's parameters and the mark `resolution-1us`; quantiles are whole us, and a verdict assumes that a
value is up to 999 ns larger. Samples above cyclictest's histogram are counted, but in no bin (docs/formats/record.md); their maximum is
known. Cyclictest does not report missed activations; they are derived from its latencies and its interval,
if that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rtgauge.errors import InputError
from rtgauge.record.histogram import bin_of
from rtgauge.record.model import LoadReport, Mark, Severity, Step, StepKey
from rtgauge.record.summary import StepSummary, summarise_step
from rtgauge.record.windows import SCHEMA, add_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.importers.measurement import Measurement, Thread

MAX_MISSED = 10**7


def _check(thread: Thread, source: str) -> None:
    """Raises InputError for contradictory values."""

    def wrong(problem: str) -> InputError:
        return InputError(f"{source} is a damaged cyclictest file: thread {thread.number}: {problem}")

    low, high = thread.minimum, thread.maximum
    if thread.cycles == 0:
        return
    if low is None or high is None or low > high:
        raise wrong(f"minimum {low} and maximum {high}")
    if low < 0:
        raise wrong(f"a negative latency ({low})")
    if thread.histogram and (min(thread.histogram) < low or max(thread.histogram) > high):
        raise wrong(f"its histogram exceeds its minimum {low} or maximum {high}")
    if thread.overflow and thread.limit is not None and high < thread.limit:
        raise wrong(f"{thread.overflow} samples are above its histogram, which ends at {thread.limit}, but its maximum is {high}")
    if thread.overflow == 0 and max(thread.histogram) != high:
        raise wrong(f"its maximum {high} is neither in its histogram nor above it")


def _known(thread: Thread) -> dict[int, int]:
    """Value -> number of samples, for samples of known value: those in the histogram and the maximum."""
    known = dict(thread.histogram)
    if thread.overflow and thread.maximum is not None:
        known[thread.maximum] = known.get(thread.maximum, 0) + 1
    return known


def _missed(thread: Thread, unit_ns: int, interval_ns: int) -> tuple[list[int], list[int]]:
    """(bins, counts) of the missed activations that follow from the samples of known value."""
    values: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    counts: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    for value, count in _known(thread).items():
        latency = value * unit_ns
        # A truncated latency is nearly always a little longer than printed.
        runs = (latency + unit_ns - 2) // interval_ns if latency + unit_ns - 1 > interval_ns else 0
        if runs > MAX_MISSED:
            raise InputError(f"a latency of {latency} ns at an interval of {interval_ns} ns: the file is damaged or has another unit")
        if runs:
            values.append(np.maximum(latency - np.arange(1, runs + 1, dtype=np.int64) * interval_ns, 0))
            counts.append(np.full(runs, count, dtype=np.int64))
    if not values:
        return [], []
    bins, sums = add_bins(bin_of(np.concatenate(values)), np.concatenate(counts))
    return bins.tolist(), sums.tolist()


def _window(series: int, thread: Thread, unit_ns: int, interval_ns: int | None) -> dict[str, Any]:
    values = np.array(list(thread.histogram), dtype=np.int64) * unit_ns
    counts = np.array(list(thread.histogram.values()), dtype=np.int64)
    bins, sums = add_bins(bin_of(values), counts)
    total: int | None = None
    m2: float | None = None
    if thread.overflow <= 1:  # all values are known: exact at the tool's resolution
        known = _known(thread)
        total = sum(value * unit_ns * count for value, count in known.items())
        mean = total / thread.cycles if thread.cycles else 0.0
        m2 = float(sum((value * unit_ns - mean) ** 2 * count for value, count in known.items()))
    elif thread.average is not None:
        total = round(thread.average * unit_ns * thread.cycles)
    missed_bins, missed_counts = ([], []) if interval_ns is None else _missed(thread, unit_ns, interval_ns)
    missed = sum(missed_counts)
    releases = thread.cycles + missed
    return {
        "series": series, "phase": "measure", "index": 0, "start_ns": 0, "end_ns": releases * (interval_ns or 0), "count": thread.cycles, "missed": missed,
        "min_ns": None if thread.minimum is None else thread.minimum * unit_ns, "max_ns": None if thread.maximum is None else thread.maximum * unit_ns,
        "sum_ns": total, "m2_ns2": m2,
        "bins": bins.tolist(), "counts": sums.tolist(), "missed_bins": missed_bins, "missed_counts": missed_counts,
    }  # fmt: skip


def _note(name: str, detail: str) -> Mark:
    return Mark(name=name, severity=Severity.NOTE, detail=detail)


def _marks(measurement: Measurement, intervals: Sequence[int | None], missed: int, tool: str) -> list[Mark]:
    marks: list[Mark] = []
    if measurement.unit_ns == 1000:
        marks.append(_note("resolution-1us", f"{tool} truncates to whole us: values may be up to 999 ns larger"))
    if not measurement.unit_known:
        marks.append(_note("unit-assumed", "the text does not show whether it is in us or ns (-N): us assumed"))
    overflow = sum(thread.overflow for thread in measurement.threads)
    if any(thread.histogram for thread in measurement.threads) and overflow:
        detail = f"{overflow} samples are above {tool}'s histogram: each thread's largest is known, the others are at least the limit"
        marks.append(_note("histogram-overflow", detail))
    elif overflow:
        marks.append(_note("no-histogram", "the file has only minimum, average and maximum: quantiles are at least the minimum"))
    if any(thread.overflow > 1 for thread in measurement.threads):
        precision = "truncated to whole units" if measurement.average_is_cut else "rounded to 1/100 of a unit"
        marks.append(_note("mean-rounded", f"with an incomplete histogram the mean is {tool}'s own, {precision}, and there is no standard deviation"))
    if any(interval is None for interval in intervals):
        marks.append(_note("missed-unknown", f"{tool} does not report missed activations and its interval is unknown: none are counted"))
    elif missed:
        least = "at least " if any(thread.overflow > 1 for thread in measurement.threads) else ""
        marks.append(_note("missed-derived", f"{tool} does not report missed activations; from its latencies and interval: {least}{missed}"))
    if measurement.started is None:
        marks.append(_note("time-unknown", "the file does not contain the time of the measurement: its modification time is used"))
    return marks


def _labels(threads: Sequence[Thread]) -> list[dict[str, str | int]]:
    """The CPU as label if every thread has its own, else the thread."""
    cpus = [thread.cpu for thread in threads]
    known = [cpu for cpu in cpus if cpu is not None]
    if len(set(known)) == len(threads):
        return [{"cpu": cpu} for cpu in known]
    return [{"thread": thread.number} for thread in threads]


def _cut_means(summary: StepSummary, measurement: Measurement) -> None:
    """Mark means that the tool truncated as lower bounds."""
    if not measurement.average_is_cut:
        return
    truncated = {series for series, thread in enumerate(measurement.threads) if thread.overflow > 1}
    for series_summary in [*summary.series, *([summary.total] if summary.total else [])]:
        if series_summary.mean_ns is not None and (series_summary.series in truncated or (series_summary.series is None and truncated)):
            series_summary.lower_bounds.append("mean_ns")
            series_summary.filled.lower_bounds.append("mean_ns")


def imported_step(
    measurement: Measurement,
    *,
    step_id: str,
    key: StepKey,
    load: LoadReport,
    started: str,
    ended: str,
    interval_ns: int | None = None,
    marks: Sequence[Mark] = (),
    tool: str = "cyclictest",
) -> tuple[Step, pl.DataFrame]:
    """The step and its windows (one per thread, for the whole measurement).

    `interval_ns`: of all threads; by default from the file. Raises InputError for contradictory values.
    """
    unit = measurement.unit_ns
    rows: list[dict[str, Any]] = []
    intervals: list[int | None] = []
    for series, thread in enumerate(measurement.threads):
        _check(thread, measurement.source)
        interval = interval_ns if interval_ns is not None else None if not thread.interval_us else thread.interval_us * 1000
        intervals.append(interval)
        rows.append(_window(series, thread, unit, interval))
    windows = pl.DataFrame(rows, schema=SCHEMA)
    labels = _labels(measurement.threads)
    limits = {series: thread.limit * unit for series, thread in enumerate(measurement.threads) if thread.limit is not None}
    info = [{"series": series, "metric": "latency", "unit": "ns", "labels": label} for series, label in enumerate(labels)]
    summary = summarise_step(windows, info, resolution_ns=unit, limits_ns=limits, unplaced_allowed=True)
    _cut_means(summary, measurement)
    missed = sum(row["missed"] for row in rows)
    first = measurement.threads[0]
    parameters: dict[str, Any] = {
        "interval_ns": intervals[0] if len(set(intervals)) == 1 else None,
        "intervals_ns": intervals,
        "priority": first.priority,
        "resolution_ns": unit,
        "histogram_limits_ns": {str(series): limit for series, limit in limits.items()},
        "command": measurement.command,
    }
    step = Step(
        id=step_id,
        key=key,
        tool=f"{tool} {measurement.version}" if measurement.version else tool,
        started=started,
        ended=ended,
        start_ns=None,
        end_ns=None,
        end_reason="imported",
        parameters=parameters,
        cpus=[int(label["cpu"]) for label in labels if "cpu" in label],
        load=load,
        series=summary.series,
        total=summary.total,
        outliers=[],
        marks=[*marks, *_marks(measurement, intervals, missed, tool), *summary.marks],
    )
    return step, windows
