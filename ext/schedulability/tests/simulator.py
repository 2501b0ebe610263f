# SPDX-License-Identifier: MIT
"""A schedule tick by tick, as plainly as it can be written, to check the analysis against; it shares no code
with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from rtgauge_ext.schedulability.task_set import Task, utilisation

PERIODS = (2, 3, 4, 5, 6, 8, 10, 12)


@dataclass
class Job:
    arrival: int
    release: int
    left: int
    finish: int | None = None


@dataclass
class Run:
    """Who ran in each tick, and every task's jobs."""

    running: list[int | None] = field(default_factory=list)
    jobs: list[list[Job]] = field(default_factory=list)


def run(tasks: list[Task], ticks: int, *, blocked: int = 0, critical: bool = True) -> Run:
    """`critical`: every first job comes as late as its jitter lets it, all at tick 0, and the later ones as
    early as they can; else offsets.
    """
    finished = Run(jobs=[[] for _ in tasks])
    for rank, task in enumerate(tasks):
        arrival = -task.jitter_ns if critical else task.offset_ns
        while arrival < ticks:
            finished.jobs[rank].append(Job(arrival, max(0, arrival), task.execution_ns))
            arrival += task.period_ns
    for tick in range(ticks):
        runs = None
        if tick >= blocked:
            for rank in range(len(tasks)):
                waiting = [job for job in finished.jobs[rank] if job.release <= tick and job.left]
                if waiting:
                    waiting[0].left -= 1
                    if not waiting[0].left:
                        waiting[0].finish = tick + 1
                    runs = rank
                    break
        finished.running.append(runs)
    return finished


@st.composite
def task_sets(draw, *, most=4, jitter=False, blocking=False, offsets=False, load=1):
    """Small sets in rank order whose utilisation is at most `load` (None: any)."""
    tasks: list[Task] = []
    for rank in range(draw(st.integers(1, most))):
        period = draw(st.sampled_from(PERIODS))
        tasks.append(
            Task(
                name=f"t{rank}",
                period_ns=period,
                execution_ns=draw(st.integers(1, max(1, period // 2) if most > 1 else period)),
                deadline_ns=draw(st.integers(1, 3 * period)),
                priority=99 - rank,
                jitter_ns=draw(st.integers(0, 2 * period)) if jitter else 0,
                blocking_ns=draw(st.integers(0, 5)) if blocking else 0,
                offset_ns=draw(st.integers(0, 15)) if offsets else 0,
            )
        )
        if load is not None and utilisation(tasks) > load:
            tasks.pop()
            break
    return tasks
