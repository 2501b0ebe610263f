# SPDX-License-Identifier: MIT
"""Compares a measured task set with its analysis, and takes jitter or execution times from a record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from rtgauge.errors import InputError
from rtgauge.record.model import SeriesSummary, Severity, Step, TaskCounts
from rtgauge.record.reader import Record
from rtgauge.units import format_time, name_cpus
from rtgauge_ext.schedulability.analysis.analyse import SetResult, TaskResult, analyse
from rtgauge_ext.schedulability.analysis.timeline import (
    Activation,
    Segment,
    Timeline,
    preemptions,
    timeline,
)
from rtgauge_ext.schedulability.task_set import Task, TaskSet
from rtgauge_ext.schedulability.task_set_probe import PROBE, timeline_ns


def _largest_ns(series: SeriesSummary) -> int | None:
    """Return the largest latency (ns), including missed activations; at least 0, as jitter is never
    negative.
    """
    values = [value for value in (series.max_ns, series.filled.max_ns) if value is not None]
    return max(0, *values) if values else None


class FromRecord(NamedTuple):
    """A task set with numbers from a record, and notes for people."""

    task_set: TaskSet
    notes: list[str]


def jitter_from_record(task_set: TaskSet, record: Record) -> FromRecord:
    """Give every task without a jitter in the file the largest latency that any step measured on its CPU.

    Steps with an invalid mark are left out. Raises InputError if a CPU was not measured.
    """
    largest: dict[int, tuple[int, str]] = {}
    notes: list[str] = []
    for step in record.steps:
        if step.worst is Severity.INVALID:
            notes.append(f"jitter: step {step.id} was left out, because it is marked invalid")
            continue
        if step.worst is Severity.DOUBTFUL:
            notes.append(f"jitter: step {step.id} is marked doubtful")
        for series in step.series:
            cpu, largest_ns = series.labels.get("cpu"), _largest_ns(series)
            is_latency = series.metric == "latency" and series.unit == "ns"
            if not is_latency or not isinstance(cpu, int) or largest_ns is None:
                continue
            if "max_ns" in series.lower_bounds or "max_ns" in series.filled.lower_bounds:
                notes.append(f"jitter: the true largest latency of step {step.id} on CPU {cpu} may be larger")
            if cpu not in largest or largest_ns > largest[cpu][0]:
                largest[cpu] = (largest_ns, step.id)
    cpus = {task.cpu for task in task_set.tasks if task.name not in task_set.jitter_given}
    missing = sorted(cpus - set(largest))
    if missing:
        problem = "does not contain valid latencies"
        if largest:
            problem = f"has latencies measured on {name_cpus(list(largest))}, but not on {name_cpus(missing)}"
        there = "this CPU" if len(missing) == 1 else "these CPUs"
        raise InputError(f"{record.path} {problem}; measure {there}, too, or give the tasks there a jitter")
    notes += [
        f"jitter on CPU {cpu}: {format_time(largest[cpu][0])}, the largest latency that step "
        f"{largest[cpu][1]} measured"
        for cpu in sorted(cpus)
    ]
    tasks = tuple(
        task if task.name in task_set.jitter_given else replace(task, jitter_ns=largest[task.cpu][0])
        for task in task_set.tasks
    )
    return FromRecord(replace(task_set, tasks=tasks), notes)


def execution_from_record(task_set: TaskSet, record: Record) -> FromRecord:
    """Give every task the largest execution time that any step measured for a task of the same name.

    Steps with an invalid mark are left out. Raises InputError if a task was not measured.
    """
    largest: dict[str, tuple[int, str]] = {}
    notes: list[str] = []
    for step in record.steps:
        measured = (series for series in step.series if series.max_ns is not None)
        executions = [series for series in measured if series.metric == "execution"]
        if not executions:
            continue
        if step.worst is Severity.INVALID:
            notes.append(f"execution: step {step.id} was left out, because it is marked invalid")
            continue
        for series in executions:
            name, largest_ns = str(series.labels.get("task")), series.max_ns or 0
            if name not in largest or largest_ns > largest[name][0]:
                largest[name] = (largest_ns, step.id)
    missing = [task.name for task in task_set.tasks if task.name not in largest]
    if missing:
        problem = "does not contain any execution times"
        if largest:
            problem = f"has execution times of {', '.join(largest)}, but not of '{missing[0]}'"
        elif notes:
            problem = "has execution times only in steps that are marked invalid"
        raise InputError(f"{record.path} {problem}; measure the task set with the probe taskset in a plan")
    for task in task_set.tasks:
        largest_ns, step_id = largest[task.name]
        notes.append(f"execution of {task.name}: {largest_ns} ns, the largest that step {step_id} measured")
    tasks = tuple(replace(task, execution_ns=max(1, largest[task.name][0])) for task in task_set.tasks)
    return FromRecord(replace(task_set, tasks=tasks), notes)


SHOWN = 2_000
"""Gaps shorter than a timeline's length divided by this are not shown."""


