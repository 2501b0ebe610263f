# SPDX-License-Identifier: MIT
"""Finds the highest sustained frequency (Adam et al. 2021, sec. 7.1 to 7.3): the shortest period at which no
repeat loses a cycle.

A period at which the master of `response` was late is not sustained either, because the slave got fewer
stimuli. The result says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rtgauge.analysis.violation_bounds import Counted, design_effect, range_coverage, upper_bound
from rtgauge.record.merged_windows import merge
from rtgauge.record.model import Model, Severity, Step
from rtgauge.record.reader import Record
from rtgauge_ext.papers.frequency.order_statistics import ranked
from rtgauge_ext.signal.period_searches import period_of, period_series

LONG_NS = 1_000_000
"""A delay above this counts as long (Adam et al., sec. 7.1)."""
RESOLUTION = 1.1
"""A search ends when two periods differ by no more than this factor."""


class SustainedPoint(Model):
    """One period, measured once."""

    step: str
    repeat: int
    period_ns: int
    """The time from one activation to the next."""
    cycles: int
    """Number of cycles, including lost ones."""
    lost: int
    """Number of missed activations, or of stimuli that were not answered."""
    not_made: int = 0
    """For the probe response, the number of stimuli that the master was too late to send; the slave did not
    lose them.
    """
    over_half: int
    """The number of cycles later than half a period, including lost cycles."""
    long: int
    """The number of cycles later than 1 ms, including lost answers."""
    max_ns: int | None
    worst_mark: Severity | None


class RepeatResult(Model):
    """The result of one repeat."""

    repeat: int
    sustained_ns: int | None
    """Shortest period at which, as at all longer periods, every stimulus was sent and every cycle kept; None
    if every period lost one.
    """
    failing_ns: int | None
    """Next shorter period, at which a stimulus was lost or not sent; None if no shorter period was measured.
    """
    by_master: bool = False
    """Whether failing_ns failed only because the master was late, so that the slave may sustain that period.
    """

    @property
    def complete(self) -> bool:
        """Whether the search is over, because the two periods are close enough or one does not exist."""
        if self.sustained_ns is None or self.failing_ns is None:
            return True
        return self.sustained_ns <= self.failing_ns * RESOLUTION


class SustainedCurve(Model):
    """The results of one probe at several periods, with everything else equal."""

    label: str
    record: str
    probe: str
    load: str
    cycles: int
    """Number of cycles of the point that has the fewest."""
    points: list[SustainedPoint]
    """The points, from the longest period to the shortest."""
    found: list[RepeatResult]
    sustained_ns: int | None
    """Shortest period that every repeat sustained; None if a repeat sustained none of its periods."""
    spread_ns: tuple[int, int] | None
    """Shortest and longest `sustained_ns` of the repeats."""
    coverage: float
    """Probability that the median of many more repeats lies within the spread."""
    loss_at_most: float | None
    """With 95 % confidence, at most this share of cycles is lost at the sustained period, if losses come in
    bursts as long as at the next shorter period.
    """
    burst_period_ns: int | None = None
    """Next shorter period with losses, which shows how many cycles a burst loses; None: bursts were not seen,
    so loss_at_most assumes independent losses.
    """
    no_end: bool
    """Whether every measured period was sustained, so that a shorter one may be sustained too."""

    @property
    def sustained_hz(self) -> float | None:
        """The highest frequency that every repeat sustained."""
        return None if self.sustained_ns is None else 1e9 / self.sustained_ns


def not_made(step: Step) -> int:
    """Return the number of stimuli that a late master did not send. Older records count them as missed."""
    counts = (result.values.get("not-made") for result in step.results if result.name == "signal")
    return sum(count for count in counts if isinstance(count, int))


def point_of(record: Record, step: Step) -> SustainedPoint | None:
    """Return the point of one step; None if the step has no period, has no samples, or is invalid."""
    period = period_of(step)
    if period is None or step.total is None or step.worst is Severity.INVALID:
        return None
    numbers = [summary.series for summary in step.main_series if summary.series is not None]
    merged = merge(record.windows(step), numbers)
    values = ranked(merged, absolute=True)
    if not values.count:
        return None
    return SustainedPoint(
        step=step.id,
        repeat=step.key.repeat,
        period_ns=period,
        cycles=values.count,
        lost=merged.missed,
        not_made=not_made(step),
        # A missed activation is later than its period, whatever latency is filled in for it.
        over_half=max(values.later_than(period // 2), merged.missed),
        long=values.later_than(LONG_NS),
        max_ns=merged.max_ns,
        worst_mark=step.worst,
    )


def repeat_result(points: Sequence[SustainedPoint], repeat: int) -> RepeatResult:
    """Return the result of a repeat, down from the longest period until a stimulus or answer is missing."""
    own = [point for point in points if point.repeat == repeat]
    result = RepeatResult(repeat=repeat, sustained_ns=None, failing_ns=None)
    for period in sorted({point.period_ns for point in own}, reverse=True):
        at_period = [point for point in own if point.period_ns == period]
        lost = any(point.lost for point in at_period)
        if lost or any(point.not_made for point in at_period):
            result.failing_ns, result.by_master = period, not lost
            break
        result.sustained_ns = period
    return result


def next_period(result: RepeatResult) -> int | None:
    """Return the next period to measure (ns), halfway on a logarithmic scale; None if the search is over."""
    if result.complete or result.sustained_ns is None or result.failing_ns is None:
        return None
    middle = round(math.sqrt(result.sustained_ns * result.failing_ns), -2)
    return int(middle) if result.failing_ns < middle < result.sustained_ns else None


def _lost(record: Record, step: Step) -> Counted:
    """Return the lost cycles of a step with their variance."""
    windows = record.windows(step)
    chosen = windows.are_of([summary.series for summary in step.main_series if summary.series is not None])
    index = windows.index[chosen]
    lost, every = (
        np.bincount(index, number[chosen]) for number in (windows.missed, windows.count + windows.missed)
    )
    return Counted.of_windows(lost[every > 0], every[every > 0])


def curve_of(record: Record, steps: Sequence[Step], label: str) -> SustainedCurve | None:
    """Return the curve of steps that differ only in period and repeat; None if no step has a point."""
    points = [point for point in (point_of(record, step) for step in steps) if point is not None]
    if not points:
        return None
    points.sort(key=lambda point: (-point.period_ns, point.repeat))
    results = [repeat_result(points, repeat) for repeat in sorted({point.repeat for point in points})]
    shortest = [result.sustained_ns for result in results if result.sustained_ns is not None]
    sustained = max(shortest) if len(shortest) == len(results) else None
    at_sustained = [point for point in points if point.period_ns == sustained]
    cycles = sum(point.cycles for point in at_sustained)
    bursts = next((point.period_ns for point in points if point.lost), None) if cycles else None
    showing = {point.step for point in points if point.period_ns == bursts}
    effect = design_effect([[_lost(record, step) for step in steps if step.id in showing]])
    return SustainedCurve(
        label=label,
        record=str(record.path),
        probe=steps[0].key.probe,
        load=steps[0].key.load,
        cycles=min(point.cycles for point in points),
        points=points,
        found=results,
        sustained_ns=sustained,
        spread_ns=(min(shortest), max(shortest)) if shortest else None,
        coverage=range_coverage(len(shortest)),
        loss_at_most=upper_bound(0, cycles / effect) if cycles else None,
        burst_period_ns=bursts,
        no_end=bool(results) and all(result.failing_ns is None for result in results),
    )


def curves(records: Sequence[Record]) -> list[SustainedCurve]:
    """Return all curves of these records. Raises RecordError for a damaged record."""
    series = [(record, steps) for record in records for steps in period_series(record)]
    several_paths = len({_path(steps[0]) for _, steps in series}) > 1

    def label(record: Record, step: Step) -> str:
        name = record.path.name if len(records) > 1 else ""
        parts = (step.key.probe, step.key.load, name, _path(step) if several_paths else "")
        return ", ".join(part for part in parts if part)

    drawn = (curve_of(record, steps, label(record, steps[0])) for record, steps in series)
    return [curve for curve in drawn if curve is not None]


def _path(step: Step) -> str:
    return str(step.key.parameters.get("path") or "")
