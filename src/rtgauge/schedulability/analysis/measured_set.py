# SPDX-License-Identifier: MIT
"""A measured task set beside the calculated one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.probe.taskset import task_set_of, timeline_ns
from rtgauge.record.model import Severity
from rtgauge.schedulability.analysis.analyse import analyse, timeline_result
from rtgauge.schedulability.analysis.analysis_document import ActivationResult, SegmentResult, TimelineResult
from rtgauge.schedulability.analysis.timeline import Segment, preemptions, timeline

if TYPE_CHECKING:
    from rtgauge.record.model import SeriesSummary, Step, TaskCounts
    from rtgauge.record.reader import Record
    from rtgauge.schedulability.analysis.analysis_document import SetResult, TaskResult
    from rtgauge.schedulability.model.task import Task, TaskSet

SHOWN = 2_000


@dataclass(frozen=True)
class MeasuredTask:
    """One task of a step: what was calculated of it, what was counted, and its series by metric."""

    calculated: TaskResult
    counts: TaskCounts
    series: dict[str, SeriesSummary]


@dataclass(frozen=True)
class MeasuredSet:
    """One step of the probe taskset: the calculation of its set (as it was written) and its tasks, in the order of the set."""

    step: Step
    result: SetResult
    tasks: list[MeasuredTask]


def measured_set(step: Step) -> MeasuredSet:
    """What a step of the probe taskset measured, beside what the analysis of its set says."""
    result = analyse(task_set_of(step.key.parameters))
    calculated = {task.name: task for cpu in result.cpus for task in cpu.tasks}
    found = [
        MeasuredTask(calculated[counts.task], counts, {one.metric: one for one in step.series if one.labels.get("task") == counts.task})
        for counts in step.tasks
        if counts.task in calculated
    ]
    return MeasuredSet(step, result, found)


def measured_timeline(measured: MeasuredSet, cpu: int) -> TimelineResult | None:
    """The first hyperperiods of one CPU as they were measured; None where none were.

    Gaps of less than a 2000th of its length (the clock tick and other interrupts, a hypervisor) are not shown: a task counts as running.
    """
    tasks = {task.name: task for task in task_set_of(measured.step.key.parameters).on(cpu)}
    mine = [one for one in measured.step.segments if one.task in tasks]
    if not mine:
        return None
    end_ns = timeline_ns(task_set_of(measured.step.key.parameters))
    segments: list[SegmentResult] = []
    last: dict[str, int] = {}  # task -> where its last segment is
    for one in mine:
        at = last.get(one.task)
        if at is not None and segments[at].activation == one.activation and one.start_ns - segments[at].end_ns < end_ns // SHOWN:
            segments[at] = segments[at].model_copy(update={"end_ns": one.end_ns})
            continue
        last[one.task] = len(segments)
        segments.append(SegmentResult(**one.model_dump()))
    finish = {(one.task, one.activation): one.end_ns for one in segments}
    activations = [_activation(tasks[name], number, finish_ns) for (name, number), finish_ns in finish.items()]
    return clipped(
        TimelineResult(end_ns=end_ns, segments=segments, preemptions=_gaps(segments), activations=sorted(activations, key=lambda one: one.release_ns)), end_ns
    )


def _activation(task: Task, number: int, finish_ns: int) -> ActivationResult:
    release_ns = task.offset_ns + (number - 1) * task.period_ns
    deadline_ns = release_ns + task.deadline_ns
    return ActivationResult(
        task=task.name, activation=number, release_ns=release_ns, deadline_ns=deadline_ns, finish_ns=finish_ns, missed=finish_ns > deadline_ns
    )


def _gaps(segments: list[SegmentResult]) -> list[SegmentResult]:
    found = preemptions([Segment(**one.model_dump()) for one in segments])
    return [SegmentResult(**vars(one)) for one in found]


def calculated_timeline(measured: MeasuredSet, cpu: int) -> TimelineResult | None:
    """The calculated schedule of one CPU, as long as the measured one; None where it is too long to unfold."""
    task_set = task_set_of(measured.step.key.parameters)
    try:
        found = timeline(task_set.on(cpu), hyperperiods=2)
    except InputError:
        return None
    return clipped(timeline_result(found), timeline_ns(task_set))


def clipped(shown: TimelineResult, end_ns: int) -> TimelineResult:
    """What lies before `end_ns`."""

    def cut(segments: list[SegmentResult]) -> list[SegmentResult]:
        return [one.model_copy(update={"end_ns": min(one.end_ns, end_ns)}) for one in segments if one.start_ns < end_ns]

    activations = [one for one in shown.activations if one.release_ns < end_ns]
    return TimelineResult(end_ns=end_ns, segments=cut(shown.segments), preemptions=cut(shown.preemptions), activations=activations)


def execution_from_record(task_set: TaskSet, record: Record) -> tuple[TaskSet, list[str]]:
    """Give every task the largest execution time that any step of the record measured for the task of its name.

    Steps with an invalid mark are left out. Returns the set and notes for people. Raises InputError where a task was not measured or wants
    more than its deadline.
    """
    found: dict[str, tuple[int, str]] = {}
    notes: list[str] = []
    for step in record.steps:
        series = [one for one in step.series if one.metric == "execution" and one.max_ns is not None]
        if not series:
            continue
        if step.worst is Severity.INVALID:
            notes.append(f"execution: step {step.id} is marked invalid and was left out")
            continue
        for one in series:
            name, largest_ns = str(one.labels.get("task")), one.max_ns or 0
            if name not in found or largest_ns > found[name][0]:
                found[name] = (largest_ns, step.id)
    missing = [task.name for task in task_set.tasks if task.name not in found]
    if missing:
        there = ", ".join(found) or "no task"
        raise InputError(f"{record.path} has execution times of {there}, not of '{missing[0]}': measure it with rtgauge probe taskset in a plan")
    notes += [f"execution of {task.name}: {found[task.name][0]} ns, the largest measured ({found[task.name][1]})" for task in task_set.tasks]
    tasks = tuple(replace(task, execution_ns=max(1, found[task.name][0])) for task in task_set.tasks)
    return replace(task_set, tasks=tasks), notes
