# SPDX-License-Identifier: MIT
"""Simulates the schedule of one CPU from time 0 over one or more hyperperiods."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Sequence

from pydantic import BaseModel

from rtgauge.errors import InputError
from rtgauge.units import MAX_NS
from rtgauge_ext.schedulability.task_set import Task

MAX_ACTIVATIONS = 10_000


class Segment(BaseModel):
    """An interval in which one activation (numbered from 1) runs without a break, or is preempted."""

    task: str
    activation: int
    start_ns: int
    end_ns: int


class Activation(BaseModel):
    """One activation. `finish_ns` is None if it has not finished by the end of the timeline."""

    task: str
    activation: int
    release_ns: int
    deadline_ns: int
    finish_ns: int | None = None
    missed: bool = False


class Timeline(BaseModel):
    """The schedule from 0 to `end_ns`, without jitter and blocking."""

    end_ns: int
    segments: list[Segment]
    preemptions: list[Segment]
    activations: list[Activation]


def hyperperiod_ns(tasks: Sequence[Task]) -> int:
    """Return the least common multiple of the periods."""
    return math.lcm(*(task.period_ns for task in tasks))


def horizon_ns(ordered: Sequence[Task], hyperperiods: int = 1) -> int:
    """Return the last first release plus `hyperperiods` hyperperiods (ns). Raises InputError if too long."""
    end_ns = max(task.offset_ns for task in ordered) + hyperperiods * hyperperiod_ns(ordered)
    where = f"the hyperperiod of CPU {ordered[0].cpu}"
    if end_ns > MAX_NS:
        raise InputError(
            f"{where} is longer than 292 years, so it has no timeline (the analysis does not need one)"
        )
    count = sum(-(-end_ns // task.period_ns) for task in ordered)
    if count > MAX_ACTIVATIONS:
        raise InputError(
            f"{where} has {count} activations, more than {MAX_ACTIVATIONS}, so it has no timeline (the "
            f"analysis does not need one)"
        )
    return end_ns


def timeline(ordered: Sequence[Task], hyperperiods: int = 1) -> Timeline:
    """Run the tasks of one CPU (the highest priority first) preemptively from their offsets, each for its
    whole execution time.

    Jitter and blocking are left out, because they are bounds. Late activations continue; a task's activations
    run in order. Raises InputError as `horizon_ns` does.
    """
    end_ns = horizon_ns(ordered, hyperperiods)
    releases = [(task.offset_ns, rank) for rank, task in enumerate(ordered) if task.offset_ns < end_ns]
    heapq.heapify(releases)
    waiting: list[deque[Activation]] = [deque() for _ in ordered]
    counts = [0] * len(ordered)
    left_ns = [task.execution_ns for task in ordered]  # of each task's first waiting activation
    ready: list[int] = []  # ranks that have waiting activations; a rank may repeat
    activations: list[Activation] = []
    segments: list[Segment] = []
    now_ns = 0
    while now_ns < end_ns:
        while releases and releases[0][0] <= now_ns:
            release_ns, rank = heapq.heappop(releases)
            task = ordered[rank]
            counts[rank] += 1
            activation = Activation(
                task=task.name,
                activation=counts[rank],
                release_ns=release_ns,
                deadline_ns=release_ns + task.deadline_ns,
            )
            activations.append(activation)
            waiting[rank].append(activation)
            heapq.heappush(ready, rank)
            if release_ns + task.period_ns < end_ns:
                heapq.heappush(releases, (release_ns + task.period_ns, rank))
        while ready and not waiting[ready[0]]:
            heapq.heappop(ready)
        next_ns = releases[0][0] if releases else end_ns
        if not ready:
            now_ns = next_ns
            continue
        rank = ready[0]
        running = waiting[rank][0]
        until_ns = min(next_ns, end_ns, now_ns + left_ns[rank])
        _extend(segments, running, now_ns, until_ns)
        left_ns[rank] -= until_ns - now_ns
        now_ns = until_ns
        if left_ns[rank] == 0:
            running.finish_ns = now_ns
            waiting[rank].popleft()
            left_ns[rank] = ordered[rank].execution_ns
    for activation in activations:
        last_ns = end_ns if activation.finish_ns is None else activation.finish_ns
        activation.missed = activation.deadline_ns < last_ns
    gaps = preemptions(segments)
    return Timeline(end_ns=end_ns, segments=segments, preemptions=gaps, activations=activations)


def _extend(segments: list[Segment], running: Activation, start_ns: int, end_ns: int) -> None:
    """Add an interval. Join it to the last segment if both belong to the same activation."""
    last = segments[-1] if segments else None
    if last is not None and (last.task, last.activation, last.end_ns) == (
        running.task,
        running.activation,
        start_ns,
    ):
        last.end_ns = end_ns
    else:
        segments.append(
            Segment(task=running.task, activation=running.activation, start_ns=start_ns, end_ns=end_ns)
        )


def preemptions(segments: Sequence[Segment]) -> list[Segment]:
    """Return the gaps between each activation's segments, in which it is preempted."""
    last_end_ns: dict[tuple[str, int], int] = {}
    gaps: list[Segment] = []
    for segment in segments:
        activation = (segment.task, segment.activation)
        if activation in last_end_ns:
            gaps.append(
                segment.model_copy(update={"start_ns": last_end_ns[activation], "end_ns": segment.start_ns})
            )
        last_end_ns[activation] = segment.end_ns
    return gaps
