# SPDX-License-Identifier: MIT
"""Release jitter as a record measured it: the largest latency, not what periods differ by."""

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
    """With the latencies that missed activations would have had; a timer that fires early is not a negative jitter."""
    values = [value for value in (series.max_ns, series.filled.max_ns) if value is not None]
    return max(0, *values) if values else None


def jitter_from_record(task_set: TaskSet, record: Record) -> tuple[TaskSet, list[str]]:
    """Give every task whose jitter the file does not state the largest latency that any step measured on its CPU.

    Steps with an invalid mark are left out. Returns the set and notes for people. Raises InputError where a CPU was not measured.
    """
    found: dict[int, tuple[int, str]] = {}
    notes: list[str] = []
    for step in record.steps:
        if step.worst is Severity.INVALID:
            notes.append(f"jitter: step {step.id} is marked invalid and was left out")
            continue
        if step.worst is Severity.DOUBTFUL:
            notes.append(f"jitter: step {step.id} is marked doubtful")
        for series in step.series:
            cpu, largest_ns = series.labels.get("cpu"), _largest_ns(series)
            if series.metric != "latency" or series.unit != "ns" or not isinstance(cpu, int) or largest_ns is None:
                continue
            if "max_ns" in series.lower_bounds or "max_ns" in series.filled.lower_bounds:
                notes.append(f"jitter: the largest latency of step {step.id} on CPU {cpu} is a lower bound")
            if cpu not in found or largest_ns > found[cpu][0]:
                found[cpu] = (largest_ns, step.id)
    wanted = {task.cpu for task in task_set.tasks if task.name not in task_set.jitter_given}
    missing = sorted(wanted - set(found))
    if missing:
        there = f"CPU {format_cpu_list(list(found))}" if found else "no CPU"
        raise InputError(f"{record.path} has latencies of {there}, not of CPU {format_cpu_list(missing)}: measure it too, or give its tasks a jitter")
    notes += [f"jitter on CPU {cpu}: {format_time(found[cpu][0])}, the largest latency ({found[cpu][1]})" for cpu in sorted(wanted)]
    tasks = tuple(task if task.name in task_set.jitter_given else replace(task, jitter_ns=found[task.cpu][0]) for task in task_set.tasks)
    return replace(task_set, tasks=tasks), notes
