# SPDX-License-Identifier: MIT
"""Makes a step of a record from another tool's measurement.

Values are not changed. cyclictest truncates latencies to whole us, so 12 us means 12.000 to 12.999 us. The
step then has the parameter `resolution_ns` and the mark `resolution-1us`. Its quantiles are whole us, and a
verdict assumes that a value is up to 999 ns larger. Samples above the tool's histogram are counted, but in no
bin (docs/formats/record.md). If a tool waits for absolute release times but does not report missed
activations, these are derived from its latencies and its interval, if known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rtgauge.errors import InputError, RecordError
from rtgauge.record.histogram import add_bins, bin_of, signed_bin_of
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import LoadReport, Mark, Step, StepKey
from rtgauge.record.stream import SeriesLine
from rtgauge.record.summary import StepSummary, summarise_step
from rtgauge.record.windows import Windows
from rtgauge.record.windows_file import check_windows
from rtgauge.units import NS_PER_S, format_duration, format_span, format_time, plural
from rtgauge_ext.importers.foreign_file import MAX_COUNT, MAX_VALUE_NS, damaged
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.measurement import SHORT_NS, ImportedSeries, Measurement, scheduling_marks
from rtgauge_ext.instrument.instrument_marks import InstrumentMarkKind

RELEASED = {"wakeup", "periodic", "response"}
"""Probes whose missed activations are shown."""
MAX_MISSED = 10**7
MAX_SUM_NS = 2**62


def _name(series: ImportedSeries) -> str:
    return ", ".join(f"{label} {value}" for label, value in series.labels.items()) or series.metric


def _problem(series: ImportedSeries, resolution_ns: int) -> str | None:
    """Return why the values are impossible or contradictory; None if they are not."""
    low, high = series.minimum_ns, series.maximum_ns
    if not 0 <= series.count <= MAX_COUNT or series.overflow < 0:
        return f"{series.count} samples"
    if series.count == 0:
        return None
    for value in (low, high, min(series.histogram, default=None), max(series.histogram, default=None)):
        if value is not None and abs(value) > MAX_VALUE_NS:
            return f"a {series.metric} of {value} ns is too large to be true"
    if low is not None and high is not None and low > high:
        return f"its minimum, {low} ns, is larger than its maximum, {high} ns"
    if series.histogram and not series.absolute:
        first, last = min(series.histogram), max(series.histogram)
        if first < 0:
            return f"it has a negative {series.metric} ({first} ns)"
        # A value may be too small by up to the resolution minus 1. Extremes may be finer.
        if (low is not None and first < low - low % resolution_ns) or (high is not None and last > high):
            return (
                f"its histogram ({first} to {last} ns) extends beyond its minimum ({low} ns) or maximum "
                f"({high} ns)"
            )
        if high is not None and series.overflow == 0 and last != high - high % resolution_ns:
            return f"its maximum, {high} ns, is neither in its histogram nor above it"
    if series.overflow and series.limit_ns is not None and high is not None and high < series.limit_ns:
        above = f"it has samples above the end of its histogram ({series.limit_ns} ns)"
        return f"{above}, but its maximum is {high} ns"
    return None


def _known(series: ImportedSeries) -> dict[int, int]:
    """Return value (ns) -> number of samples, for known values: in the histogram, and the maximum."""
    known = _placed(series)
    if series.overflow and series.maximum_ns is not None:
        known[series.maximum_ns] = known.get(series.maximum_ns, 0) + 1
    return known


def _missed(series: ImportedSeries, resolution_ns: int, interval_ns: int) -> tuple[list[int], list[int]]:
    """Return the bins of the missed activations' latencies, which follow from the samples of known value, and
    the counts of the bins.
    """
    values: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    counts: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    for latency, count in _known(series).items():
        if latency < 0:
            continue
        # A truncated latency is nearly always a little longer than printed.
        longest = latency + resolution_ns - 1
        runs = (longest - 1) // interval_ns if longest > interval_ns else 0
        if runs > MAX_MISSED:
            latency_text = f"a latency of {latency} ns is impossible at an interval of {interval_ns} ns"
            raise InputError(f"{latency_text}; the file is damaged or uses another unit")
        if runs:
            values.append(np.maximum(latency - np.arange(1, runs + 1, dtype=np.int64) * interval_ns, 0))
            counts.append(np.full(runs, count, dtype=np.int64))
    if not values:
        return [], []
    bins, sums = add_bins(bin_of(np.concatenate(values)), np.concatenate(counts))
    return bins.tolist(), sums.tolist()


def _placed(series: ImportedSeries) -> dict[int, int]:
    """Return value (ns) -> samples. Values below the minimum count as the minimum; unsigned values above the
    maximum were negative.
    """
    if not series.absolute:
        low = series.minimum_ns or 0
        return {max(value, low): count for value, count in series.histogram.items()}
    high = math.inf if series.maximum_ns is None else series.maximum_ns
    return {-value if value > high else value: count for value, count in series.histogram.items()}


def _complete(series: ImportedSeries) -> bool:
    """Return whether the value of every sample is known to the tool's resolution."""
    known = series.overflow <= (series.maximum_ns is not None)
    return bool(series.histogram) and known and not series.absolute


