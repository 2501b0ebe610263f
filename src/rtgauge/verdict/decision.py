# SPDX-License-Identifier: MIT
"""Decides on one requirement and one step: holds, marginal, fails or cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from rtgauge.analysis.violation_bounds import activations_needed, activations_to_refute, design_effect
from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import (
    COKERNELS,
    PART,
    SEGMENT,
    STOPPED_EARLY,
    Mark,
    SeriesSummary,
    Severity,
    Step,
    Verdict,
    VerdictWord,
)
from rtgauge.record.watched_loop import WatchedLoop, loops_of
from rtgauge.record.windows import Windows
from rtgauge.units import MAX_NS, format_count, format_duration, format_share, format_time, plural
from rtgauge.verdict.cannot_tell import cannot_tell
from rtgauge.verdict.gaps import GAP, judge_gaps
from rtgauge.verdict.loops import (
    count_of_loop,
    doubts_of_loop,
    gaps_of_pollers,
    judge_loops,
    worst_of_both,
    worst_part,
)
from rtgauge.verdict.next_step import NextStep, PastRun, next_for_mark
from rtgauge.verdict.requirement import Requirement, format_percent
from rtgauge.verdict.violations import TOO_COARSE, Violations, count_violations

MARGIN = Fraction(80, 100)
"""A requirement that holds is marginal if it would not hold at this share of its bound."""

LEAST_FOR_EVERY = 10_000
"""With fewer activations, "100 %" cannot be judged: at 95 % confidence they do not rule out one violation in
3,333.
"""

SAME_PERIOD = Fraction(1, 100)
"""If the interval is this close to the required period, no remark is made: 997 us for 1 ms."""
MOST_SILENT = 3
"""The most threads or CPUs without an activation that a verdict names."""
LATENCY = "latency"
INDEPENDENT = "independent violations"
"""What a bound assumes if the counts cannot show bursts."""
_BY_LATENESS = {
    VerdictWord.HOLDS: "stays within",
    VerdictWord.MARGINAL: "only just stays within",
    VerdictWord.FAILS: "does not stay within",
    VerdictWord.CANNOT_TELL: "may or may not stay within",
}


@dataclass(frozen=True)
class _Case:
    """The data for a verdict on one step."""

    requirement: Requirement
    step: Step
    violations: Violations
    close: Violations
    """The violations of a bound of `margin` times the required bound."""
    maximum_ns: int | None
    series: int
    interval_ns: int | None
    margin: Fraction
    next: NextStep
    cpu: int | None
    """The CPU on which the maximum was measured."""

    @cached_property
    def design_effect(self) -> float:
        """How many activations count as one independent activation, because violations come in bursts."""
        return design_effect([[self.violations.counted]], float(self.requirement.confidence))

    @cached_property
    def supported(self) -> float:
        """The largest share of violations that this measurement does not rule out."""
        return self.violations.at_most(float(self.requirement.confidence))

    def duration_ns(self, activations: int) -> int | None:
        """Return how long (ns) this many activations take on all CPUs; None if unknown or too long."""
        interval_ns = self.interval_ns or self.requirement.period_ns
        if interval_ns is None:
            return None
        duration_ns = -(-activations // max(1, self.series)) * interval_ns
        return duration_ns if duration_ns <= MAX_NS else None

    @cached_property
    def measured(self) -> str:
        """Return the measured figures in words."""
        v, requirement, key = self.violations, self.requirement, self.step.key
        late = v.certain - v.missed
        every = plural(v.activations, "activation")
        if key.space == "kernel":
            every += " in kernel space"
        if key.rt != "linux":
            every += f" on {COKERNELS.get(key.rt, key.rt)}"
        figures = f"{every} were measured"
        if self.maximum_ns is not None:
            figures = (
                f"the largest {requirement.metric} of {every} is {format_time(self.maximum_ns)} "
                f"(bound {format_duration(requirement.bound_ns)})"
            )
        counts = [
            (late, "broke the bound"),
            (v.possible - v.certain, "more may have broken it" if late else "may have broken it"),
            (v.missed, "was missed" if v.missed == 1 else "were missed"),
        ]
        broken = ", ".join(f"{format_count(count)} {what}" for count, what in counts if count)
        return f"{figures}: {broken}" if broken else figures

    @cached_property
    def support(self) -> str:
        """Return the statement of confidence that every verdict on a sample needs."""
        confidence = format_percent(self.requirement.confidence)
        share = format_share(self.supported, up=True)
        if_independent = " if violations are independent" if self.violations.assumes_independence else ""
        if self.violations.possible:
            return f"at {confidence} confidence, at most {share} break the bound{if_independent}"
        without = f"{plural(self.violations.activations, 'activation')} without a violation"
        return (
            f"{without} show, at {confidence} confidence, that at most {share} break the "
            f"bound{if_independent}"
        )

    def verdict(self, word: VerdictWord, reason: str, following: str, **more: Any) -> Verdict:
        """Return the verdict with its evidence."""
        remark = interval_remark(self.interval_ns, self.requirement.period_ns)
        return Verdict(
            word=word,
            requirement=str(self.requirement),
            reason=reason if remark is None else f"{reason}; {remark}",
            next=following,
            step=self.step.id,
            evidence=_evidence(self) | more,
        )


def interval_remark(interval_ns: int | None, period_ns: int | None) -> str | None:
    """Return a remark if a step's interval differs from the required period, otherwise None."""
    if period_ns is None or interval_ns is None or abs(period_ns - interval_ns) <= SAME_PERIOD * period_ns:
        return None
    return (
        f"it was measured every {format_duration(interval_ns)}, but {format_duration(period_ns)} is required"
    )


