# SPDX-License-Identifier: MIT
"""Finds out whether a virtual machine's host ran during an interrupt, in which the guest has no event."""

from __future__ import annotations

from collections.abc import Sequence

from rtgauge.explain.analysis.explanation import Explanation, Kind, RunTime, us
from rtgauge.explain.trace.moment import Event

HANDLERS = {Kind.IRQ, Kind.INTERRUPT, Kind.SOFTIRQ, Kind.NMI}
LONGEST_QUIET_NS = 100_000
"""A longer time without an event in a handler is unusual. On a virtual machine, the host may have run."""


def run_times(events: Sequence[Event]) -> tuple[RunTime, ...]:
    """Return the stretches for which the kernel counted the time of the task that had the CPU.

    The engine leaves out counts of less than 5 us, and a count may be made on another CPU. Such a count is
    missing here, so that the next stretch seems to have lost as much: the lost time is never too small.
    """
    task: dict[int, int] = {}
    since_ns: dict[int, int] = {}
    runs: list[RunTime] = []
    for event in events:
        if event.name == "sched_switch":
            task[event.cpu], since_ns[event.cpu] = event.number("next_pid"), event.time_ns
        elif event.name == "sched_stat_runtime" and task.get(event.cpu) == event.number("pid"):
            start_ns, since_ns[event.cpu] = since_ns[event.cpu], event.time_ns
            lost_ns = event.time_ns - start_ns - event.number("runtime")
            runs.append(RunTime(event.cpu, start_ns, event.time_ns, max(0, lost_ns)))
    return tuple(runs)


def host_doubts(explanation: Explanation, tolerance_ns: int, *, counts_exclude_steal: bool) -> list[str]:
    """Return the doubt whether a virtual machine's host ran during an interrupt; empty if there is none, or
    if it ran for at most `tolerance_ns`.

    `counts_exclude_steal`: the time that the kernel counts for a task excludes the time that the host took.
    Then the host took at most the time of the stretch that was not counted.
    """
    known = explanation.run_times if counts_exclude_steal else ()
    open_ns = 0
    bounded: dict[RunTime, int] = {}
    for part in explanation.parts:
        for start, end, cpu in part.spans if part.culprit.kind in HANDLERS else ():
            if end - start <= LONGEST_QUIET_NS:
                continue
            around = next(
                (run for run in known if run.cpu == cpu and run.start_ns <= start and end <= run.end_ns), None
            )
            if around is None:
                open_ns += end - start
            else:
                bounded[around] = bounded.get(around, 0) + end - start
    open_ns += sum(min(run.lost_ns, quiet_ns) for run, quiet_ns in bounded.items())
    if open_ns <= tolerance_ns:
        return []
    return [
        f"{us(open_ns)} us in interrupts are unexplained; the host of this virtual machine may have run then"
    ]
