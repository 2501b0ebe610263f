# SPDX-License-Identifier: MIT
"""What only a step of the probe taskset has: counts of each task, and who ran when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.model import RunSegment, SeriesSummary, Step, TaskCounts
from rtgauge.record.windows import merge

if TYPE_CHECKING:
    import polars as pl

    from rtgauge.record.stream import StreamResult


def task_counts(series: list[SeriesSummary], windows: pl.DataFrame) -> list[TaskCounts]:
    """Activations, deadline misses and preemptions of each task; nothing for a step of another probe."""
    by_task: dict[str, dict[str, SeriesSummary]] = {}
    for one in series:
        if "task" in one.labels:
            by_task.setdefault(str(one.labels["task"]), {})[one.metric] = one
    found: list[TaskCounts] = []
    for task, metrics in by_task.items():
        late, preemptions = metrics.get("tardiness"), metrics.get("preemptions")
        if late is None or late.series is None:
            continue
        cpu = late.labels.get("cpu")
        found.append(
            TaskCounts(
                task=task,
                cpu=cpu if isinstance(cpu, int) else None,
                activations=late.count,
                deadline_misses=late.count - _on_time(windows, late.series),
                preemptions=None if preemptions is None or preemptions.mean_ns is None else round(preemptions.mean_ns * preemptions.count),
            )
        )
    return found


def _on_time(windows: pl.DataFrame, tardiness: int) -> int:
    """Activations with a tardiness of 0, which has a bin of its own."""
    merged = merge(windows, tardiness)
    return sum(int(count) for at, count in zip(merged.bins, merged.counts, strict=True) if at == 0)


def run_segments(result: StreamResult) -> list[RunSegment]:
    """The engine's segments with the names of their tasks, from time 0 of the set, in order of time."""
    names = {line.series: str(line.labels.get("task", line.series)) for line in result.series}
    found: list[RunSegment] = []
    for one in result.segments:
        zero = result.start_ns.get(one.series)
        if one.series in names and zero is not None:
            found.append(RunSegment(task=names[one.series], activation=one.activation, start_ns=one.start_ns - zero, end_ns=one.end_ns - zero))
    return sorted(found, key=lambda one: one.start_ns)


def highest(step: Step) -> list[SeriesSummary]:
    """The series whose latencies nothing but the kernel can hold up: of a task set, those of the highest priority on each CPU; else all."""
    priorities = {task["name"]: (task["cpu"], task["priority"]) for task in step.key.parameters.get("tasks", [])} if step.tasks else {}
    if not priorities:
        return step.series
    top = {cpu: max(priority for other, priority in priorities.values() if other == cpu) for cpu, _ in priorities.values()}
    mine = {name for name, (cpu, priority) in priorities.items() if priority == top[cpu]}
    return [one for one in step.series if one.metric == "latency" and one.labels.get("task") in mine]