def _own_average(series: ImportedSeries, resolution_ns: int) -> bool:
    """Return whether the tool computed the mean from finer values or more samples than its histogram has."""
    finer = series.finer_average or resolution_ns > 1000 or not _complete(series)
    return series.average_ns is not None and finer


def _moments(series: ImportedSeries, resolution_ns: int) -> tuple[int | None, float | None]:
    """Return the sum (ns) and the sum of squared deviations (ns2); None if unknown. They are from the
    histogram, or from the tool's own figures if these are finer or cover more values.
    """
    total: int | None = None
    m2: float | None = None
    if _complete(series):
        known = _known(series)
        total = sum(value * count for value, count in known.items())
        if resolution_ns <= 1000:  # from wide bins, this would be the deviation of the bins' edges
            mean = total / series.count
            m2 = float(sum((value - mean) ** 2 * count for value, count in known.items()))
    if _own_average(series, resolution_ns) and series.average_ns is not None:
        total = round(series.average_ns * series.count)
        m2 = m2 if series.std_ns is None else series.std_ns**2 * max(series.count - 1, 0)
    return total, m2


def _contradiction(series: ImportedSeries, resolution_ns: int, *, cut: bool) -> str | None:
    """Return how the tool's average contradicts its histogram; None if it does not.

    `cut`: whether the average is truncated. Each sample lies within its bin and between the extremes. Samples
    above the histogram lie at its end or beyond, and only one sample need be the maximum.
    """
    average, high = series.average_ns, series.maximum_ns
    if average is None or not series.histogram or series.absolute or series.count == 0 or high is None:
        return None
    slack = resolution_ns - 1
    least = sum(value * count for value, count in _placed(series).items())
    most = sum(min(value + slack, high + slack) * count for value, count in series.histogram.items())
    if series.overflow:
        least += (series.limit_ns or series.minimum_ns or 0) * (series.overflow - 1) + high
        most += (high + slack) * series.overflow
    lower, upper = least / series.count, most / series.count
    # The average is truncated to a unit, or rounded to a hundredth of a unit.
    rounded = max(resolution_ns / 100, 10)
    if lower - (min(resolution_ns, 1000) if cut else rounded) <= average <= upper + rounded:
        return None
    in_file = f"{_name(series)}: the average in the file is {format_time(float(average))}"
    return (
        f"{in_file}, but the average of its histogram is between {format_time(lower)} and "
        f"{format_time(upper)}"
    )


def _row(number: int, index: int, **more: Any) -> dict[str, Any]:
    return {
        "series": number, "phase": "measure", "index": index, "start_ns": 0, "missed": 0, "m2_ns2": None,
        "bins": [], "counts": [], "missed_bins": [], "missed_counts": [], **more,
    }  # fmt: skip


def _windows(number: int, measurement: Measurement, interval_ns: int | None) -> list[dict[str, Any]]:
    """Return the rows of the windows of one series. `number`: its index in the measurement."""
    series, resolution_ns = measurement.series[number], measurement.resolution_ns
    if series.seconds:
        return [
            _row(
                number,
                at,
                start_ns=at * 10**9,
                end_ns=(at + 1) * 10**9,
                count=second.count,
                min_ns=second.minimum_ns,
                max_ns=second.maximum_ns,
                sum_ns=round(second.average_ns * second.count),
            )
            for at, second in enumerate(series.seconds)
        ]
    placed = _placed(series)
    values, samples = (np.array(list(part), dtype=np.int64) for part in (placed, placed.values()))
    bins, counts = add_bins(signed_bin_of(values), samples)
    total, m2 = _moments(series, resolution_ns)
    if total is not None and abs(total) >= MAX_SUM_NS:
        raise damaged(measurement.source, f"the values of {_name(series)} add up to more than 146 years")
    missed_bins: list[int] = []
    missed_counts: list[int] = []
    if interval_ns is not None and measurement.releases:
        missed_bins, missed_counts = _missed(series, resolution_ns, interval_ns)
    missed = sum(missed_counts)
    if missed > MAX_COUNT:
        follow = f"its latencies would imply {missed} missed activations"
        raise damaged(measurement.source, f"{_name(series)}: {follow}")
    row = _row(
        number,
        0,
        end_ns=min((series.count + missed) * (interval_ns or 0), MAX_SUM_NS),
        count=series.count,
        missed=missed,
        min_ns=series.minimum_ns,
        max_ns=series.maximum_ns,
        sum_ns=total,
        m2_ns2=m2,
        bins=bins.tolist(),
        counts=counts.tolist(),
        missed_bins=missed_bins,
        missed_counts=missed_counts,
    )
    return [row]


