# SPDX-License-Identifier: MIT
"""Holds, marginal, fails or cannot tell: one requirement against one step, and against all steps of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rtgauge.analysis.comparison_scope import SEGMENT
from rtgauge.analysis.confidence import activations_needed, lower_bound, upper_bound
from rtgauge.errors import EXIT_CANNOT_MEASURE, EXIT_CANNOT_TELL, EXIT_FAILS, EXIT_OK
from rtgauge.record.model import Severity, Step, Verdict, VerdictWord
from rtgauge.system.fact_summary import brief
from rtgauge.units import format_duration, format_time
from rtgauge.verdict.next_step import next_for_doubt, next_for_failure, next_for_invalid, next_when_close, next_when_held, next_with_more
from rtgauge.verdict.requirement import Requirement, format_percent
from rtgauge.verdict.violations import Violations, count_violations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from rtgauge.record.model import SeriesSummary
    from rtgauge.record.reader import Record

MARGIN = Fraction(80, 100)
"""A requirement that would not hold for this share of its bound holds by little: marginal."""

LEAST_FOR_EVERY = 10_000
"""Fewer activations than this say nothing about "100 %": at 95 % confidence they do not rule out one violation in 3 333."""

LATENCY = "latency"
_BY_LATENESS = {
    VerdictWord.HOLDS: "stays within",
    VerdictWord.MARGINAL: "only just stays within",
    VerdictWord.FAILS: "does not stay within",
    VerdictWord.CANNOT_TELL: "may or may not stay within",
}
_ORDER = [VerdictWord.HOLDS, VerdictWord.MARGINAL, VerdictWord.CANNOT_TELL, VerdictWord.FAILS]


@dataclass(frozen=True)
class _Case:
    """What a verdict on one step looks at."""

    requirement: Requirement
    step: Step
    facts: Mapping[str, Any]
    violations: Violations
    close: Violations
    """The same for that share of the bound which is `margin`."""
    maximum_ns: int | None
    series: int
    interval_ns: int | None
    margin: Fraction

    @property
    def supported(self) -> float:
        """The share of violations that this measurement does not rule out."""
        return upper_bound(self.violations.possible, self.violations.activations, float(self.requirement.confidence))

    def duration_ns(self, activations: int) -> int | None:
        """How long that many activations take, on all the CPUs together."""
        return None if self.interval_ns is None else -(-activations // max(1, self.series)) * self.interval_ns


def _share(share: float) -> str:
    """A probability for people: `1 in 33 400`, `2.3%`."""
    if share <= 0:
        return "0"
    return f"{share * 100:.3g}%" if share >= 0.001 else f"1 in {1 / share:,.0f}".replace(",", " ")


def _number(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def _seen(case: _Case) -> str:
    """What was measured, in words."""
    v, requirement = case.violations, case.requirement
    late = v.certain - v.missed
    parts = [f"{_number(v.activations)} activations"]
    if case.maximum_ns is not None:
        parts.append(f"largest {requirement.metric} {format_time(case.maximum_ns)} of {format_duration(requirement.bound_ns)} allowed")
    if late:
        parts.append(f"{_number(late)} later than that")
    if v.possible > v.certain:
        parts.append(f"{_number(v.possible - v.certain)} more that may be")
    if v.missed:
        parts.append(f"{_number(v.missed)} missed")
    return ", ".join(parts)


def _support(case: _Case) -> str:
    """The statement that must stand beside every verdict on a sample."""
    confidence = format_percent(case.requirement.confidence)
    v = case.violations
    if v.possible == 0:
        return f"{_number(v.activations)} activations without a violation support, at {confidence} confidence, at most {_share(case.supported)} that violate"
    return f"at {confidence} confidence at most {_share(case.supported)} violate"


def _interval_note(case: _Case) -> str:
    period = case.requirement.period_ns
    if period is None or case.interval_ns is None or period == case.interval_ns:
        return ""
    return f"; measured every {format_duration(case.interval_ns)}, required every {format_duration(period)}"


def _evidence(case: _Case) -> dict[str, Any]:
    v, requirement = case.violations, case.requirement
    return {
        "metric": requirement.metric,
        "bound_ns": requirement.bound_ns,
        "hardness": float(requirement.hardness),
        "confidence": float(requirement.confidence),
        "period_ns": requirement.period_ns,
        "interval_ns": case.interval_ns,
        "activations": v.activations,
        "missed": v.missed,
        "violations_certain": v.certain,
        "violations_possible": v.possible,
        "max_ns": case.maximum_ns,
        "violation_share_at_most": case.supported,
        "violations_at_margin": case.close.possible,
        "margin": float(case.margin),
        "marks": [f"{mark.severity}: {mark.name}" for mark in case.step.marks],
        "assumes": "independent activations",
    }


def _verdict(case: _Case, word: VerdictWord, reason: str, following: str, **more: Any) -> Verdict:
    return Verdict(
        word=word, requirement=str(case.requirement), reason=reason + _interval_note(case), next=following, step=case.step.id, evidence=_evidence(case) | more
    )


def _without_figures(requirement: Requirement, step: Step, reason: str, following: str, **evidence: Any) -> Verdict:
    return Verdict(word=VerdictWord.CANNOT_TELL, requirement=str(requirement), reason=reason, next=following, step=step.id, evidence=evidence)


def _for_every(case: _Case) -> Verdict:
    """Hardness 100 %: one certain violation decides; no sample ever proves that there is none."""
    v = case.violations
    if v.certain:
        return _verdict(case, VerdictWord.FAILS, _seen(case), next_for_failure(case.step, case.requirement, case.facts))
    if v.possible:
        return _verdict(case, VerdictWord.CANNOT_TELL, f"{_seen(case)}: the figures are too coarse to tell", next_with_more(case.step, case.requirement, None))
    if v.activations < LEAST_FOR_EVERY:
        needed = case.duration_ns(LEAST_FOR_EVERY)
        reason = f"too short for 100%: {_support(case)}; at least {_number(LEAST_FOR_EVERY)} are needed"
        return _verdict(
            case,
            VerdictWord.CANNOT_TELL,
            reason,
            next_with_more(case.step, case.requirement, needed),
            activations_needed=LEAST_FOR_EVERY,
            duration_needed_ns=needed,
        )
    if case.close.possible:
        return _verdict(
            case,
            VerdictWord.MARGINAL,
            f"{_seen(case)}: less than {1 - float(case.margin):.0%} to spare; {_support(case)}",
            next_when_close(case.step, case.requirement),
        )
    return _verdict(case, VerdictWord.HOLDS, f"{_seen(case)}; {_support(case)}", next_when_held(case.step, case.requirement))


def _for_a_share(case: _Case) -> Verdict:
    """Hardness below 100 %: what the sample supports, at the required confidence."""
    v, requirement = case.violations, case.requirement
    allowed, confidence = float(requirement.allowed), float(requirement.confidence)
    if case.supported <= allowed:
        if upper_bound(case.close.possible, case.close.activations, confidence) > allowed:
            reason = f"{_seen(case)}; {_support(case)}, {_share(allowed)} may; at {float(case.margin):.0%} of the bound it would not hold"
            return _verdict(case, VerdictWord.MARGINAL, reason, next_when_close(case.step, requirement))
        return _verdict(case, VerdictWord.HOLDS, f"{_seen(case)}; {_support(case)}, {_share(allowed)} may", next_when_held(case.step, requirement))
    if lower_bound(v.certain, v.activations, confidence) > allowed:
        reason = f"{_seen(case)}: {_share(v.certain / v.activations)} violate, {_share(allowed)} may"
        return _verdict(case, VerdictWord.FAILS, reason, next_for_failure(case.step, requirement, case.facts))
    needed = activations_needed(allowed, confidence, violations=v.possible, count=v.activations)
    if needed is None:
        reason = f"{_seen(case)}: {_share(v.possible / v.activations)} violate, {_share(allowed)} may; too near to tell from this many"
        return _verdict(case, VerdictWord.CANNOT_TELL, reason, next_with_more(case.step, requirement, None), activations_needed=None, duration_needed_ns=None)
    duration = case.duration_ns(needed)
    reason = (
        f"too short for {format_percent(requirement.hardness)}: {_support(case)}, {_share(allowed)} may; it takes about {_number(needed)} activations to tell"
    )
    return _verdict(
        case, VerdictWord.CANNOT_TELL, reason, next_with_more(case.step, requirement, duration), activations_needed=needed, duration_needed_ns=duration
    )


def judged_series(step: Step, metric: str) -> list[SeriesSummary]:
    """The series of that metric that a requirement speaks of: no parts of a response, and of two roles that saw the same activations the first."""
    main_series = [summary for summary in step.series if summary.metric == metric and SEGMENT not in summary.labels]
    return [summary for summary in main_series if summary.labels.get("role") == main_series[0].labels.get("role")]


def judge(requirement: Requirement, step: Step, windows: pl.DataFrame, facts: Mapping[str, Any] | None = None, *, margin: Fraction = MARGIN) -> Verdict:
    """The verdict on one step, as `judge_metric` has it; of a requirement on jitter its reason says whether the lateness keeps the bound too.

    A task that is always as late has no jitter, so that jitter alone may hide that it is late.
    """
    judgement = judge_metric(requirement, step, windows, facts, margin=margin)
    if requirement.metric != "jitter" or not judged_series(step, LATENCY):
        return judgement
    lateness = judge_metric(replace(requirement, metric=LATENCY), step, windows, facts, margin=margin)
    largest = lateness.evidence.get("max_ns")
    seen = "" if largest is None else f", largest {format_time(largest)}"
    reason = f"{judgement.reason}; by absolute lateness it {_BY_LATENESS[lateness.word]} {format_duration(requirement.bound_ns)}{seen}"
    return judgement.model_copy(update={"reason": reason, "evidence": judgement.evidence | {"lateness": {"word": str(lateness.word), **lateness.evidence}}})


def judge_metric(requirement: Requirement, step: Step, windows: pl.DataFrame, facts: Mapping[str, Any] | None = None, *, margin: Fraction = MARGIN) -> Verdict:
    """The verdict on one step, from the windows of its series that have the requirement's metric.

    `facts`: the target's system.json. A step with an invalid mark, of an emulated machine, or without such a series: cannot tell. A doubtful mark
    leaves at best marginal, and is named. Hardness 100 %: fails on any violation; holds by the sample it has, whose size is
    said, if that is at least LEAST_FOR_EVERY. A share: holds where the exact upper bound (Clopper and Pearson, one-sided, at the
    requirement's confidence) on the share of violations is within the allowed one, fails where the lower bound is above it, and
    cannot tell in between. Either is marginal where it would not hold for `margin` of the bound.
    """
    import polars as pl

    facts = facts or {}
    invalid = [mark for mark in step.marks if mark.severity == Severity.INVALID]
    if invalid:
        reason = f"the measurement is invalid: {invalid[0].name} ({invalid[0].detail})"
        return _without_figures(
            requirement, step, reason, next_for_invalid(invalid[0]), marks=[f"{mark.severity}: {mark.name}" for mark in step.marks], invalid=True
        )
    series = judged_series(step, requirement.metric)
    if not series:
        reason = f"the step measured no {requirement.metric}"
        return _without_figures(requirement, step, reason, f"measure a probe that yields {requirement.metric}; see: rtgauge probe --help")
    if any(summary.lost for summary in series):
        reason = f"{_number(sum(summary.lost for summary in series))} samples were lost and may have been late"
        return _without_figures(requirement, step, reason, "measure again with a longer interval, or without raw samples")
    resolution = step.parameters.get("resolution_ns")
    resolution = resolution if isinstance(resolution, int) and resolution > 0 else 1
    interval = step.parameters.get("interval_ns")
    numbers = [summary.series for summary in series if summary.series is not None]
    part = windows.filter(pl.col("series").is_in(numbers))
    case = _Case(
        requirement=requirement,
        step=step,
        facts=facts,
        violations=count_violations(part, requirement.bound_ns, resolution_ns=resolution),
        close=count_violations(part, int(requirement.bound_ns * margin), resolution_ns=resolution),
        maximum_ns=max((max(summary.max_ns, -(summary.min_ns or 0)) for summary in series if summary.max_ns is not None), default=None),
        series=len(series),
        interval_ns=interval if isinstance(interval, int) and interval > 0 else None,
        margin=margin,
    )
    if case.violations.activations == 0:
        return _without_figures(requirement, step, "the step has no activations", next_with_more(step, requirement, None))
    if _emulated(facts) or step.emulated:
        reason = f"the machine's processor is emulated, so its times say nothing about a real one ({_seen(case)})"
        return _verdict(case, VerdictWord.CANNOT_TELL, reason, "measure on the real machine, or in a virtual machine with hardware support (KVM)")
    verdict = _for_every(case) if requirement.allowed == 0 else _for_a_share(case)
    doubts = [mark for mark in step.marks if mark.severity == Severity.DOUBTFUL]
    if doubts:
        named = ", ".join(dict.fromkeys(mark.name for mark in doubts))
        word = VerdictWord.MARGINAL if verdict.word == VerdictWord.HOLDS else verdict.word
        following = next_for_doubt(doubts[0]) if verdict.word == VerdictWord.HOLDS else verdict.next
        return verdict.model_copy(update={"word": word, "reason": f"{verdict.reason}; in doubt: {named} ({doubts[0].detail})", "next": following})
    return verdict


def _emulated(facts: Mapping[str, Any]) -> bool:
    return brief(facts)["emulated"] is True


def worst(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The verdict that decides: fails before cannot tell before marginal before holds; the first of these. None for none."""
    return max(verdicts, key=lambda verdict: _ORDER.index(verdict.word), default=None)


def judge_run(requirement: Requirement, record: Record) -> list[Verdict]:
    """The verdict on the whole run first (`step` None: that of its worst step), then one a step that measured the requirement's metric.

    Steps of other metrics are left aside; where none is left, the run cannot tell. Raises RecordError for a damaged record.
    """
    measured = [step for step in record.steps if any(summary.metric == requirement.metric for summary in step.series)]
    verdicts: list[Verdict] = []
    for step in measured:
        target = step.key.targets.get("self", "")
        facts = record.system(target) or None
        verdicts.append(judge(requirement, step, record.windows(step), facts))
    decisive = worst(verdicts)
    if decisive is None:
        reason = f"no finished step measured {requirement.metric}"
        following = "run a plan that measures it, like: rtgauge run quick"
        return [Verdict(word=VerdictWord.CANNOT_TELL, requirement=str(requirement), reason=reason, next=following)]
    tally = {str(word): sum(verdict.word == word for verdict in verdicts) for word in _ORDER}
    whole = decisive.model_copy(
        update={"step": None, "reason": f"{decisive.step}: {decisive.reason}", "evidence": {"decided_by": decisive.step, "steps": tally}}
    )
    return [whole, *verdicts]


def exit_status(verdicts: Sequence[Verdict], steps: Sequence[Step]) -> int:
    """0: holds, or no requirement was given; 1: fails; 3: a measurement is invalid; 4: marginal or cannot tell. A failure that was measured comes first."""
    decisive = worst(verdicts)
    if decisive is not None and decisive.word == VerdictWord.FAILS:
        return EXIT_FAILS
    if any(step.worst == Severity.INVALID for step in steps):
        return EXIT_CANNOT_MEASURE
    return EXIT_OK if decisive is None or decisive.word == VerdictWord.HOLDS else EXIT_CANNOT_TELL
