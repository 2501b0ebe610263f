# SPDX-License-Identifier: MIT
"""Lists missing measurements that could change an advice, each with the command that measures it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rtgauge.probe.probe_registry import preset_of
from rtgauge.record.model import Model
from rtgauge.record.reader import Record
from rtgauge.units import format_duration
from rtgauge.verdict.decision import judged_series
from rtgauge.verdict.requirement import Requirement
from rtgauge_ext.papers.advise.margin import Evidence

ON_TOP = "an interrupt, a driver and a write to the line add to it (replace 17,27 by the lines of your board)"
OVER_GPIO = "--set path=gpio:/dev/gpiochip0:17,27"


class OpenQuestion(Model):
    """A missing measurement, how it could change the answer, and how to make it."""

    what: str
    changes: str
    command: str


def measure_command(requirement: Requirement, *more: str, longer: bool = False) -> str:
    """Return the command that measures the requirement's metric, idle and loaded, and judges it."""
    measuring = preset_of(requirement.metric)
    words = [
        "rtgauge run",
        *([measuring.name] if measuring is not None else []),
        *(["--duration 1h"] if longer else []),
        *more,
        f'--require "{requirement}"',
    ]
    return " ".join(words)


def _question(what: str, changes: str, command: str) -> OpenQuestion:
    return OpenQuestion(what=what, changes=changes, command=command)


def questions(
    requirement: Requirement, records: Sequence[Record], used: Sequence[Evidence], *, on_the_way: bool
) -> list[OpenQuestion]:
    """Return the questions that `used` leaves open. `on_the_way`: whether no measured way is good enough yet;
    isolation is then a question too.
    """
    return list(_open(requirement, records, used, on_the_way=on_the_way)) if used else []


def _open(
    requirement: Requirement, records: Sequence[Record], used: Sequence[Evidence], *, on_the_way: bool
) -> Iterator[OpenQuestion]:
    metric, period = requirement.metric, requirement.period_ns
    if all(evidence.load == "idle" for evidence in used):
        yield _question(
            "the task under load, because only an idle machine was measured",
            "a loaded machine has larger latencies, often by orders of magnitude",
            measure_command(requirement),
        )
    slower = [] if period is None else [each for each in used if (each.interval_ns or 0) > period]
    if slower and period is not None:
        measuring = preset_of(metric)
        pace = measuring.probe.pace if measuring is not None else None
        setting = (
            []
            if pace is None
            else [f"--set {pace.period.removesuffix('_ns')}={format_duration(period * pace.activations)}"]
        )
        measured = f"{slower[0].step} was measured every {format_duration(slower[0].interval_ns or 0)}"
        yield _question(
            f"the required period: {measured}",
            "a machine that has to act more often may have larger latencies, and less time to catch up",
            measure_command(requirement, *setting),
        )
    places = {(evidence.record, evidence.step) for evidence in used}
    for evidence in used:
        marks = [mark for mark in evidence.marks if mark.startswith("doubtful")]
        if marks:
            yield _question(
                f"{evidence.step} without its doubtful marks ({', '.join(marks)})",
                "what made the step doubtful may have made it late, or hidden its lateness",
                evidence.next,
            )
            break
    if on_the_way and all(evidence.deployment == "as-is" for evidence in used):
        yield _question(
            "giving the task a CPU of its own (isolation, C-states off)",
            "this may be enough without another kernel",
            measure_command(requirement, "--deployment MI"),
        )
    if metric == "latency":
        yield _question(
            "the whole path from an input to an output, because latency covers only a timer's wake-up",
            ON_TOP,
            measure_command(replace(requirement, metric="response"), OVER_GPIO),
        )
    steps = [step for record in records for step in record.steps if (str(record.path), step.id) in places]
    if metric == "jitter" and not all(judged_series(step, "latency") for step in steps):
        yield _question(
            "absolute lateness, because a task that is always equally late has no jitter",
            "the edge may be regular and yet too late",
            measure_command(requirement),
        )
    paths = [str(step.key.parameters.get("path") or "loop") for step in steps]
    if metric != "latency" and all(path.startswith("loop") for path in paths):
        yield _question(
            "the line itself, because only a loop within the machine was measured",
            ON_TOP,
            measure_command(requirement, OVER_GPIO),
        )
    if len({evidence.record for evidence in used}) == 1:
        yield _question(
            "another boot and another day, because all evidence is from one run",
            "a low maximum in one run does not guarantee the same in another",
            measure_command(requirement, longer=True),
        )