@dataclass(frozen=True)
class MeasuredTask:
    """One task of a step: its computed response, its counts, and its series by metric."""

    calculated: TaskResult
    counts: TaskCounts
    series: dict[str, SeriesSummary]


@dataclass(frozen=True)
class MeasuredSet:
    """A step of the probe taskset: the analysis of its set, and its tasks in the set's order."""

    step: Step
    result: SetResult
    tasks: list[MeasuredTask]


def measured_set(step: Step) -> MeasuredSet:
    """Return the measured set of a step of the probe taskset.

    Raises RecordError if its parameters do not describe a task set.
    """
    result = analyse(PROBE.own(step.key).task_set)
    calculated = {task.name: task for cpu in result.cpus for task in cpu.tasks}
    tasks: list[MeasuredTask] = []
    for counts in step.tasks:
        if counts.task in calculated:
            own = [series for series in step.series if series.labels.get("task") == counts.task]
            by_metric = {series.metric: series for series in own}
            tasks.append(MeasuredTask(calculated[counts.task], counts, by_metric))
    return MeasuredSet(step, result, tasks)


def measured_timeline(measured: MeasuredSet, cpu: int) -> Timeline | None:
    """Return the measured timeline of one CPU, `timeline_ns` long; None if nothing was measured on the CPU.

    Gaps shorter than a 2000th of the timeline are not shown, and the task counts as running. Such gaps come
    from the tick, other interrupts or a hypervisor.
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
        continues = last is not None and last.activation == written.activation
        if last is not None and continues and written.start_ns - last.end_ns < end_ns // SHOWN:
            last.end_ns = written.end_ns
            continue
        segments.append(Segment(**written.model_dump()))
        last_of[written.task] = segments[-1]
    finish = {(segment.task, segment.activation): segment.end_ns for segment in segments}
    activations = [_activation(tasks[name], number, ns) for (name, number), ns in finish.items()]
    activations.sort(key=lambda activation: activation.release_ns)
    gaps = preemptions(segments)
    shown = Timeline(end_ns=end_ns, segments=segments, preemptions=gaps, activations=activations)
    return clipped(shown, end_ns)


def _activation(task: Task, number: int, finish_ns: int) -> Activation:
    release_ns = task.offset_ns + (number - 1) * task.period_ns
    deadline_ns = release_ns + task.deadline_ns
    return Activation(
        task=task.name,
        activation=number,
        release_ns=release_ns,
        deadline_ns=deadline_ns,
        finish_ns=finish_ns,
        missed=finish_ns > deadline_ns,
    )


def calculated_timeline(measured: MeasuredSet, cpu: int) -> Timeline | None:
    """Return the calculated schedule of one CPU, as long as the measured one; None if too long to
    simulate.
    """
    task_set = PROBE.own(measured.step.key).task_set
    try:
        schedule = timeline(task_set.on(cpu), hyperperiods=2)
    except InputError:
        return None
    return clipped(schedule, timeline_ns(task_set))


def clipped(shown: Timeline, end_ns: int) -> Timeline:
    """Return the timeline, cut at `end_ns`."""

    def cut(segments: list[Segment]) -> list[Segment]:
        begun = (segment for segment in segments if segment.start_ns < end_ns)
        return [segment.model_copy(update={"end_ns": min(segment.end_ns, end_ns)}) for segment in begun]

    activations = [activation for activation in shown.activations if activation.release_ns < end_ns]
    return Timeline(
        end_ns=end_ns,
        segments=cut(shown.segments),
        preemptions=cut(shown.preemptions),
        activations=activations,
    )
