# SPDX-License-Identifier: MIT
"""A measured task set and the calculated one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.schedulability.analysis.analyse import analyse, timeline_result
from rtgauge.schedulability.analysis.analysis_document import ActivationResult, Segment, TimelineResult
from rtgauge.schedulability.analysis.timeline import preemptions, timeline
from rtgauge.schedulability.probe import PROBE, timeline_ns

if TYPE_CHECKING:
    from rtgauge.record.model import SeriesSummary, Step, TaskCounts
    from rtgauge.schedulability.analysis.analysis_document import SetResult, TaskResult
    from rtgauge.schedulability.model.task import Task

SHOWN = 2_000
"""Shorter gaps than this part of the timeline are not shown."""


@dataclass(frozen=True)
class MeasuredTask:
    """One task of a step: its calculated response, its counts, and its series by metric."""

    calculated: TaskResult
    counts: TaskCounts
    series: dict[str, SeriesSummary]


@dataclass(frozen=True)
class MeasuredSet:
    """A step of taskset: the analysis of its set as written, and its tasks in the set's order."""

    step: Step
    result: SetResult
    tasks: list[MeasuredTask]


def measured_set(step: Step) -> MeasuredSet:
    """The measured set of a step of the probe taskset.

    Raises RecordError if its parameters are not a task set's.
    """
    result = analyse(PROBE.own(step.key).task_set)
    calculated = {task.name: task for cpu in result.cpus for task in cpu.tasks}
    tasks = [
        MeasuredTask(
            calculated[counts.task],
            counts,
            {series.metric: series for series in step.series if series.labels.get("task") == counts.task},
        )
        for counts in step.tasks
        if counts.task in calculated
    ]
    return MeasuredSet(step, result, tasks)


def measured_timeline(measured: MeasuredSet, cpu: int) -> TimelineResult | None:
    """The first hyperperiods of one CPU as they were measured; None if none were.

    Gaps of less than a 2000th of its length (the clock tick and other interrupts, a hypervisor) are not
    shown: a task counts as running.
    """
    task_set = PROBE.own(measured.step.key).task_set
    tasks = {task.name: task for task in task_set.on(cpu)}
    of_cpu = [segment for segment in measured.step.segments if segment.task in tasks]
    if not of_cpu:
        return None
    end_ns = timeline_ns(task_set)
    segments: list[Segment] = []
    last_of: dict[str, Segment] = {}
    for written in of_cpu:
        last = last_of.get(written.task)
        if (
            last is not None
            and last.activation == written.activation
            and written.start_ns - last.end_ns < end_ns // SHOWN
        ):
            last.end_ns = written.end_ns
            continue
        segments.append(Segment(**written.model_dump()))
        last_of[written.task] = segments[-1]
    finish = {(segment.task, segment.activation): segment.end_ns for segment in segments}
    activations = [
        _activation(tasks[name], number, finish_ns) for (name, number), finish_ns in finish.items()
    ]
    activations.sort(key=lambda activation: activation.release_ns)
    return clipped(
        TimelineResult(
            end_ns=end_ns, segments=segments, preemptions=preemptions(segments), activations=activations
        ),
        end_ns,
    )


def _activation(task: Task, number: int, finish_ns: int) -> ActivationResult:
    release_ns = task.offset_ns + (number - 1) * task.period_ns
    deadline_ns = release_ns + task.deadline_ns
    return ActivationResult(
        task=task.name,
        activation=number,
        release_ns=release_ns,
        deadline_ns=deadline_ns,
        finish_ns=finish_ns,
        missed=finish_ns > deadline_ns,
    )


def calculated_timeline(measured: MeasuredSet, cpu: int) -> TimelineResult | None:
    """The calculated schedule of one CPU, as long as the measured one; None if it is too long to simulate."""
    task_set = PROBE.own(measured.step.key).task_set
    try:
        schedule = timeline(task_set.on(cpu), hyperperiods=2)
    except InputError:
        return None
    return clipped(timeline_result(schedule), timeline_ns(task_set))


def clipped(shown: TimelineResult, end_ns: int) -> TimelineResult:
    """The timeline up to `end_ns`."""

    def cut(segments: list[Segment]) -> list[Segment]:
        return [
            segment.model_copy(update={"end_ns": min(segment.end_ns, end_ns)})
            for segment in segments
            if segment.start_ns < end_ns
        ]

    activations = [activation for activation in shown.activations if activation.release_ns < end_ns]
    return TimelineResult(
        end_ns=end_ns,
        segments=cut(shown.segments),
        preemptions=cut(shown.preemptions),
        activations=activations,
    )
