# SPDX-License-Identifier: MIT
"""Counts each task's activations, missed deadlines and preemptions, and lists the times at which it ran."""

from __future__ import annotations

from rtgauge.record.merged_windows import merge
from rtgauge.record.model import RunSegment, SeriesSummary, TaskCounts
from rtgauge.record.stream import StreamResult
from rtgauge.record.windows import Windows


def task_counts(series: list[SeriesSummary], windows: Windows) -> list[TaskCounts]:
    """Return each task's activations, deadline misses and preemptions; empty for a step of another probe."""
    by_task: dict[str, dict[str, SeriesSummary]] = {}
    for summary in series:
        if "task" in summary.labels:
            by_task.setdefault(str(summary.labels["task"]), {})[summary.metric] = summary
    tasks: list[TaskCounts] = []
    for task, metrics in by_task.items():
        late, preemptions = metrics.get("tardiness"), metrics.get("preemptions")
        if late is None or late.series is None:
            continue
        cpu = late.labels.get("cpu")
        tasks.append(
            TaskCounts(
                task=task,
                cpu=cpu if isinstance(cpu, int) else None,
                activations=late.count,
                deadline_misses=late.count - _on_time(windows, late.series),
                preemptions=None
                if preemptions is None or preemptions.mean_ns is None
                else round(preemptions.mean_ns * preemptions.count),
            )
        )
    return tasks


def _on_time(windows: Windows, tardiness: int) -> int:
    """Return how many activations had a tardiness of 0, which has a bin of its own."""
    merged = merge(windows, tardiness)
    return sum(int(count) for at, count in zip(merged.bins, merged.counts, strict=True) if at == 0)


def run_segments(result: StreamResult) -> list[RunSegment]:
    """Return the engine's segments in time order, with task names and with times since the set's release."""
    names = {line.series: str(line.labels.get("task", line.series)) for line in result.series}
    segments: list[RunSegment] = []
    for line in result.segments:
        zero = result.start_ns.get(line.series)
        if line.series in names and zero is not None:
            segments.append(
                RunSegment(
                    task=names[line.series],
                    activation=line.activation,
                    start_ns=line.start_ns - zero,
                    end_ns=line.end_ns - zero,
                )
            )
    return sorted(segments, key=lambda segment: segment.start_ns)
