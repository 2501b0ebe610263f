# SPDX-License-Identifier: MIT
"""States a record's conclusion in a sentence: its verdict, or without a requirement the largest values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Exposure, Step, Verdict, VerdictWord
from rtgauge.report.how_often import frequencies
from rtgauge.report.presenter import presenters
from rtgauge.report.record_view import RecordView, has_distribution, has_releases, quantity_of, series_name
from rtgauge.report.step_tables import missed_known
from rtgauge.units import (
    format_count,
    format_percentage,
    format_share,
    format_span,
    format_time,
    plural,
    round_up,
)
from rtgauge.verdict.coverage import cpus_left_out, noun_of

FEWEST_PERIODS = 3
"""A search needs at least this many periods."""


@dataclass(frozen=True)
class Conclusion:
    """The conclusion. `word`, `requirement`, `next` and `exposure` come from the verdict; None without a
    verdict. `doubts`: what was not measured, only without a verdict.
    """

    word: VerdictWord | None
    text: str
    requirement: str | None
    next: str | None
    doubts: list[str]
    cause: str | None = None
    """What made it late, if that is known."""
    exposure: str | None = None
    """How much was measured, and which rate of violations that excludes."""
    headline: str | None = None
    """The answer of a study in a few words, if it has one and there is no verdict."""


def _has_largest(step: Step) -> bool:
    """Return whether the largest value summarises the step. It does not for operations and task sets."""
    return has_distribution(step) or not (step.tasks or probe_of(step).shown.tabulated)


def _largest(view: RecordView, quantity: str) -> str | None:
    """Return a clause like "worst latency 38.0 ms under network on CPU 0, of 100,000"; None if empty."""
    names = view.labels
    summed = [(step, step.total) for step in view.steps if step.total is not None and _has_largest(step)]
    measured = [(step, total) for step, total in summed if quantity_of(step) == quantity]
    # Cross-checks by another tool have lines of their own.
    measured = [pair for pair in measured if pair[0].key.tool == "rtgauge"] or measured
    known = [(total.max_ns, step) for step, total in measured if total.max_ns is not None]
    if not known:
        return None
    value, worst = max(known, key=lambda pair: pair[0])
    series = next((summary for summary in worst.main_series if summary.max_ns == value), None)
    labels = {} if series is None else series.labels
    place = ""
    if "cpu" in labels and series is not None:
        place = f" on {series_name(series)}"
    elif "task" in labels:
        place = f" in thread {labels['task']}"
    count = sum(total.count for _, total in measured)
    groups = [each for each in view.conditions if any(step in each.steps for step, _ in measured)]
    under = f" under {names[worst.id]}" if len(measured) > 1 or worst.key.load != "idle" else ""
    noun = noun_of([step.key for step, _ in measured])
    among = f" ({plural(len(groups), noun)})" if len(groups) > 1 else ""
    missed = sum(total.missed for _, total in measured)
    tail = f"; {format_count(missed)} missed" if missed else ""
    if not missed and not all(missed_known(step) for step, _ in measured):
        tail = "; the number of missed activations is unknown"
    what = "activation" if all(has_releases(step) for step, _ in measured) else "sample"
    bound = "≥" if any("max_ns" in total.lower_bounds for step, total in measured if step is worst) else ""
    largest = f"worst {quantity} {bound}{format_time(value)}{under}{place}"
    return f"{largest}, of {plural(count, what)}{among}{tail}"


def _searches(view: RecordView) -> list[str]:
    """Return the result of each search over the period."""
    paces = ((step, probe_of(step).pace) for step in view.record.steps)
    periods = {step.key.parameters.get(pace.period) for step, pace in paces if pace is not None}
    if len(periods) < FEWEST_PERIODS:
        return []
    timing = frequencies()
    return [] if timing is None else timing.searches(view.record)


def _measured(view: RecordView) -> str:
    parts: list[str] = []
    for step in view.record.steps:
        under = f" under {view.labels[step.id]}" if len(view.record.steps) > 1 else ""
        reasons = {MarkKind.NOTHING_MEASURED.label, probe_of(step).nothing_mark}
        empty = [mark for mark in step.marks if mark.name in reasons]
        parts += [f"nothing was measured{under}: {mark.detail}" for mark in empty]
    parts += _searches(view)
    sentences = [_largest(view, quantity) for quantity in view.quantities]
    sentences += [presenter.conclusion(view, steps) for presenter, steps in presenters(view.steps)]
    parts += [text for text in sentences if text is not None]
    if parts:
        return "; ".join(parts)
    probes = ", ".join(dict.fromkeys(step.key.probe for step in view.record.steps))
    return f"measured: {probes}" if probes else "no step was finished"


def _headline(view: RecordView) -> tuple[str | None, str]:
    """Return the answer in a few words, if a study has one, and its result or else the measured values."""
    for presenter, steps in presenters(view.steps):
        headline, text = presenter.headline(view), presenter.conclusion(view, steps)
        if headline is not None and text is not None:
            return headline, text
    return None, _measured(view)


def conclude(view: RecordView) -> Conclusion:
    """Return the conclusion of a record."""
    overall = next((verdict for verdict in view.record.run.verdicts if verdict.step is None), None)
    if overall is not None:
        exposure = None if overall.exposure is None else exposure_text(overall.exposure)
        return Conclusion(
            overall.word, overall.reason, overall.requirement, overall.next, [], overall.cause, exposure
        )
    headline, text = _headline(view)
    left = cpus_left_out(view.record.steps)
    doubts = [f"not measured: {'; '.join(left)}"] if left else []
    causes = [presenter.cause(view, steps) for presenter, steps in presenters(view.steps)]
    cause = next((cause for cause in causes if cause is not None), None)
    return Conclusion(None, text[:1].upper() + text[1:], None, None, doubts, cause, headline=headline)


def repeat_lines(view: RecordView) -> list[str]:
    """Return a line for each repeated condition with the median and the spread of the largest values."""
    from statistics import median

    lines: list[str] = []
    for condition in view.conditions:
        totals = (step.total for step in condition.steps if has_distribution(step))
        largest = sorted(total.max_ns for total in totals if total is not None and total.max_ns is not None)
        if len(largest) > 1:
            quantity = quantity_of(condition.steps[0])
            middle, least, most = map(format_time, (median(largest), largest[0], largest[-1]))
            of = f"largest {quantity} of {len(largest)} repeats"
            lines.append(f"{condition.label}: {of}: median {middle}, {least} to {most}")
    return lines


def cross_check_lines(view: RecordView) -> list[str]:
    """Return a line for each other tool's result under the same condition, as a ratio to rtgauge's result."""
    ours_by_key = {_without_tool(step): step for step in view.record.steps if step.key.tool == "rtgauge"}
    lines: list[str] = []
    for step in view.steps:
        pair = ours_by_key.get(_without_tool(step))
        if step.key.tool == "rtgauge" or pair is None or pair.total is None:
            continue
        begin = f"{view.labels[pair.id]}: {step.key.tool} / rtgauge: "
        mean_ns = pair.total.mean_ns
        for result in step.results if mean_ns else []:
            ours = f"rtgauge's {format_time(mean_ns)}"
            most, theirs = result.values.get("at_most_ns"), result.values.get("mean_ns")
            if isinstance(most, int) and mean_ns:
                bound = f"at most {format_time(most)}, pauses included, {ours}"
                lines.append(f"{begin}mean at most {most / mean_ns:.2f} ({bound})")
            if isinstance(theirs, int) and mean_ns:
                ways = f"by {result.labels.get('by')} {format_time(theirs)}, {ours}"
                lines.append(f"{begin}mean {theirs / mean_ns:.2f} ({ways})")
        if step.total is None:
            continue
        pairs = {"mean": (step.total.mean_ns, mean_ns), "largest": (step.total.max_ns, pair.total.max_ns)}
        ratios = [
            f"{name} {theirs / ours:.2f}"
            for name, (theirs, ours) in pairs.items()
            if theirs is not None and ours
        ]
        if ratios:
            lines.append(f"{begin}{', '.join(ratios)}")
    return lines


def _without_tool(step: Step) -> str:
    return step.key.id_without("tool")


def exposure_text(exposure: Exposure, what: str = "break the bound") -> str:
    """Return the exposure in a line. `what`: what a violation does, as a predicate."""
    span = format_span(exposure.measured_s) if exposure.measured_s else "an unknown time"
    measured = (
        f"{plural(exposure.activations, 'activation')} in {plural(exposure.runs, 'run')}, "
        f"{plural(exposure.boots, 'boot')}, {plural(exposure.conditions, 'condition')} and {span}"
    )
    share = format_share(exposure.share_excluded, up=True)
    excluded = f"at {format_percentage(exposure.confidence)} confidence, at most {share} {what}"
    if exposure.assumes_independence:
        excluded += " if violations are independent"
    elif exposure.between_runs:
        excluded += " if further runs vary as these runs do"
    else:
        excluded += " in this run" if exposure.runs == 1 else " in these runs"
    if exposure.per_hour_excluded is not None:
        excluded += f", {_per_hour(exposure.per_hour_excluded)} per hour"
    if exposure.next_s is None or exposure.next_boards is None:
        return f"{measured}: {excluded}"
    condition = "without a violation" if not exposure.violations else "at the rate seen"
    return (
        f"{measured}: {excluded}; to exclude {format_share(exposure.next_share)}, measure for "
        f"{format_span(exposure.next_s)} {condition}, or for {span} on each of "
        f"{format_count(exposure.next_boards)} boards"
    )


def reason_text(verdict: Verdict) -> str:
    """Return a verdict's reason, and the exposure behind it if known."""
    exposure = "" if verdict.exposure is None else f"; {exposure_text(verdict.exposure)}"
    return f"{verdict.reason}{exposure}"


def _per_hour(rate: float) -> str:
    """Return an upper bound of a rate in words."""
    return f"{math.ceil(rate):,}" if rate >= 10 else f"{round_up(rate, 2):.2g}"
