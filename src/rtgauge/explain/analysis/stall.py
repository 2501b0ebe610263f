# SPDX-License-Identifier: MIT
"""Intervals in which no software ran on several CPUs: firmware, the bus or the hypervisor had the machine.

A CPU that is silent proves nothing: a program that computes causes no events. A timer that was due and came
late does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.explain.trace.contexts import CpuTimeline
    from rtgauge.explain.trace.events import EventTable

LEAST_STALL_NS = 50_000
"""Shorter silence on several CPUs may be chance: in a virtual machine each timer comes 10 to 30 us late."""
LONGEST_IDLE_EXIT_NS = 1_000_000
"""No idle state of a processor takes longer to leave: ACPI's deepest are a few hundred us."""

LONGEST_TICK_NS = 10_000_000
"""A busy CPU has at least one timer interrupt in this time: the tick at CONFIG_HZ=100, the lowest rate.

CPUs in nohz_full are the exception.
"""


@dataclass(frozen=True)
class LateTimers:
    """CPU -> (due, came) of each of its timers whose start and end the trace shows, by the time they came."""

    of_cpu: Mapping[int, list[tuple[int, int]]]

    @classmethod
    def of(cls, table: EventTable) -> LateTimers:
        """All timers of high resolution of a table."""
        due: dict[int, int] = {}
        came: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for event in table.events:
            timer = event.number("hrtimer")
            match event.name:
                case "hrtimer_start":
                    due[timer] = event.number("expires")
                case "hrtimer_cancel":
                    due.pop(timer, None)
                case "hrtimer_expire_entry" if timer in due:
                    came[event.cpu].append((due.pop(timer), event.time_ns))
                case _:
                    pass
        return cls(came)

    def waited(self, cpu: int, start_ns: int, end_ns: int) -> int:
        """The longest part of an interval, in ns, for which a timer of the CPU was due and did not come."""
        return max(
            (min(came, end_ns) - max(due, start_ns) for due, came in self.of_cpu.get(cpu, [])), default=0
        )


@dataclass(frozen=True)
class Stall:
    """An interval in which no software ran, and the CPUs of which that is known."""

    start_ns: int
    end_ns: int
    cpus: frozenset[int]


def stood_still(
    lines: Mapping[int, CpuTimeline], timers: LateTimers, cpu: int, start_ns: int, end_ns: int, *, due: bool
) -> Stall | None:
    """The stall in a silent interval of `cpu`, or None. `due`: its timer was due all the time.

    It is the longest interval without an event on any CPU, if in most of it another CPU's timer was due as
    well, or another CPU that was not idle missed its
    tick; not if all these CPUs were idle and it is no longer than leaving an idle state can take.
    """
    times = sorted(
        {start_ns, end_ns, *(time for line in lines.values() for time in _between(line, start_ns, end_ns))}
    )
    start, end = max(pairwise(times), key=lambda pair: pair[1] - pair[0])
    length = end - start
    if length < LEAST_STALL_NS:
        return None
    witnesses = {other for other in lines if other != cpu and timers.waited(other, start, end) > length // 2}
    if due and length > LONGEST_TICK_NS:
        witnesses |= {
            other
            for other in lines
            if other != cpu and lines[other].times_ns and not _idle(lines[other], start)
        }
    idle = all(_idle(lines[known], start) for known in (cpu, *witnesses) if known in lines)
    if idle:
        return (
            Stall(start, end, frozenset({cpu, *witnesses})) if due and length > LONGEST_IDLE_EXIT_NS else None
        )
    return Stall(start, end, frozenset({cpu, *witnesses})) if witnesses else None


def _between(line: CpuTimeline, start_ns: int, end_ns: int) -> list[int]:
    return line.times_ns[bisect_right(line.times_ns, start_ns) : bisect_left(line.times_ns, end_ns)]


def _idle(line: CpuTimeline, time_ns: int) -> bool:
    context = line.at(time_ns)
    return context.task is not None and context.task.idle and not context.frames
