# SPDX-License-Identifier: MIT
"""Sums up the verdict on a whole run in one sentence, and checks whether a plan can answer a requirement."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from rtgauge.analysis.violation_bounds import Counted, activations_needed, design_effect, upper_bound
from rtgauge.errors import InputError, RecordError
from rtgauge.extension import imported
from rtgauge.probe.probe_registry import PROBES, get, preset_of, probe_of
from rtgauge.record.alternation import alternation_of
from rtgauge.record.model import Exposure, Run, Step, StepKey, Verdict, VerdictWord
from rtgauge.record.reader import Record
from rtgauge.record.windows import Windows
from rtgauge.units import NS_PER_S, format_percentage, plural
from rtgauge.verdict.answer_words import answer_words
from rtgauge.verdict.coverage import condition_of, cpus_left_out, left_out_of, noun_of
from rtgauge.verdict.decision import MARGIN, interval_remark, judge
from rtgauge.verdict.exit_status import ORDER, worst
from rtgauge.verdict.next_step import Blame, PastRun
from rtgauge.verdict.requirement import Requirement

MOST_LEFT_OUT = 3
"""How many left-out parts of the plan are named."""
INSTALL = re.compile(r"apt-get install ([a-z0-9.+ -]+)")
"""The remedy of a load whose programs are missing."""


def _remarks(verdict: Verdict, steps: Sequence[Step]) -> list[str]:
    """Return the remarks that belong to the answer."""
    evidence = verdict.evidence
    remarks: list[str] = []
    if verdict.word is VerdictWord.MARGINAL:
        doubts: Sequence[str] = evidence.get("in_doubt", ())
        small_margin = f"the requirement holds with less than {format_percentage(1 - float(MARGIN))} to spare"
        remarks.append(f"in doubt: {', '.join(doubts)}" if doubts else small_margin)
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


def _cycle_remarks(evidence: Mapping[str, Any]) -> list[str]:
    """Return remarks on a watched thread's cycles: its drift, and releases for which it did not wait."""
    missed = int(evidence["missed_releases"])
    remarks = [evidence["drift"]] if evidence["drift"] else []
    if missed and "why" not in evidence:  # else the reason says more of them
        remarks.append(
            f"{plural(missed, 'release')} came while it was busy, and it ran them late or not at all"
        )
    return remarks


def _sentence(decisive: Verdict, judged: Sequence[tuple[Step, Verdict]], names: Mapping[str, str]) -> str:
    """Return who decides, the number against the allowed one, the worst, and the remarks on it."""
    evidence, cannot = decisive.evidence, decisive.word is VerdictWord.CANNOT_TELL
    task: str | None = evidence.get("task")
    parts: list[str] = []
    if task is not None and (not cannot or "activations_needed" in evidence):
        answer = [f"{task}: {answer_words(decisive)}", *_cycle_remarks(evidence)]
        # That a thread ended says less than how late it was; that it hangs or was killed says more.
        parts += [*answer, *evidence["trouble"]] if evidence["ended"] else [*evidence["trouble"], *answer]
    elif task is not None:
        parts.append(answer_words(decisive))
    else:
        name = names.get(decisive.step or "", decisive.step or "")
        steps = [step for step, _ in judged]
        name = ", ".join([*_subject(steps, decisive), name])
        every = len({condition_of(step.key) for step in steps})
        if every > 1 and decisive.word in {VerdictWord.HOLDS, VerdictWord.MARGINAL}:
            name += f", the closest of {every} {noun_of([step.key for step in steps])}s"
        parts.append(f"{name}: {answer_words(decisive)}")
    if not cannot:
        parts += _remarks(decisive, [step for step, _ in judged])
    return "; ".join(parts)


def _subject(steps: Sequence[Step], decisive: Verdict) -> list[str]:
    """Return what the step that decides measured, if its probe has words for it."""
    own = [(probe_of(step), step.key) for step in steps if step.id == decisive.step]
    with suppress(RecordError):  # an imported step, or another version's, may have other parameters
        subjects = [probe.subject(probe.own(key)) for probe, key in own]
        return [subject for subject in subjects if subject is not None]
    return []


BlameOf = Callable[[Record, Step, Requirement, str | None], Blame | None]
"""Finds the culprit that made a step, or one thread of a watched program, late by a requirement."""
BlameByFigures = Callable[[Step, Windows, Requirement], Blame | None]
"""What a probe's `blames` is."""


def past_run_of(record: Record, step: Step, requirement: Requirement, blame_of: BlameOf | None) -> PastRun:
    """Return what the step's run measured, and how to find its culprits, for `judge`."""
    past_run = PastRun.of_run(record.run, record.steps, step)
    if blame_of is None and not probe_of(step).blames:
        return past_run
    return replace(past_run, blame_of=partial(_blame, record, step, requirement, blame_of))