def _evidence(case: _Case) -> dict[str, Any]:
    v, requirement = case.violations, case.requirement
    return {
        "metric": requirement.metric,
        "space": case.step.key.space,
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
        "max_cpu": case.cpu,
        "violation_share_at_most": case.supported,
        "violations_at_margin": case.close.possible,
        "margin": float(case.margin),
        "marks": [f"{mark.severity}: {mark.name}" for mark in case.step.marks],
        "design_effect": case.design_effect,
        "violation_variance": v.counted.variance,
        "degrees_of_freedom": v.counted.freedom,
        "assumes": INDEPENDENT if v.assumes_independence else "bursts of violations like those measured",
    }


def _for_every(case: _Case) -> Verdict:
    """Judge hardness 100 %. One certain violation decides, and no sample proves that there are none."""
    v, measured, support = case.violations, case.measured, case.support
    if v.certain:
        return case.verdict(VerdictWord.FAILS, measured, case.next.for_failure())
    if v.possible:
        return _too_coarse(case)
    if v.activations < LEAST_FOR_EVERY:
        reason = (
            f"these are too few activations to judge 100%: {support}; at least "
            f"{format_count(LEAST_FOR_EVERY)} are needed"
        )
        return _too_short(case, reason, LEAST_FOR_EVERY)
    if case.close.possible:
        margin = f"{1 - float(case.margin):.0%}"
        reason = f"{measured}; the requirement holds with less than {margin} to spare; {support}"
        return case.verdict(VerdictWord.MARGINAL, reason, case.next.when_close())
    return case.verdict(VerdictWord.HOLDS, f"{measured}; {support}", case.next.when_held())


def _too_short(case: _Case, reason: str, needed: int | None) -> Verdict:
    """Return "cannot tell". `needed`: how many activations would decide; None if no number does."""
    duration = None if needed is None else case.duration_ns(needed)
    return case.verdict(
        VerdictWord.CANNOT_TELL,
        reason,
        case.next.with_more(duration),
        activations_needed=needed,
        duration_needed_ns=duration,
    )


def _too_coarse(case: _Case) -> Verdict:
    """Return "cannot tell", because the figures do not show how many activations broke the bound."""
    if case.violations.unplaced:
        following = f"measure with rtgauge: {case.next.again({})}"
        return case.verdict(
            VerdictWord.CANNOT_TELL, f"{case.measured}; every histogram ends below the bound", following
        )
    reason = f"{case.measured}; {TOO_COARSE}"
    return case.verdict(VerdictWord.CANNOT_TELL, reason, case.next.with_more(None))


