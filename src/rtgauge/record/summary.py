# SPDX-License-Identifier: MIT
"""Computes a step's statistics from its windows: a summary per series, and one for all main series."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rtgauge.record.histogram import EDGES_NS, OVERFLOW_BIN, add_bins, bin_of, upper_ns
from rtgauge.record.marks import MarkKind
from rtgauge.record.merged_windows import Merged, Moments, merge
from rtgauge.record.model import Distribution, Mark, SeriesSummary, ThreadCounts, WarmUp
from rtgauge.record.quantiles import QUANTILES, TITLES
from rtgauge.record.windows import Windows, largest

if TYPE_CHECKING:
    from rtgauge.record.stream import SeriesLine, Summary

LATENCY = "latency"

EMPTY = Distribution.model_validate({"count": 0, **dict.fromkeys(TITLES)})


def nearest_rank(share: Fraction, count: int) -> int:
    """Return the rank (from 1) of the smallest value that at least `share` of `count` values do not
    exceed.
    """
    return max(1, math.ceil(share * count))


def standard_deviation(m2_ns2: float, count: int) -> float:
    """Return the sample standard deviation sqrt(m2 / (n - 1)); 0 for a single value.

    The papers do not say which standard deviation they print. With thousands of samples, all printed digits
    are the same for sample and population.
    """
    return math.sqrt(max(m2_ns2, 0.0) / (count - 1)) if count > 1 else 0.0


def _quantiles(merged: Merged, *, resolution_ns: int) -> tuple[dict[str, int], list[str]]:
    """Return the quantiles (nearest rank, in ns), and the names of the quantiles that are lower bounds."""
    # A bin counts as its largest value, rounded to the resolution of the measurement.
    values = [upper_ns(merged.bins) // resolution_ns * resolution_ns]
    counts = [merged.counts]
    open_ended = [merged.bins >= OVERFLOW_BIN]
    for group in merged.unplaced:
        at_most = [] if group.max_ns is None else [group.max_ns]
        values.append(np.array([group.from_ns, *at_most], dtype=np.int64))
        counts.append(np.array([group.count - len(at_most), *([1] * len(at_most))], dtype=np.int64))
        open_ended.append(np.array([True, *([False] * len(at_most))]))
    value, count, is_open = np.concatenate(values), np.concatenate(counts), np.concatenate(open_ended)
    order = np.argsort(value, kind="stable")
    value, count, is_open = value[order], count[order], is_open[order]
    rank_of = np.cumsum(count)
    # Values may be larger than recorded from here on, so quantiles are lower bounds.
    first_open = np.flatnonzero(is_open & (count > 0))
    figures: dict[str, int] = {}
    lower_bounds: list[str] = []
    for name, share in QUANTILES.items():
        rank = nearest_rank(share, merged.count)
        if rank == merged.count and merged.max_ns is not None:
            figures[name] = merged.max_ns
            continue
        at = int(np.searchsorted(rank_of, rank))
        figures[name] = int(value[at]) if merged.max_ns is None else min(int(value[at]), merged.max_ns)
        if merged.min_ns is not None:  # an imported bin may begin below its smallest value
            figures[name] = max(figures[name], merged.min_ns)
        if len(first_open) and value[at] >= value[first_open[0]] and figures[name] != merged.max_ns:
            lower_bounds.append(name)
    return figures, lower_bounds


def distribution(merged: Merged, *, resolution_ns: int = 1) -> Distribution:
    """Return the statistics of merged windows (ns).

    Count, minimum, maximum, mean and standard deviation are exact (the engine's own sums). A quantile is the
    largest value (a multiple of `resolution_ns`) of the nearest rank's bin, within minimum and maximum. If
    the rank is in the overflow bin or in no bin, the quantile is a lower bound, and `lower_bounds` names it.
    """
    if merged.count == 0:
        return EMPTY
    figures, lower_bounds = _quantiles(merged, resolution_ns=resolution_ns)
    return Distribution(
        count=merged.count,
        min_ns=merged.min_ns,
        mean_ns=None if merged.sum_ns is None else merged.sum_ns / merged.count,
        std_ns=None if merged.m2_ns2 is None else standard_deviation(merged.m2_ns2, merged.count),
        max_ns=merged.max_ns,
        lower_bounds=lower_bounds,
        **figures,
    )


def _bin_moments(bins: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Moments:
    """Return the moments of binned values. Each value counts as the middle of its bin."""
    middles = (EDGES_NS[bins] + upper_ns(bins)) / 2
    count = int(counts.sum())
    total = float(np.dot(middles, counts))
    m2 = float(np.dot((middles - total / count) ** 2, counts)) if count else 0.0
    return Moments(count, round(total), m2)


def filled_distribution(merged: Merged, *, resolution_ns: int = 1) -> Distribution:
    """Return the statistics including missed activations, each with the latency it would have had.

    Only the bins of these latencies are known, not their exact values. So the mean and standard deviation use
    the middle of the bin (error at most 0.5 %), the minimum may be the lower edge of a bin, and the maximum
    may be the largest value of a bin. If a missed activation would have been 10 s late or more, maximum, mean
    and deviation are lower bounds. The result equals `distribution` if no activation was missed.
    """
    if len(merged.missed_bins) == 0:
        return distribution(merged, resolution_ns=resolution_ns)
    missed = _bin_moments(merged.missed_bins, merged.missed_counts)
    lowest, highest = int(merged.missed_bins[0]), int(merged.missed_bins[-1])
    minimum = (
        int(EDGES_NS[lowest])
        if merged.min_ns is None or lowest < int(bin_of(max(merged.min_ns, 0)))
        else merged.min_ns
    )
    maximum = (
        int(upper_ns(highest)) // resolution_ns * resolution_ns
        if merged.max_ns is None or highest > int(bin_of(max(merged.max_ns, 0)))
        else merged.max_ns
    )
    bins, counts = add_bins(
        np.concatenate([merged.bins, merged.missed_bins]),
        np.concatenate([merged.counts, merged.missed_counts]),
    )
    count = merged.count + missed.count
    total = None if merged.sum_ns is None else merged.sum_ns + missed.sum_ns
    m2 = None
    if merged.sum_ns is not None and merged.m2_ns2 is not None:
        between = (
            0.0
            if merged.count == 0
            else (merged.sum_ns / merged.count - missed.sum_ns / missed.count) ** 2
            * merged.count
            * missed.count
            / count
        )
        m2 = merged.m2_ns2 + missed.m2_ns2 + between
    whole = Merged(
        bins=bins, counts=counts, count=count, missed=0, min_ns=minimum, max_ns=maximum, sum_ns=total,
        m2_ns2=m2,
        missed_bins=np.empty(0, np.int64), missed_counts=np.empty(0, np.int64), unplaced=merged.unplaced,
    )  # fmt: skip
    result = distribution(whole, resolution_ns=resolution_ns)
    if highest >= OVERFLOW_BIN:
        extra = ["mean_ns", "std_ns"] + (
            ["max_ns"] if merged.max_ns is None or merged.max_ns < maximum else []
        )
        result = result.model_copy(update={"lower_bounds": [*result.lower_bounds, *extra]})
    return result


@dataclass(frozen=True)
class StepSummary:
    """The summary of each series, the summary of all main series together, and marks for inconsistencies."""

    series: list[SeriesSummary]
    total: SeriesSummary | None
    marks: list[Mark]


def _warm_up(windows: Windows, series: Collection[int]) -> WarmUp:
    chosen = windows.are_of(series, measured=False)
    return WarmUp(
        count=int(windows.count[chosen].sum()),
        missed=int(windows.missed[chosen].sum()),
        max_ns=largest(windows.max_ns[chosen]),
    )


def summarise(
    windows: Windows,
    series: int | Collection[int],
    *,
    metric: str,
    unit: str,
    labels: Mapping[str, str | int],
    summaries: Sequence[Summary] = (),
    resolution_ns: int = 1,
    limits_ns: Mapping[int, int] | None = None,
    merged: Merged | None = None,
) -> SeriesSummary:
    """Summarise the measured phase of one series, or of several together.

    `summaries`: the engine's `summary` lines of these series, for `lost`, `impossible` and `thread`.
    `resolution_ns`: resolution of the measurement. `limits_ns`: series -> where its imported histogram ends
    (docs/formats/record.md, imported records). `merged`: the merged windows, if the caller already has them.
    """
    measured = merged or merge(windows, series, limits_ns=limits_ns)
    numbers = [series] if isinstance(series, int) else series
    return SeriesSummary(
        **distribution(measured, resolution_ns=resolution_ns).model_dump(),
        series=series if isinstance(series, int) else None,
        metric=metric,
        unit=unit,
        labels=dict(labels),
        missed=measured.missed,
        lost=sum(line.lost for line in summaries),
        impossible=sum(line.impossible for line in summaries),
        exact_quantiles=False,
        filled=filled_distribution(measured, resolution_ns=resolution_ns),
        warm_up=_warm_up(windows, numbers),
        thread=_together([line.thread for line in summaries]) if len(summaries) == len(numbers) else None,
    )


def _disagreements(
    merged: Merged, series: int, engine: Summary | None, *, unplaced_allowed: bool
) -> list[Mark]:
    """Return marks if a series' windows, its bins and the engine's summary disagree."""
    differences: list[str] = []
    if merged.placed > merged.count or (merged.placed != merged.count and not unplaced_allowed):
        differences.append(f"the windows have {merged.count} samples, but their bins have {merged.placed}")
    missed = int(merged.missed_counts.sum())
    if missed != merged.missed:
        differences.append(
            f"the windows have {merged.missed} missed activations, but their bins have {missed}"
        )
    if engine is not None:
        for name in ("count", "missed", "min_ns", "max_ns", "sum_ns"):
            ours, engines = getattr(merged, name), getattr(engine, name)
            if ours != engines:
                differences.append(
                    f"{name} is {ours} in the windows, but {engines} in the summary of the engine"
                )
    return [MarkKind.WINDOWS_DISAGREE.mark("; ".join(differences), series=series)] if differences else []


def _together(threads: Sequence[ThreadCounts]) -> ThreadCounts:
    """Add up the counters of threads. If one thread lacks a counter, the sum is unknown."""
    counters: dict[str, int | None] = {}
    for name in ThreadCounts.model_fields:
        values: list[int | None] = [getattr(thread, name) for thread in threads]
        known = [value for value in values if value is not None]
        counters[name] = sum(known) if len(known) == len(values) else None
    return ThreadCounts(**counters)


def _alike(series: Sequence[SeriesLine]) -> list[SeriesLine]:
    """Return the series of a metric that may be merged: whole series (no label `segment`) with the role of
    the first.
    """
    whole = [line for line in series if "segment" not in line.labels] or list(series)
    return [line for line in whole if line.labels.get("role") == whole[0].labels.get("role")]


def summarise_step(
    windows: Windows,
    series: Sequence[SeriesLine],
    summaries: Sequence[Summary] = (),
    *,
    resolution_ns: int = 1,
    limits_ns: Mapping[int, int] | None = None,
    unplaced_allowed: bool = False,
    without_summary: Collection[int] = (),
) -> StepSummary:
    """Summarise every series of a step, and all series of its main metric together. The main metric is
    latency, or else the metric of the first series.

    `series`: the engine's `series` lines. `summaries`: its `summary` lines; an import or a killed engine has
    none. If windows, bins and summaries disagree, the windows' values count, and the mark `windows-disagree`
    (invalid) says what differs. If only some series have a summary, the others get `summary-missing`
    (doubtful), except series that cannot have one (`without_summary`). `unplaced_allowed`: whether values may
    be in no bin. `resolution_ns` and `limits_ns`: as in `summarise`.
    """
    by_series = {line.series: line for line in summaries}
    marks: list[Mark] = []
    result: list[SeriesSummary] = []
    for info in series:
        number = info.series
        line = by_series.get(number)
        if line is None and summaries and number not in without_summary:
            marks.append(
                MarkKind.SUMMARY_MISSING.mark(
                    "the engine did not write a summary of this series", series=number
                )
            )
        merged = merge(windows, number, limits_ns=limits_ns)
        unplaced = unplaced_allowed or number in without_summary
        marks += _disagreements(merged, number, line, unplaced_allowed=unplaced)
        result.append(
            summarise(
                windows,
                number,
                metric=info.metric,
                unit=info.unit,
                labels=info.labels,
                summaries=[] if line is None else [line],
                resolution_ns=resolution_ns,
                merged=merged,
            )
        )
    unknown = sorted(set(windows.series.tolist()) - {info.series for info in series})
    if unknown:
        numbers = ", ".join(map(str, unknown))
        marks.append(
            MarkKind.WINDOWS_DISAGREE.mark(f"the engine wrote windows of undeclared series: {numbers}")
        )
    total = _total(windows, series, by_series, resolution_ns=resolution_ns, limits_ns=limits_ns)
    return StepSummary(result, total, marks)


def _total(
    windows: Windows,
    series: Sequence[SeriesLine],
    summaries: Mapping[int, Summary],
    *,
    resolution_ns: int,
    limits_ns: Mapping[int, int] | None,
) -> SeriesSummary | None:
    """Return the summary of all series of the main metric; None if there are no series."""
    if not series:
        return None
    metrics = [info.metric for info in series]
    main = LATENCY if LATENCY in metrics else metrics[0]
    together = _alike([info for info in series if info.metric == main])
    numbers = [info.series for info in together]
    return summarise(
        windows,
        numbers,
        metric=main,
        unit=together[0].unit,
        labels={},
        summaries=[summaries[number] for number in numbers if number in summaries],
        resolution_ns=resolution_ns,
        limits_ns=limits_ns,
    )
