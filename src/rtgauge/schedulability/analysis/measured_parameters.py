# SPDX-License-Identifier: MIT
"""Task parameters from a record: release jitter and execution time are the largest that were measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.record.model import Severity
from rtgauge.units import format_cpu_list, format_time

if TYPE_CHECKING:
    from rtgauge.record.model import SeriesSummary
    from rtgauge.record.reader import Record
    from rtgauge.schedulability.model.task import TaskSet


def _largest_ns(series: SeriesSummary) -> int | None:
    """With what missed activations would have had; a timer that fires early is no negative jitter."""
    values = [value for value in (series.max_ns, series.filled.max_ns) if value is not None]
    return max(0, *values) if values else None


def jitter_from_record(task_set: TaskSet, record: Record) -> tuple[TaskSet, list[str]]:
    """Give every task whose jitter the file does not state the largest latency that any step measured on its
    CPU.

    Steps with an invalid mark are left out. Returns the set and notes for people. Raises InputError if a CPU
    was not measured.
    """
    largest: dict[int, tuple[int, str]] = {}
    notes: list[str] = []
    for step in record.steps:
        if step.worst is Severity.INVALID:
            notes.append(f"jitter: step {step.id} is marked invalid and was left out")
            continue
        if step.worst is Severity.DOUBTFUL:
            notes.append(f"jitter: step {step.id} is marked doubtful")
        for series in step.series:
            cpu, largest_ns = series.labels.get("cpu"), _largest_ns(series)
            if (
                series.metric != "latency"
                or series.unit != "ns"
                or not isinstance(cpu, int)
                or largest_ns is None
            ):
                continue
            if "max_ns" in series.lower_bounds or "max_ns" in series.filled.lower_bounds:
                notes.append(f"jitter: the largest latency of step {step.id} on CPU {cpu} is a lower bound")
            if cpu not in largest or largest_ns > largest[cpu][0]:
                largest[cpu] = (largest_ns, step.id)
    cpus = {task.cpu for task in task_set.tasks if task.name not in task_set.jitter_given}
    missing = sorted(cpus - set(largest))
    if missing:
        measured = f"CPU {format_cpu_list(list(largest))}" if largest else "no CPU"
        raise InputError(
            f"{record.path} has latencies of {measured}, not of CPU {format_cpu_list(missing)}: "
            "measure it too, or give its tasks a jitter"
        )
    notes += [
        f"jitter on CPU {cpu}: {format_time(largest[cpu][0])}, the largest latency ({largest[cpu][1]})"
        for cpu in sorted(cpus)
    ]
    tasks = tuple(
        task if task.name in task_set.jitter_given else replace(task, jitter_ns=largest[task.cpu][0])
        for task in task_set.tasks
    )
    return replace(task_set, tasks=tasks), notes


def execution_from_record(task_set: TaskSet, record: Record) -> tuple[TaskSet, list[str]]:
    """Give every task the largest execution time that any step of the record measured for the task of its
    name.

    Steps with an invalid mark are left out. Returns the set and notes for people. Raises InputError if a task
    was not measured.
    """
    largest: dict[str, tuple[int, str]] = {}
    notes: list[str] = []
    for step in record.steps:
        executions = [
            series for series in step.series if series.metric == "execution" and series.max_ns is not None
        ]
        if not executions:
            continue
        if step.worst is Severity.INVALID:
            notes.append(f"execution: step {step.id} is marked invalid and was left out")
            continue
        for series in executions:
            name, largest_ns = str(series.labels.get("task")), series.max_ns or 0
            if name not in largest or largest_ns > largest[name][0]:
                largest[name] = (largest_ns, step.id)
    missing = [task.name for task in task_set.tasks if task.name not in largest]
    if missing:
        measured = ", ".join(largest) or "no task"
        raise InputError(
            f"{record.path} has execution times of {measured}, not of '{missing[0]}': measure it "
            "with rtgauge probe taskset in a plan"
        )
    notes += [
        f"execution of {task.name}: {largest[task.name][0]} ns, the largest measured "
        f"({largest[task.name][1]})"
        for task in task_set.tasks
    ]
    tasks = tuple(replace(task, execution_ns=max(1, largest[task.name][0])) for task in task_set.tasks)
    return replace(task_set, tasks=tasks), notes