def _for_a_share(case: _Case) -> Verdict:
    """Judge hardness below 100 % by what the sample supports at the required confidence."""
    v, requirement, measured = case.violations, case.requirement, case.measured
    allowed, confidence = float(requirement.allowed), float(requirement.confidence)
    may = f"the requirement allows {format_share(allowed)}"
    if case.supported <= allowed:
        reason = f"{measured}; {case.support}; {may}"
        if case.close.at_most(confidence) > allowed:
            reason += (
                f"; if the bound were only {float(case.margin):.0%} as large, the requirement would not hold"
            )
            return case.verdict(VerdictWord.MARGINAL, reason, case.next.when_close())
        return case.verdict(VerdictWord.HOLDS, reason, case.next.when_held())
    if v.at_least(confidence) > allowed:
        reason = f"{measured}; {format_share(v.certain / v.activations)} broke the bound; {may}"
        if v.assumes_independence:
            reason += "; this assumes that violations are independent"
        return case.verdict(VerdictWord.FAILS, reason, case.next.for_failure())
    count, effect = v.activations, case.design_effect
    needed = activations_needed(allowed, confidence, violations=v.possible, count=count, design_effect=effect)
    if needed is None:
        share = format_share(v.possible / v.activations)
        reason = (
            f"{measured}; {share} broke the bound; {may}; with so few activations, these shares are too "
            "close to tell apart"
        )
        needed = activations_to_refute(
            allowed, confidence, violations=v.certain, count=count, design_effect=effect
        )
        if needed is None and v.certain < v.possible:
            return _too_coarse(case)
    else:
        reason = (
            f"these are too few activations to judge {format_percent(requirement.hardness)}: {case.support}; "
            f"{may}"
        )
    if needed is not None:
        reason += f"; about {format_count(needed)} activations would tell"
    verdict = _too_short(case, reason, needed)
    too_many = v.certain > requirement.allowed * v.activations
    if too_many and (against_cause := case.next.against_cause()) is not None:
        return verdict.model_copy(update={"next": against_cause})
    return verdict


def judged_series(step: Step, metric: str) -> list[SeriesSummary]:
    """Return the step's series of this metric that count for a verdict: whole responses instead of their
    segments, and only the role of the first such series.
    """
    main_series = [
        summary for summary in step.series if summary.metric == metric and SEGMENT not in summary.labels
    ]
    return [
        summary for summary in main_series if summary.labels.get("role") == main_series[0].labels.get("role")
    ]


def judge(
    requirement: Requirement,
    step: Step,
    windows: Windows,
    facts: Facts | None = None,
    *,
    margin: Fraction = MARGIN,
    past_run: PastRun | None = None,
) -> Verdict:
    """Judge one step as `judge_metric` does. For a requirement on jitter, the reason also says whether the
    lateness stays within the bound.

    A task that is always equally late has no jitter, so jitter alone may hide the lateness.
    """
    if requirement.also is not None:
        return worst_of_both(
            [
                judge(bound, step, windows, facts, margin=margin, past_run=past_run)
                for bound in requirement.each
            ],
            requirement,
        )
    judgement = judge_metric(requirement, step, windows, facts, margin=margin, past_run=past_run)
    if requirement.metric != "jitter" or not judged_series(step, LATENCY):
        return judgement
    lateness = judge_metric(
        replace(requirement, metric=LATENCY), step, windows, facts, margin=margin, past_run=past_run
    )
    largest = lateness.evidence.get("max_ns")
    measured = "" if largest is None else f", largest {format_time(largest)}"
    reason = (
        f"{judgement.reason}; by absolute lateness it {_BY_LATENESS[lateness.word]} "
        f"{format_duration(requirement.bound_ns)}{measured}"
    )
    return judgement.model_copy(
        update={
            "reason": reason,
            "evidence": judgement.evidence | {"lateness": {"word": str(lateness.word), **lateness.evidence}},
        }
    )