def _blame(
    record: Record, step: Step, requirement: Requirement, blame_of: BlameOf | None, task: str | None
) -> Blame | None:
    """Return the culprit of the explained latencies, or else the one that the probe's own figures show. These
    also give a remedy if the explanation has none.
    """
    explained = None if blame_of is None else blame_of(record, step, requirement, task)
    blames = probe_of(step).blames
    if not blames or (explained is not None and explained.remedy is not None):
        return explained
    counted = cast("BlameByFigures", imported(blames))(step, record.windows(step), requirement)
    if explained is None or counted is None:
        return explained or counted
    return replace(explained, remedy=counted.remedy)


def judge_run(
    requirement: Requirement,
    record: Record,
    names: Mapping[str, str] | None = None,
    blame_of: BlameOf | None = None,
) -> list[Verdict]:
    """Return the verdict on the whole run, and then one verdict for each step that measured the requirement's
    metric.

    The verdict on the run is the worst step's, with `step` None. If a part of the plan was left out and no
    step decides otherwise, "holds" and "marginal" become "cannot tell", unless the run allows it
    (`allow_left_out`). `names`: step id -> name. `blame_of`: finds the culprit that ranks first in a step's
    latencies, for the advice. Steps of other metrics are ignored; without other steps, the verdict is "cannot
    tell". Raises RecordError for a damaged record.
    """
    measured = [
        step for step in record.steps if any(summary.metric == requirement.metric for summary in step.series)
    ]
    judged: list[tuple[Step, Verdict]] = []
    for step in measured:
        facts = record.system(step.key.targets.get("self", ""))
        past_run = past_run_of(record, step, requirement, blame_of)
        judged.append((step, judge(requirement, step, record.windows(step), facts, past_run=past_run)))
    decisive = worst([verdict for _, verdict in judged])
    if decisive is None:
        return [
            Verdict(
                word=VerdictWord.CANNOT_TELL,
                requirement=str(requirement),
                reason=f"no finished step measured {requirement.metric}",
                next=f"measure it: {measuring_command(requirement)}",
            )
        ]
    tally = {str(word): sum(verdict.word == word for _, verdict in judged) for word in ORDER}
    reason = _sentence(decisive, judged, names or {})
    whole = decisive.model_copy(
        update={
            "step": None,
            "cause": _cause(requirement, record, decisive, blame_of),
            "reason": reason,
            "evidence": {**decisive.evidence, "decided_by": decisive.step, "steps": tally},
            "exposure": exposure_of(requirement, judged, record.run),
        }
    )
    return [_with_left_out(whole, record.run), *(verdict for _, verdict in judged)]


def _cause(
    requirement: Requirement, record: Record, decisive: Verdict, blame_of: BlameOf | None
) -> str | None:
    """Return what made the step or the thread that decides late; None if nothing did, or if it is unknown."""
    if not decisive.evidence.get("violations_possible"):
        return None
    step = next(step for step in record.steps if step.id == decisive.step)
    blame = _blame(record, step, requirement, blame_of, decisive.evidence.get("task"))
    return None if blame is None else blame.cause


def _with_left_out(whole: Verdict, run: Run) -> Verdict:
    """Add the parts of the plan that were left out. Their result is unknown, so "holds" and "marginal" become
    "cannot tell". If the user allows parts to be left out, they are only mentioned. A verdict that they do
    not change has them in its evidence.
    """
    missing = left_out_of(run)
    if not missing:
        return whole
    words = "; ".join(missing[:MOST_LEFT_OUT]) + (
        f"; {len(missing) - MOST_LEFT_OUT} more" if len(missing) > MOST_LEFT_OUT else ""
    )
    evidence = {**whole.evidence, "left_out": missing, "left_out_allowed": run.allow_left_out}
    whole = whole.model_copy(update={"evidence": evidence})
    if whole.word in {VerdictWord.FAILS, VerdictWord.CANNOT_TELL}:
        return whole
    if run.allow_left_out:
        return whole.model_copy(update={"reason": f"{whole.reason}; {words}"})
    following = f"{_remedy(run)}; or judge without it: --allow-left-out"
    return whole.untold(f"{words}; without it: {whole.reason}", following)


def _remedy(run: Run) -> str | None:
    """Return what to do about the parts left out: one command with all missing packages, or else the remedy
    of the first part.
    """
    if not run.left_out:
        return "measure the rest with: rtgauge resume"
    installs = [match for item in run.left_out if (match := INSTALL.fullmatch(item.remedy or ""))]
    if not installs or INSTALL.fullmatch(run.left_out[0].remedy or "") is None:
        return run.left_out[0].remedy
    packages = dict.fromkeys(package for match in installs for package in match[1].split())
    return f"apt-get install {' '.join(packages)}, then run this again"


