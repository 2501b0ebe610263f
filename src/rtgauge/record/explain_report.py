# SPDX-License-Identifier: MIT
"""Reports, from a step's stream, what `explain` recorded, and what the recording cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.record.histogram import decode, lower_ns, upper_ns
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import ExplainCost, ExplainReport, Mark

if TYPE_CHECKING:
    from rtgauge.record.stream import StreamResult, StretchLine

BOUND_NS = 1_000
"""A cost counts as none if its whole interval is within this bound (ns)."""
CONFIDENCE = 0.9
LEAST_SAMPLES, LEAST_PAIRS = 30, 4
NOT_CAPTURED = {
    "overwritten": "the kernel had already overwritten their events",
    "over_budget": "the step had already recorded as many latencies as it may",
    "too_many_at_once": "too many latencies came at the same time",
    "no_room": "they had more events than can be kept",
    "events_off": "the kernel did not record all events yet",
}


def _median_ns(stretch: StretchLine) -> float:
    """Return the median, interpolated within its bin. Raises RecordError if the bins are damaged."""
    numbers = decode([stretch.bins]).numbers
    bins, counts = np.cumsum(numbers[::2], dtype=np.int64), numbers[1::2]
    below = np.cumsum(counts, dtype=np.int64)
    at = int(np.searchsorted(below, int(below[-1]) / 2))
    low, high = float(lower_ns(bins[at : at + 1])[0]), float(upper_ns(bins[at : at + 1])[0]) + 1
    return low + (high - low) * float((below[-1] / 2 - (below[at] - counts[at])) / counts[at])


def paired_cost(values: Sequence[tuple[bool, float | None]]) -> ExplainCost | None:
    """Estimate the cost of recording events. `values`: (whether events were recorded, value in ns or None) of
    each stretch, in the order without, with, with, without, ...

    Return None if too few stretches have a value.

    Two neighbouring stretches are a pair, so that drift affects both. The 90 % interval of the mean
    difference corresponds to two one-sided t-tests at 5 % (Schuirmann, 1987).
    """
    from scipy.special import stdtrit

    sides = [
        (first, second) if second[0] else (second, first)
        for first, second in zip(values[::2], values[1::2], strict=False)
        if first[0] != second[0]
    ]
    pairs = np.array([(off, on) for (_, off), (_, on) in sides if off is not None and on is not None])
    if len(pairs) < LEAST_PAIRS:
        return None
    difference = pairs[:, 1] - pairs[:, 0]
    error = (
        float(difference.std(ddof=1))
        / len(difference) ** 0.5
        * float(stdtrit(len(difference) - 1, (1 + CONFIDENCE) / 2))
    )
    mean = float(difference.mean())
    without, with_events = (float(value) for value in pairs.mean(axis=0))
    return ExplainCost(
        pairs=len(difference),
        without_ns=without,
        with_ns=with_events,
        median_ns=mean,
        low_ns=mean - error,
        high_ns=mean + error,
        bound_ns=BOUND_NS,
    )


def explain_cost(stretches: Sequence[StretchLine]) -> ExplainCost | None:
    """Return how much longer the median is with events; None if there are too few stretches or samples."""
    return paired_cost(
        [
            (stretch.events, _median_ns(stretch) if stretch.count >= LEAST_SAMPLES else None)
            for stretch in stretches
        ]
    )


def explain_report(result: StreamResult) -> ExplainReport | None:
    """Return what the engine recorded to explain latencies, from a complete stream; None if it recorded
    nothing.

    The `explain` entries are removed from `result.results`. Raises RecordError if the bins of a stretch are
    damaged.
    """
    explain_values = [entry.values for entry in result.results if entry.name == "explain"]
    result.results = [entry for entry in result.results if entry.name != "explain"]
    if result.trace_formats is None:
        return None
    numbers = {
        name: int(value)
        for values in explain_values
        for name, value in values.items()
        if isinstance(value, int)
    }
    return ExplainReport(
        events=list(result.trace_formats.events),
        moments=numbers.get("moments", 0),
        not_captured={name: numbers[name] for name in NOT_CAPTURED if numbers.get(name)},
        copy_max_ns=numbers.get("copy_max_ns", 0),
        buffer_kb=numbers.get("buffer_kb", 0),
        cost=explain_cost(result.stretches),
    )


def explain_marks(report: ExplainReport | None) -> list[Mark]:
    """Return a mark if recording may have cost more than the bound, and a mark if latencies were not
    captured. An unknown cost gives no mark.
    """
    if report is None:
        return []
    marks: list[Mark] = []
    if report.cost is not None and not report.cost.is_equivalent:
        bound = f"{report.cost.bound_ns / 1000:g} us"
        detail = f"recording the kernel's events {report.cost.words}, and may cost more than {bound}"
        marks.append(MarkKind.EXPLAIN_COST.mark(detail))
    if report.not_captured:
        missing = sum(report.not_captured.values())
        why = ", ".join(
            f"{count} because {NOT_CAPTURED[name]}" for name, count in report.not_captured.items()
        )
        marks.append(
            MarkKind.NOT_EXPLAINED.mark(
                f"{missing} of {missing + report.moments} latencies {'is' if missing == 1 else 'are'} not "
                f"explained: {why}"
            )
        )
    return marks