def _histogram_marks(measurement: Measurement, *, contradicted: bool) -> list[Mark]:
    marks: list[Mark] = []
    overflow = sum(series.overflow for series in measurement.series if series.histogram)
    if overflow:
        where = "outside every bin of" if contradicted else "above"
        others = "may have any smaller value" if contradicted else "count as at least the histogram's end"
        lie = f"{plural(overflow, 'sample')} {'lies' if overflow == 1 else 'lie'}"
        samples = f"{lie} {where} {measurement.tool}'s histogram"
        detail = f"{samples}; only the largest of each series is known, and the others {others}"
        marks.append(InstrumentMarkKind.HISTOGRAM_OVERFLOW.mark(detail))
    if any(not series.histogram and series.count for series in measurement.series):
        marks.append(ImportMarkKind.NO_HISTOGRAM.mark())
    averaged = (series for series in measurement.series if series.average_ns is not None)
    if measurement.average_is_cut and any(series.overflow > 1 for series in averaged):
        own = f"the histogram is incomplete, so the mean is what {measurement.tool} prints, rounded down"
        marks.append(ImportMarkKind.MEAN_ROUNDED.mark(f"{own}, and the standard deviation is unknown"))
    return marks


def _contradictions(measurement: Measurement) -> tuple[list[ImportedSeries], list[Mark]]:
    """Return the series, and marks for contradictory averages. In such series, samples outside the histogram
    may lie anywhere.
    """
    contradictions: list[str] = []
    series: list[ImportedSeries] = []
    for part in measurement.series:
        text = _contradiction(part, measurement.resolution_ns, cut=measurement.average_is_cut)
        if text is not None:
            contradictions.append(text)
            part = replace(part, limit_ns=part.minimum_ns if part.overflow else part.limit_ns)  # noqa: PLW2901 - the same series
        series.append(part)
    if not contradictions:
        return series, []
    more = f" (and {len(contradictions) - 1} more series)" if len(contradictions) > 1 else ""
    why = (
        "the average or the histogram does not cover all samples, so a sample outside the bins may have any "
        "value"
    )
    return series, [ImportMarkKind.AVERAGE_CONTRADICTS.mark(f"{contradictions[0]}{more}: {why}")]


def _duration_ns(measurement: Measurement, intervals: Sequence[int | None]) -> int:
    """Return how long (ns) the tool measured, from the file or the activations' interval; 0 if unknown."""
    each = zip(measurement.series, intervals, strict=True)
    computed = (series.count * interval for series, interval in each if interval is not None)
    return measurement.duration_ns or max(computed, default=0)


def _marks(
    measurement: Measurement, intervals: Sequence[int | None], missed: int, *, contradicted: bool
) -> list[Mark]:
    tool, resolution = measurement.tool, measurement.resolution_ns
    marks: list[Mark] = []
    if measurement.series and resolution == 1000:
        detail = f"{tool} truncates to whole us, so values may be up to 999 ns larger"
        marks.append(InstrumentMarkKind.RESOLUTION_1US.mark(detail))
    elif measurement.series and resolution > 1:
        in_bins = f"{tool} counted in bins of {format_duration(resolution)}"
        marks.append(
            ImportMarkKind.RESOLUTION.mark(f"{in_bins}, so values may be up to {resolution - 1} ns larger")
        )
    if not measurement.unit_known:
        marks.append(ImportMarkKind.UNIT_ASSUMED.mark())
    marks += _histogram_marks(measurement, contradicted=contradicted)
    has_releases = bool(measurement.series) and measurement.probe in RELEASED
    if measurement.releases and any(interval is None for interval in intervals):
        detail = (
            f"{tool} does not report missed activations, and its interval is unknown, so rtgauge counts none"
        )
        marks.append(MarkKind.MISSED_UNKNOWN.mark(detail))
    elif has_releases and not measurement.releases and not measurement.counts_missed:
        unknown = f"the file does not say how many activations {tool} missed, nor how late they were"
        marks.append(MarkKind.MISSED_UNKNOWN.mark(f"{unknown}, so rtgauge counts none"))
    elif measurement.releases and missed:
        least = "at least " if any(series.overflow > 1 for series in measurement.series) else ""
        derived = f"from its latencies and interval, rtgauge derives {least}{missed}"
        marks.append(
            ImportMarkKind.MISSED_DERIVED.mark(f"{tool} does not report missed activations; {derived}")
        )
    policy, priority = (measurement.parameters.get(name) for name in ("policy", "priority"))
    marks += scheduling_marks(tool, policy, priority)
    duration = _duration_ns(measurement, intervals)
    if 0 < duration < SHORT_NS:
        detail = (
            f"{tool} measured for only {format_span(duration / NS_PER_S)}, so it may have missed rarer events"
        )
        marks.append(ImportMarkKind.SHORT_MEASUREMENT.mark(detail))
    return marks


