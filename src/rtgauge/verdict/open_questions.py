# SPDX-License-Identifier: MIT
"""What was not measured and would change an advice, each with the command that measures it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rtgauge.analysis.frequency import Options, gather
from rtgauge.probe.registry import preset_of
from rtgauge.record.model import Model
from rtgauge.units import format_duration, format_time
from rtgauge.verdict.decision import judged_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.reader import Record
    from rtgauge.verdict.margin import Evidence
    from rtgauge.verdict.requirement import Requirement


class OpenQuestion(Model):
    """Something that was not measured, how it could change the answer, and how to measure it."""

    what: str
    changes: str
    command: str


def measure_command(requirement: Requirement, *more: str, longer: bool = False) -> str:
    """The command that measures the requirement, idle and loaded, and judges it."""
    known = preset_of(requirement.metric)
    words = [
        "rtgauge run",
        *([known[1]] if known is not None else []),
        *(["--duration 1h"] if longer else []),
        *more,
        f'--require "{requirement}"',
    ]
    return " ".join(words)


def _rare(
    requirement: Requirement, records: Sequence[Record], used: set[tuple[str, str]]
) -> OpenQuestion | None:
    """Whether the extreme-value estimate reaches the bound where the sample does not."""
    if requirement.allowed != 0:
        return None
    for gathered in gather(records, Options(confidence=float(requirement.confidence))):
        if gathered.table.metric != requirement.metric:
            continue
        for line in gathered.table.lines:
            if not any((line.record, step) in used for step in line.steps):
                continue
            beyond = next((extreme for extreme in line.extremes if extreme.ns > requirement.bound_ns), None)
            if beyond is not None:
                return OpenQuestion(
                    what=f"how late it is once in {beyond.activations:.0e} activations".replace("e+0", "e"),
                    changes=(
                        f"the extreme-value estimate of {line.label} is {format_time(beyond.ns)} there, "
                        "which is over the bound: a longer run may fail"
                    ),
                    command=measure_command(requirement, longer=True),
                )
    return None


def questions(
    requirement: Requirement, records: Sequence[Record], used: Sequence[Evidence], *, on_the_way: bool
) -> list[OpenQuestion]:
    """What `used` leaves open.

    `on_the_way`: the answer rests on a failure, so what could mend that failure is listed too.
    """
    if not used:
        return []
    metric = requirement.metric
    questions: list[OpenQuestion] = []
    if all(evidence.load == "idle" for evidence in used):
        questions.append(
            OpenQuestion(
                what="anything but idle",
                changes="a loaded machine is later, often by orders of magnitude",
                command=measure_command(requirement),
            )
        )
    period = requirement.period_ns
    slower = [
        evidence
        for evidence in used
        if period is not None and evidence.interval_ns is not None and evidence.interval_ns > period
    ]
    if slower and period is not None:
        known = preset_of(metric)
        pace = known[0].pace if known is not None else None
        setting = (
            []
            if pace is None
            else [f"--set {pace.period.removesuffix('_ns')}={format_duration(period * pace.activations)}"]
        )
        questions.append(
            OpenQuestion(
                what=(
                    f"the period that is required: {slower[0].step} was measured every "
                    f"{format_duration(slower[0].interval_ns or 0)}"
                ),
                changes="a machine that has to act more often may be later, and has less time to catch up",
                command=measure_command(requirement, *setting),
            )
        )
    rare = _rare(requirement, records, {(evidence.record, evidence.step) for evidence in used})
    if rare is not None:
        questions.append(rare)
    doubtful = next(
        (evidence for evidence in used if any(mark.startswith("doubtful") for mark in evidence.marks)), None
    )
    if doubtful is not None:
        marks = ", ".join(mark for mark in doubtful.marks if mark.startswith("doubtful"))
        questions.append(
            OpenQuestion(
                what=f"{doubtful.step} without its doubt ({marks})",
                changes="what made it doubtful may have made it late, or hidden that it was",
                command=doubtful.next,
            )
        )
    if on_the_way and all(evidence.deployment == "as-is" for evidence in used):
        questions.append(
            OpenQuestion(
                what="a CPU of its own for the task (isolation, C-states off)",
                changes="it may be enough without another kernel",
                command=measure_command(requirement, "--deployment MI"),
            )
        )
    if metric == "latency":
        questions.append(
            OpenQuestion(
                what="the whole way from an input to an output: latency is of a timer's wake-up alone",
                changes=(
                    "an interrupt, a driver and a write to the line come on top (17,27: the lines of "
                    "your board)"
                ),
                command=measure_command(
                    replace(requirement, metric="response"), "--set path=gpio:/dev/gpiochip0:17,27"
                ),
            )
        )
    steps = [
        step
        for record in records
        for step in record.steps
        if (str(record.path), step.id) in {(evidence.record, evidence.step) for evidence in used}
    ]
    if metric == "jitter" and not all(judged_series(step, "latency") for step in steps):
        questions.append(
            OpenQuestion(
                what="absolute lateness: a task that is always equally late has no jitter",
                changes="the edge may be regular and yet too late",
                command=measure_command(replace(requirement, metric="jitter")),
            )
        )
    if metric != "latency" and all(
        str(step.key.parameters.get("path") or "loop").startswith("loop") for step in steps
    ):
        questions.append(
            OpenQuestion(
                what="the line itself: it was measured within the machine, over loop",
                changes=(
                    "an interrupt, a driver and a write to the line come on top (17,27: the lines of "
                    "your board)"
                ),
                command=measure_command(requirement, "--set path=gpio:/dev/gpiochip0:17,27"),
            )
        )
    if len({evidence.record for evidence in used}) == 1:
        questions.append(
            OpenQuestion(
                what="another boot and another day: all of it is one run",
                changes="a low maximum in one run does not guarantee the same in another",
                command=measure_command(requirement, longer=True),
            )
        )
    return questions
