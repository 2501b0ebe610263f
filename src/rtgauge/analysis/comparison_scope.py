# SPDX-License-Identifier: MIT
"""What of the records is compared in one go: all of it, or, where that has no common scale, each task or each operation by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.analysis.microbenchmarks import has_several_operations, operation
from rtgauge.errors import InputError
from rtgauge.probe.registry import PROBES, probe_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.record.model import SeriesSummary, Step
    from rtgauge.record.reader import Record

SEGMENT = "segment"
"""The label of a part of a response: it is no response by itself."""


@dataclass(frozen=True)
class Part:
    """`task` and `metric`: of a task set; `operation`: of microbenchmarks; `probe`, `metric` and `role`: of periodic and response tasks and of wakeup.

    Without any of them: the main quantity of every step.
    """

    title: str = ""
    task: str | None = None
    metric: str | None = None
    operation: str | None = None
    probe: str | None = None
    role: str | None = None

    def has(self, step: Step) -> bool:
        """Whether the step is of this part."""
        if step.total is None:
            return False
        if self.operation is not None:
            return operation(step) == self.operation
        if self.probe is not None:
            return step.key.probe == self.probe and bool(self.series(step))
        return self.task is None or any(counts.task == self.task for counts in step.tasks)

    def quantity(self, step: Step) -> str:
        """What of the step is compared."""
        return self.metric or (step.total.metric if step.total is not None else "none")

    def series(self, step: Step) -> list[SeriesSummary]:
        """The series of the step that are compared."""
        if self.task is None and self.metric is None:
            return step.main_series
        found = [one for one in step.series if one.metric == self.quantity(step) and (self.task is None or one.labels.get("task") == self.task)]
        if self.probe is None:
            return found
        return [one for one in found if SEGMENT not in one.labels and one.labels.get("role") == self.role]


WHOLE = Part()


def timing_parts(records: Sequence[Record]) -> list[Part]:
    """A part for each probe, quantity and role that is judged against a period, in the papers' order; empty where the records hold none."""
    steps = [step for record in records for step in record.steps if not step.tasks]
    parts: list[Part] = []
    # The papers' tables of response tasks come before those of periodic ones.
    for probe, descriptor in reversed(PROBES.items()):
        metrics = descriptor.frequency
        for metric in metrics:
            series = [one for step in steps if step.key.probe == probe for one in step.series if one.metric == metric and SEGMENT not in one.labels]
            roles = dict.fromkeys(None if (role := one.labels.get("role")) is None else str(role) for one in series)
            for role in sorted(roles, key=str, reverse=True):
                what = probe if metric == probe or len(metrics) == 1 else f"{probe}: {metric}"
                seen = f", as the {role} saw it" if len(roles) > 1 else ""
                parts.append(Part(f"{what[:1].upper()}{what[1:]}{seen}", metric=metric, probe=probe, role=role))
    return parts


def parts_of(records: Sequence[Record], metric: str | None) -> list[Part]:
    """A part a task where every step is of a task set, a part an operation where there are several, a part a quantity of periodic and response tasks, else one.

    `metric`: what of a task is compared. Raises InputError where it is none, or there are no tasks.
    """
    steps = [step for record in records for step in record.steps]
    if steps and all(step.tasks for step in steps):
        metrics = [known.name for known in probe_of(steps[0]).metrics if known.compared]
        chosen = metric or metrics[0]
        if chosen not in metrics:
            raise InputError(f"--metric {chosen} is none of {', '.join(metrics)}")
        names = dict.fromkeys(counts.task for step in steps for counts in step.tasks)
        return [Part(f"Task {name}", task=name, metric=chosen) for name in names]
    if metric is not None:
        raise InputError("--metric chooses what is compared of the tasks of task sets: these records hold other steps")
    if has_several_operations(records):
        found = dict.fromkeys(name for step in steps if (name := operation(step)) is not None)
        return [Part(name[:1].upper() + name[1:], operation=name) for name in found]
    timing = timing_parts(records)
    return timing if len(timing) > 1 or any(part.role is not None for part in timing) else [WHOLE]