def judge_metric(
    requirement: Requirement,
    step: Step,
    windows: Windows,
    facts: Facts | None = None,
    *,
    margin: Fraction = MARGIN,
    past_run: PastRun | None = None,
) -> Verdict:
    """Judge one step by the windows of the series with the requirement's metric.

    `facts`: the target's system.json. `past_run`: what the step's run measured, so that the advice does not
    repeat it. The verdict is "cannot tell" if the step has an invalid mark, has no such series or no
    activations, lost samples, or was measured on an emulated machine. A doubtful mark is named and allows at
    best "marginal", unless it is on a series of another metric, or can only have made values larger. With
    `activations-unknown` on a judged series the verdict is "fails" or "cannot tell". Hardness 100 % fails on
    any certain violation, and holds for a sample of at least LEAST_FOR_EVERY without a possible violation;
    the reason names the sample's size. A lower hardness holds if the exact upper bound on the share of
    violations (Clopper and Pearson, one-sided, at the requirement's confidence) is at most the allowed share.
    It fails if the lower bound is above the allowed share; otherwise the verdict is "cannot tell". "Holds"
    becomes "marginal" if the requirement would not hold at `margin` of the bound.
    """
    facts, past_run = facts or Facts(), past_run or PastRun.of_step(step)
    series = judged_series(step, requirement.metric)
    refusal = _invalid(requirement, step) or _not_measured(requirement, step, series)
    if refusal is not None:
        return refusal
    if requirement.metric not in {GAP, PART} and (loops := loops_of(step)):

        def judge_thread(loop: WatchedLoop) -> Verdict:
            own = [summary for summary in series if summary.series == loop.series.get(requirement.metric)]
            count = partial(count_of_loop, loop, requirement.metric, windows)
            doubts = doubts_of_loop(loop, step, requirement.metric, windows, requirement.bound_ns)
            return _judge_series(
                requirement, step, own, count, facts, margin=margin, past_run=past_run, doubts=doubts
            )

        def against_breaker(loop: WatchedLoop) -> str | None:
            return NextStep(past_run, step, requirement, facts, loop.task).against_breaker()

        return judge_loops(requirement, step, loops, judge_thread, against_breaker)

    def judge_together(together: Sequence[SeriesSummary]) -> Verdict:
        count = partial(
            count_violations,
            windows,
            series=[summary.series for summary in together if summary.series is not None],
            resolution_ns=_positive(step.parameters.get("resolution_ns")) or 1,
        )
        return _judge_series(requirement, step, together, count, facts, margin=margin, past_run=past_run)

    if requirement.metric == PART:
        return worst_part([(str(part.labels.get(PART)), judge_together([part])) for part in series])
    return judge_together(series)


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _invalid(requirement: Requirement, step: Step) -> Verdict | None:
    """Return "cannot tell" if the step has an invalid mark."""
    mark = next((mark for mark in step.marks if mark.severity == Severity.INVALID), None)
    if mark is None:
        return None
    return cannot_tell(
        requirement,
        step,
        f"the measurement is invalid: {mark.name} ({mark.detail})",
        next_for_mark(mark),
        marks=[f"{mark.severity}: {mark.name}" for mark in step.marks],
        invalid=True,
    )


def _not_measured(requirement: Requirement, step: Step, series: Sequence[SeriesSummary]) -> Verdict | None:
    """Return "cannot tell" if the step has no series of the requirement's metric."""
    if series:
        return None
    return cannot_tell(
        requirement,
        step,
        f"the step did not measure {requirement.metric}",
        f"use a probe that measures {requirement.metric} (see rtgauge probe --help)",
    )


def _judge_series(
    requirement: Requirement,
    step: Step,
    series: Sequence[SeriesSummary],
    count: Callable[[int], Violations],
    facts: Facts,
    *,
    margin: Fraction,
    past_run: PastRun,
    doubts: Sequence[Mark] | None = None,
) -> Verdict:
    """Judge these series of a step. `count` returns the violations of a bound (ns). `doubts`: the doubtful
    marks on them; None: all on the metric.
    """
    doubts = step.doubts_on(requirement.metric) if doubts is None else doubts
    refusal = _lost(requirement, step, series)
    if refusal is not None:
        return refusal
    case = _case(requirement, step, series, count, facts, margin=margin, past_run=past_run)
    if requirement.metric == GAP:
        verdict = judge_gaps(requirement, step, series, case.violations, case.close, case.next)
        if loops_of(step):
            verdict = gaps_of_pollers(verdict, step, facts)
        return _in_doubt(_only_if_whole(verdict, step, (), case.next), step.doubts_on(GAP))
    unknown = _activations_unknown(requirement, step, series)
    refusal = _no_activations(case, unknown) or _emulated(case, facts)
    if refusal is not None:
        return refusal
    verdict = _for_every(case) if requirement.allowed == 0 else _for_a_share(case)
    verdict = _only_if_whole(verdict, step, series, case.next)
    if unknown is not None and verdict.word in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
        # With this mark, more than 1 % of the activations are missing, so the series proves nothing.
        return verdict.untold(f"{verdict.reason}; but {unknown.detail}", next_for_mark(unknown))
    return _in_doubt(verdict, doubts)


def _case(
    requirement: Requirement,
    step: Step,
    series: Sequence[SeriesSummary],
    count: Callable[[int], Violations],
    facts: Facts,
    *,
    margin: Fraction,
    past_run: PastRun,
) -> _Case:
    known = [summary for summary in series if summary.max_ns is not None]
    largest = max(known, key=_largest_of, default=None)
    named = largest or next(iter(series), None)
    cpu, task = (None if named is None else named.labels.get(name) for name in ("cpu", "task"))
    return _Case(
        requirement=requirement,
        step=step,
        violations=count(requirement.bound_ns),
        close=count(int(requirement.bound_ns * margin)),
        maximum_ns=None if largest is None else _largest_of(largest),
        series=len(series),
        interval_ns=_positive(step.parameters.get("interval_ns")),
        margin=margin,
        next=NextStep(past_run, step, requirement, facts, task if isinstance(task, str) else None),
        cpu=cpu if isinstance(cpu, int) else None,
    )