def _cut_means(summary: StepSummary, measurement: Measurement) -> None:
    """Mark means that were truncated or come from wide bins, and minima that are lower bounds."""
    wide = measurement.resolution_ns > 1000
    truncated = {
        number
        for number, series in enumerate(measurement.series)
        if (wide and series.histogram and series.average_ns is None)
        or (measurement.average_is_cut and _own_average(series, measurement.resolution_ns))
    }
    cut = [of_series for of_series in summary.series if of_series.series in truncated]
    if truncated and summary.total is not None:
        cut.append(summary.total)
    for bounded in cut:
        if bounded.mean_ns is not None:
            bounded.lower_bounds.append("mean_ns")
            bounded.filled.lower_bounds.append("mean_ns")
    for of_series in summary.series:
        if of_series.series is not None and measurement.series[of_series.series].minimum_is_bound:
            of_series.lower_bounds.append("min_ns")


class StepAndWindows(NamedTuple):
    """A step and its windows."""

    step: Step
    windows: Windows


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
) -> StepAndWindows:
    """Make the step with one window for each series, or for each second if the tool prints every second.

    `interval_ns`: interval of all series, by default from the file. Raises InputError for contradictory
    values.
    """
    resolution = measurement.resolution_ns
    for series in measurement.series:
        problem = _problem(series, resolution)
        if problem is not None:
            raise damaged(measurement.source, f"{_name(series)}: {problem}")
    series_list, contradictions = _contradictions(measurement)
    measurement = replace(measurement, series=series_list)
    intervals = [series.interval_ns if interval_ns is None else interval_ns for series in measurement.series]
    rows: list[dict[str, Any]] = []
    for number, interval in enumerate(intervals):
        rows += _windows(number, measurement, interval)
    try:
        windows = Windows.of_rows(rows)
        check_windows(windows)
    except (RecordError, ValueError) as error:
        raise damaged(measurement.source, str(error)) from None
    numbered = list(enumerate(measurement.series))
    limits = {number: series.limit_ns for number, series in numbered if series.limit_ns is not None}
    lines = [
        SeriesLine(type="series", series=number, metric=series.metric, unit="ns", labels=series.labels)
        for number, series in numbered
    ]
    summary = summarise_step(
        windows, lines, resolution_ns=resolution, limits_ns=limits, unplaced_allowed=True
    )
    _cut_means(summary, measurement)
    missed = sum(row["missed"] for row in rows)
    own_marks = _marks(measurement, intervals, missed, contradicted=bool(contradictions))
    parameters: dict[str, Any] = {
        **measurement.parameters,
        "interval_ns": intervals[0] if len(set(intervals)) == 1 else None,
        "intervals_ns": intervals,
        "duration_ns": _duration_ns(measurement, intervals) or None,
        "resolution_ns": resolution,
        "histogram_limits_ns": {str(series): limit for series, limit in limits.items()},
        "command": measurement.command,
    }
    step = Step(
        id=step_id,
        key=key,
        tool=f"{measurement.tool} {measurement.version}" if measurement.version else measurement.tool,
        started=started,
        ended=ended,
        start_ns=None,
        end_ns=None,
        end_reason="imported",
        parameters=parameters,
        cpus=sorted({int(series.labels["cpu"]) for series in measurement.series if "cpu" in series.labels}),
        load=load,
        series=summary.series,
        total=summary.total,
        outliers=[],
        results=measurement.results,
        marks=[*marks, *measurement.marks, *contradictions, *own_marks, *summary.marks],
    )
    return StepAndWindows(step, windows)
