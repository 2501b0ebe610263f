# SPDX-License-Identifier: MIT
"""Shows the probe `noise`: the time taken from each CPU, by cause."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from rich.console import Console

from rtgauge.analysis.record_names import system_names
from rtgauge.record.marks import Severity, is_doubt
from rtgauge.record.model import Model, Step
from rtgauge.record.reader import Record, reading
from rtgauge.report.presenter import Chapter, Presenter
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table, numbers, texts
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import NONE, whole
from rtgauge.units import format_time

CAUSES = ("task", "interrupt", "below", "undetermined")


class Taken(Model):
    """The time (ns) that one cause took from a task that was always ready to run."""

    cause: str
    """Task; interrupt; below (hardware, firmware or a hypervisor); or undetermined (an interrupt, or below).
    """
    gaps: int
    taken_ns: int
    max_ns: int | None


class Place(Model):
    """One repeat on one system, under one policy and load."""

    record: str
    name: str
    policy: str
    load: str
    repeat: int


class NoiseAnswer(Place):
    """The time (ns) taken from a task on one CPU."""

    cpu: int
    observed_ns: int
    taken_ns: int
    causes: list[Taken]
    worst_mark: Severity | None

    def share(self, taken_ns: int) -> float | None:
        """The share of the observed time that was taken; None if nothing was observed."""
        return taken_ns / self.observed_ns if self.observed_ns else None


def place_of(record: Record, step: Step, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the step's Place. `names`: step id -> the name of its system."""
    return {
        "record": str(record.path),
        "name": names[step.id],
        "policy": str(step.key.parameters.get("policy")),
        "load": step.key.load,
        "repeat": step.key.repeat,
    }


def noise_answers(record: Record, step: Step, names: Mapping[str, str]) -> list[NoiseAnswer]:
    """Return what a step of the probe `noise` found on each CPU; empty for another probe. `names`: as for
    `place_of`.
    """
    answers: list[NoiseAnswer] = []
    for result in step.results:
        if result.name != "noise":
            continue
        cpu = result.labels["cpu"]
        causes = [
            Taken(
                cause=str(series.labels["cause"]),
                gaps=series.count,
                taken_ns=round(series.count * (series.mean_ns or 0)),
                max_ns=series.max_ns,
            )
            for series in step.series
            if series.labels.get("cpu") == cpu
        ]
        answer = {key: result.values[key] for key in ("observed_ns", "taken_ns")}
        answer |= {"cpu": cpu, "causes": causes, "worst_mark": step.worst}
        answers.append(NoiseAnswer.model_validate({**place_of(record, step, names), **answer}))
    return answers


def _share(answer: NoiseAnswer, taken_ns: int) -> str:
    share = answer.share(taken_ns)
    return NONE if share is None else f"{share * 100:.3f} %"


def where(place: Place, every: Sequence[Place]) -> str:
    """Return a place's system, policy, load and repeat, each only if it differs."""
    parts = [
        place.name if len({other.name for other in every}) > 1 else "",
        place.policy,
        place.load if len({other.load for other in every}) > 1 else "",
        f"#{place.repeat}" if len({other.repeat for other in every}) > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def noise_grid(answers: Sequence[NoiseAnswer]) -> Table | None:
    """Return the time taken from each CPU, by cause; None if `noise` was not measured."""
    if not answers:
        return None
    seen = {taken.cause for answer in answers for taken in answer.causes}
    causes = [cause for cause in CAUSES if cause in seen]
    rows: list[list[str]] = []
    for answer in answers:
        by_cause = {taken.cause: taken for taken in answer.causes}
        cells = [_share(answer, by_cause[cause].taken_ns) if cause in by_cause else NONE for cause in causes]
        timed = [(taken.max_ns, taken.cause) for taken in answer.causes if taken.max_ns is not None]
        longest_ns, by = max(timed, key=lambda pair: pair[0], default=(None, NONE))
        longest = [NONE if longest_ns is None else format_time(longest_ns), by]
        gaps = whole(sum(taken.gaps for taken in answer.causes))
        marked = "*" if is_doubt(answer.worst_mark) else ""
        name = f"CPU {answer.cpu}, {where(answer, answers)}{marked}"
        rows.append([name, _share(answer, answer.taken_ns), *cells, gaps, *longest])
    notes = [
        (
            "Each share is a part of the time in which the task could see gaps. task: another task ran. "
            "interrupt: the kernel counted an interrupt. below: the kernel counted nothing, so it was "
            "hardware, firmware or a hypervisor."
        )
    ]
    if "undetermined" in causes:
        notes.append(
            "undetermined: interrupts were not counted, so this can be an interrupt or something "
            "below the kernel."
        )
    if any(row[0].endswith("*") for row in rows):
        notes.append("*: the step is marked doubtful or invalid; read its figures with care.")
    columns = [*texts(""), *numbers("taken", *causes, "gaps", "longest"), *texts("by")]
    return Table("Noise: the time taken from each CPU", columns, rows, notes)


def _answers(record: Record) -> list[NoiseAnswer]:
    (names,) = system_names([record])
    answers: list[NoiseAnswer] = []
    for step in record.steps:
        with reading(step):
            answers.extend(noise_answers(record, step, names))
    return answers


class NoisePresenter(Presenter):
    """Presents the probe `noise`."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002 - of every presenter
        """Return the largest share of the time that was taken; None if nothing was observed."""
        taken = [(answer.share(answer.taken_ns), answer) for answer in _answers(view.record)]
        shares = [(share, answer) for share, answer in taken if share is not None]
        if not shares:
            return None
        share, answer = max(shares, key=lambda pair: pair[0])
        return (
            f"up to {share * 100:.3f} % of the time was taken from the task on CPU {answer.cpu} under "
            f"{answer.load}"
        )

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002 - of every presenter
        """Return the table; None if there is none."""
        table = noise_grid(_answers(view.record))
        return None if table is None else Chapter("noise", "Noise", [table], "what takes CPU time")

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:  # noqa: ARG002
        """Print the table."""
        table = noise_grid(_answers(view.record))
        if table is not None:
            print_tables([table], console)
            console.print()


NOISE = NoisePresenter()