def _lost(requirement: Requirement, step: Step, series: Sequence[SeriesSummary]) -> Verdict | None:
    """Return "cannot tell" if samples were lost, because they may have been late."""
    lost = sum(summary.lost for summary in series)
    if not lost:
        return None
    return cannot_tell(
        requirement,
        step,
        f"{format_count(lost)} samples were lost and may have been late",
        "measure again with a longer interval, or without raw samples",
    )


def _activations_unknown(
    requirement: Requirement, step: Step, series: Sequence[SeriesSummary]
) -> Mark | None:
    """Return the mark which says that the number of activations of a judged series is unknown."""
    judged = {summary.series for summary in series}
    return next(
        (
            mark
            for mark in step.doubts_on(requirement.metric)
            if mark.kind is MarkKind.ACTIVATIONS_UNKNOWN and mark.series in judged
        ),
        None,
    )


def _no_activations(case: _Case, unknown: Mark | None) -> Verdict | None:
    """Return "cannot tell" if there are no activations. `unknown`: the mark that says why."""
    if case.violations.activations:
        return None
    if unknown is None:
        reason, following = "the step has no activations", case.next.with_more(None)
    else:
        reason = f"no {case.requirement.metric} was measured: {unknown.detail}"
        following = next_for_mark(unknown)
    return cannot_tell(case.requirement, case.step, reason, following)


def _emulated(case: _Case, facts: Facts) -> Verdict | None:
    """Return "cannot tell" if the machine's processor is emulated."""
    if not (facts.machine.emulated or case.step.emulated):
        return None
    return case.verdict(
        VerdictWord.CANNOT_TELL,
        f"the machine's processor is emulated, so its times say nothing about a real one ({case.measured})",
        "measure on the real machine, or in a virtual machine with hardware support (KVM)",
    )


def _in_doubt(verdict: Verdict, doubts: Sequence[Mark]) -> Verdict:
    """Return the verdict with the doubtful marks named. "Holds" becomes "marginal". What only made the
    threads later is no doubt about a bound that they kept.
    """
    if verdict.word in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
        doubts = [mark for mark in doubts if not mark.only_delays]
    if not doubts:
        return verdict
    names = list(dict.fromkeys(mark.name for mark in doubts))
    update: dict[str, Any] = {
        "reason": f"{verdict.reason}; in doubt: {', '.join(names)}",
        "evidence": verdict.evidence | {"in_doubt": names},
    }
    if verdict.word == VerdictWord.HOLDS:
        update |= {"word": VerdictWord.MARGINAL, "next": next_for_mark(doubts[0])}
    return verdict.model_copy(update=update)


def _only_if_whole(
    verdict: Verdict, step: Step, series: Sequence[SeriesSummary], following: NextStep
) -> Verdict:
    """Return the verdict, or "cannot tell" instead of "holds" and "marginal" if a thread or CPU has no
    activation, or if the step was cut short.
    """
    silent = [_name_of(each) for each in series if not each.count and not each.missed]
    if verdict.word not in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
        return verdict
    if silent:
        more = f" and {len(silent) - MOST_SILENT} more" if len(silent) > MOST_SILENT else ""
        missing = f"the activations of {', '.join(silent[:MOST_SILENT])}{more} are missing"
    elif step.end_reason in STOPPED_EARLY:
        missing = f"the step was cut short ({step.end_reason})"
    else:
        return verdict
    again = f"measure it again: {following.again({})}"
    return verdict.untold(f"{missing}; the rest: {verdict.reason}", again)


def _name_of(series: SeriesSummary) -> str:
    """Return the thread or CPU of a series in words."""
    words = {"cpu": "CPU", "task": "thread"}
    parts = [f"{words.get(name, name)} {value}" for name, value in series.labels.items() if name != "role"]
    return ", ".join(parts) or "a series"


def _largest_of(summary: SeriesSummary) -> int:
    """Return the largest absolute value, because being too early also breaks the bound."""
    return max(summary.max_ns or 0, -(summary.min_ns or 0))