def measuring_command(requirement: Requirement) -> str:
    """Return a command that measures the requirement's metric and judges it."""
    measuring = preset_of(requirement.metric)
    if measuring is not None:
        return f'rtgauge run {measuring.name} --require "{requirement}"'
    probe, metric = next(
        (probe, metric)
        for probe in PROBES.values()
        if (metric := probe.metric(requirement.metric)) is not None and metric.bound is not None
    )
    space = "" if metric.space is None else f" --space {metric.space}"
    return f'{probe.called}{space} --require "{requirement}"'


def check_answerable(requirement: Requirement, steps: Sequence[StepKey], plan: str) -> None:
    """Raise InputError that names a suitable command, if no step of the plan measures the requirement's
    metric.

    `plan`: the user's name for it, such as `quick` or `probe wakeup`.
    """

    measured = {
        metric.name for key in steps for metric in get(key.probe).metrics if metric.space in {None, key.space}
    }
    if requirement.metric in measured:
        return
    bounded = sorted(
        name
        for name in measured
        if any(
            known.bound is not None for probe in PROBES.values() if (known := probe.metric(name)) is not None
        )
    )
    what = " and ".join(bounded) or "nothing that a requirement can bound"
    raise InputError(
        f"{plan} cannot answer a requirement on {requirement.metric}, because it measures {what}; give "
        f"instead: {measuring_command(requirement)}"
    )


RAREST = 1e-15
"""The smallest share of violations that advice aims to exclude."""


def exposure_of(
    requirement: Requirement, judged: Sequence[tuple[Step, Verdict]], run: Run
) -> Exposure | None:
    """Return how much all judged steps measured together, and which rate of violations this excludes; None if
    they have no activations.

    The design effect of all steps together allows for bursts and, if a condition has several runs, for the
    spread between runs. The excluded rate applies to this mix of loads.
    """
    counted = [(step, verdict.evidence) for step, verdict in judged if verdict.evidence.get("activations")]
    if not counted:
        return None
    confidence = float(requirement.confidence)
    conditions: dict[str, list[Counted]] = {}
    for step, evidence in counted:
        of_step = Counted(
            int(evidence["violations_possible"]),
            int(evidence["activations"]),
            float(evidence["violation_variance"]),
            evidence["degrees_of_freedom"],
        )
        conditions.setdefault(condition_of(step.key), []).append(of_step)
    every = [run for runs in conditions.values() for run in runs]
    activations, violations = sum(run.activations for run in every), sum(run.violations for run in every)
    effect = design_effect(list(conditions.values()), confidence)
    share = upper_bound(violations / effect, activations / effect, confidence)
    seconds = sum(_measured_s(step) for step, _ in counted)
    target = 10.0 ** (math.ceil(math.log10(share)) - 1)
    needed = (
        activations_needed(
            target,
            confidence,
            violations=violations,
            count=activations,
            design_effect=effect,
        )
        if target >= RAREST
        else None
    )
    keys = [step.key for step, _ in counted]
    return Exposure(
        activations=activations,
        violations=violations,
        runs=len({(key.repeat, key.targets.get("self")) for key in keys}),
        boots=_boots([step for step, _ in counted], run),
        conditions=len(conditions),
        measured_s=seconds,
        confidence=confidence,
        share_excluded=share,
        assumes_independence=not violations or all(run.freedom is None for run in every if run.violations),
        between_runs=any(len(runs) > 1 for runs in conditions.values()),
        per_hour_excluded=share * activations / seconds * 3600 if seconds else None,
        next_share=target,
        next_s=None if needed is None or not seconds else seconds * needed / activations,
        next_boards=None if needed is None else math.ceil(needed / activations),
    )


def _measured_s(step: Step) -> float:
    duration = step.parameters.get("duration_ns")
    if isinstance(duration, int) and duration > 0:
        return duration / NS_PER_S
    if step.start_ns is None or step.end_ns is None:
        return 0.0
    return (step.end_ns - step.start_ns) / NS_PER_S


def _boots(steps: Sequence[Step], run: Run) -> int:
    """Count the boots of these steps. If a step does not name its boot, count the boots that the plan asks
    for, and at least one for each target.
    """
    keys = [step.key for step in steps]
    if all(step.boot_id is not None for step in steps):
        return len({(step.key.targets.get("self"), step.boot_id) for step in steps})
    alternation = alternation_of(run)
    if alternation is not None and alternation.boot_between:
        return len({(key.repeat, key.targets.get("self")) for key in keys})
    boots = 0
    last: dict[str, str] = {}
    by_boot = run.plan.get("deployments-by") == "boot"
    for key in keys:
        target = key.targets.get("self", "")
        boots += target not in last or (by_boot and last[target] != key.deployment)
        last[target] = key.deployment
    return boots
