# SPDX-License-Identifier: MIT
"""The verdict on a whole run, in one sentence: how many of its loads keep the requirement, and which is the
worst.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rtgauge.probe.registry import PROBES, preset_of
from rtgauge.record.model import Step, Verdict, VerdictWord
from rtgauge.units import format_count, format_duration, format_share, format_time
from rtgauge.verdict.coverage import condition_of, cpus_left_out, left_out_of, noun_of
from rtgauge.verdict.decision import interval_remark, judge
from rtgauge.verdict.exposure import exposure_of
from rtgauge.verdict.next_step import Blame, Done
from rtgauge.verdict.requirement import Requirement, format_percent
from rtgauge.verdict.worst import ORDER, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rtgauge.record.model import Run
    from rtgauge.record.reader import Record

MOST_LEFT_OUT = 3
"""So many things that were left out are named."""
_OTHERS = {
    VerdictWord.HOLDS: "hold",
    VerdictWord.MARGINAL: "marginal",
    VerdictWord.CANNOT_TELL: "cannot tell",
}
SHARE_METRICS = {"latency": "late", "response": "late"}
"""What an activation is that breaks the bound on these metrics; of another one it is beyond its bound."""


def _counted(each: Sequence[tuple[Step, Verdict]], word: VerdictWord) -> str:
    """ "2 of 5 loads fail", with repeats "2 of 5 loads fail (3 of 15 steps)"."""
    conditions: dict[str, set[VerdictWord]] = {}
    for step, verdict in each:
        conditions.setdefault(condition_of(step.key), set()).add(verdict.word)
    noun = noun_of([step.key for step, _ in each])
    total, having = len(conditions), sum(word in words for words in conditions.values())
    verb = {
        VerdictWord.FAILS: "fails" if having == 1 else "fail",
        VerdictWord.HOLDS: "holds" if having == 1 else "hold",
        VerdictWord.MARGINAL: "is marginal" if having == 1 else "are marginal",
        VerdictWord.CANNOT_TELL: "cannot be decided",
    }[word]
    several = (
        f" ({sum(verdict.word == word for _, verdict in each)} of {len(each)} steps)"
        if len(each) > total
        else ""
    )
    if total == 1:
        return f"{noun} {verb}{several}" if several else ""
    subject = (
        f"{having} of {total} {noun}s"
        if having < total
        else f"all {total} {noun}s"
        if word == VerdictWord.HOLDS
        else f"{total} of {total} {noun}s"
    )
    return f"{subject} {verb}{several}"


def _figures(requirement: Requirement, verdict: Verdict) -> str:
    """ "38.0 ms on CPU 0, 57 of 20,000 late"."""
    evidence = verdict.evidence
    largest, cpu = evidence.get("max_ns"), evidence.get("max_cpu")
    where = f" on CPU {cpu}" if isinstance(cpu, int) else ""
    parts = [f"{format_time(largest)}{where}"] if isinstance(largest, int) else []
    if verdict.word != VerdictWord.FAILS:
        parts = [f"{part} of {format_duration(requirement.bound_ns)} allowed" for part in parts]
    certain, missed = int(evidence.get("violations_certain") or 0), int(evidence.get("missed") or 0)
    if certain:
        what = SHARE_METRICS.get(requirement.metric, "beyond the bound")
        among = (
            f", {format_count(missed)} of these missed"
            if 0 < missed < certain
            else " (missed)"
            if missed
            else ""
        )
        parts.append(f"{format_count(certain)} of {format_count(int(evidence['activations']))} {what}{among}")
    if requirement.allowed and certain:
        parts.append(f"{format_share(float(requirement.allowed))} may be")
    if verdict.word in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
        what = SHARE_METRICS.get(requirement.metric, "beyond it")
        parts.append(
            f"at most {format_share(float(evidence['violation_share_at_most']))} {what}, at "
            f"{format_percent(requirement.confidence)} confidence"
        )
    return ", ".join(parts)


def _remarks(verdict: Verdict, metric: str, steps: Sequence[Step]) -> list[str]:
    """What has to be known with the answer."""
    evidence = verdict.evidence
    remarks: list[str] = []
    doubts = [mark.name for step in steps if step.id == verdict.step for mark in step.doubts_on(metric)]
    if doubts:
        remarks.append(f"in doubt: {', '.join(dict.fromkeys(doubts))}")
    remark = interval_remark(evidence.get("interval_ns"), evidence.get("period_ns"))
    if remark is not None:
        remarks.append(remark)
    lateness: Mapping[str, Any] | None = evidence.get("lateness")
    if lateness is not None and lateness.get("word") != str(verdict.word):
        remarks.append(f"by absolute lateness: {lateness.get('word')}")
    left = cpus_left_out(steps)
    if left:
        remarks.append(f"not measured: {'; '.join(left)}")
    return remarks


def _sentence(
    requirement: Requirement,
    decisive: Verdict,
    each: Sequence[tuple[Step, Verdict]],
    names: Mapping[str, str],
) -> str:
    """The conclusion: how many, the worst of them with its figures, and what has to be known with it."""
    counted = _counted(each, decisive.word)
    name = names.get(decisive.step or "", decisive.step or "")
    figures = decisive.reason if decisive.word == VerdictWord.CANNOT_TELL else _figures(requirement, decisive)
    role = {VerdictWord.FAILS: "worst", VerdictWord.CANNOT_TELL: "first to settle"}.get(
        decisive.word, "nearest to the bound"
    )
    parts = [counted] if counted else []
    parts.append(f"{role}: {name}, {figures}" if len(each) > 1 else f"{name}: {figures}")
    if decisive.word == VerdictWord.FAILS:
        others = {
            word: sum(verdict.word == word for _, verdict in each)
            for word in (VerdictWord.CANNOT_TELL, VerdictWord.MARGINAL)
        }
        parts += [f"{count} more {_OTHERS[word]}" for word, count in others.items() if count]
    remarks = (
        []
        if decisive.word == VerdictWord.CANNOT_TELL
        else _remarks(decisive, requirement.metric, [step for step, _ in each])
    )
    return "; ".join([*parts, *remarks])


def nobody_to_blame(record: Record, step: Step) -> Blame | None:  # noqa: ARG001 - for those who have explained nothing
    """None."""
    return None


def judge_run(
    requirement: Requirement,
    record: Record,
    names: Mapping[str, str] | None = None,
    blame_of: Callable[[Record, Step], Blame | None] = nobody_to_blame,
) -> list[Verdict]:
    """The verdict on the whole run first (`step` None: that of its worst step), then one a step that measured
    the requirement's metric.

    A run of which something was left out cannot tell where the rest holds, unless it allows that
    (`allow_left_out`).
    `names`: step id -> what to call the step. `blame_of`: what took most of a step's latencies, for the
    advice.
    Steps of other metrics are left aside; if none is left, the run cannot tell.
    Raises RecordError for a damaged record.
    """
    measured = [
        step for step in record.steps if any(summary.metric == requirement.metric for summary in step.series)
    ]
    done = Done.of_run(record.run, record.steps)
    each: list[tuple[Step, Verdict]] = []
    for step in measured:
        facts = record.system(step.key.targets.get("self", ""))
        each.append(
            (
                step,
                judge(
                    requirement,
                    step,
                    record.windows(step),
                    facts,
                    done=replace(done, blame=blame_of(record, step)),
                ),
            )
        )
    decisive = worst([verdict for _, verdict in each])
    if decisive is None:
        return [
            Verdict(
                word=VerdictWord.CANNOT_TELL,
                requirement=str(requirement),
                reason=f"no finished step measured {requirement.metric}",
                next=f"measure it: {measuring_command(requirement)}",
            )
        ]
    tally = {str(word): sum(verdict.word == word for _, verdict in each) for word in ORDER}
    reason = _sentence(requirement, decisive, each, names or {})
    whole = decisive.model_copy(
        update={
            "step": None,
            "reason": reason,
            "evidence": {**decisive.evidence, "decided_by": decisive.step, "steps": tally},
            "exposure": exposure_of(requirement, each, record.run),
        }
    )
    return [_with_left_out(whole, record.run), *(verdict for _, verdict in each)]


def _with_left_out(whole: Verdict, run: Run) -> Verdict:
    """The verdict on a run with what of the plan was left out: nobody knows how that would have been, so that
    the rest alone does not hold.

    If it is allowed to be left out, it is said only.
    """
    missing = left_out_of(run)
    if not missing:
        return whole
    words = "; ".join(missing[:MOST_LEFT_OUT]) + (
        f"; {len(missing) - MOST_LEFT_OUT} more" if len(missing) > MOST_LEFT_OUT else ""
    )
    evidence = {**whole.evidence, "left_out": missing, "left_out_allowed": run.allow_left_out}
    if run.allow_left_out or whole.word in {VerdictWord.FAILS, VerdictWord.CANNOT_TELL}:
        return whole.model_copy(update={"reason": f"{whole.reason}; {words}", "evidence": evidence})
    remedy = run.left_out[0].remedy if run.left_out else "measure the rest: rtgauge run --resume"
    following = f"{remedy}; or judge without it: --allow-left-out"
    reason = f"{words}; without it: {whole.reason}"
    return whole.model_copy(
        update={"word": VerdictWord.CANNOT_TELL, "reason": reason, "next": following, "evidence": evidence}
    )


def measuring_command(requirement: Requirement) -> str:
    """The command that measures what the requirement bounds, and judges it."""
    known = preset_of(requirement.metric)
    if known is not None:
        return f'rtgauge run {known[1]} --require "{requirement}"'
    probe, metric = next(
        (probe, metric)
        for probe in PROBES.values()
        if (metric := probe.metric(requirement.metric)) is not None and metric.bound is not None
    )
    space = "" if metric.space is None else f" --space {metric.space}"
    return f'rtgauge probe {probe.name}{space} --require "{requirement}"'
