# SPDX-License-Identifier: MIT
"""Event tables and moments drawn by hand.

Times are in us after the release, the measured thread is 100 with real-time priority 80.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rtgauge.explain.trace.formats import Value
from rtgauge.explain.trace.moment import Event, EventTable, Lost, Moment

RELEASE = 1_000_000_000
THREAD = 100
IN_HARD_INTERRUPT = 8
"""Of an event's flags (TRACE_FLAG_HARDIRQ)."""
MINE = 19
"""Priority of the measured thread as the kernel counts: real-time 80."""


@dataclass
class Story:
    """What happened, in any order; `moment` puts it in the order of time."""

    events: list[Event] = field(default_factory=list[Event])
    lost: list[Lost] = field(default_factory=list[Lost])
    current: dict[int, int] = field(default_factory=dict[int, int])
    """CPU -> the task that its next events are in."""

    def at(self, time_us: float, cpu: int, name: str, /, **values: Value) -> Story:
        """Add an event."""
        pid = self.current.get(cpu, 0)
        self.events.append(Event(RELEASE + round(time_us * 1000), cpu, name, pid, 0, 0, values))
        return self

    def switch(
        self,
        time_us: float,
        cpu: int,
        before: tuple[str, int, int],
        after: tuple[str, int, int],
        state: int = 0,
    ) -> Story:
        """A switch between two tasks of (name, pid, priority); `state` of the one before, 0: it would run
        on.
        """
        self.at(
            time_us,
            cpu,
            "sched_switch",
            prev_comm=before[0],
            prev_pid=before[1],
            prev_prio=before[2],
            prev_state=state,
            next_comm=after[0],
            next_pid=after[1],
            next_prio=after[2],
        )
        self.current[cpu] = after[1]
        return self

    def timer(self, time_us: float, cpu: int, *, wakes: int = THREAD, target: int | None = None) -> Story:
        """A timer's interrupt of 4 us that wakes a thread after 2 us."""
        where = cpu if target is None else target
        self.at(time_us, cpu, "local_timer_entry", vector=236)
        self.at(time_us + 1, cpu, "hrtimer_expire_entry", hrtimer=7, function=1, now=0)
        self.at(time_us + 2, cpu, "sched_waking", comm="measured", pid=wakes, prio=MINE, target_cpu=where)
        if where == cpu:
            self.at(time_us + 3, cpu, "sched_wakeup", comm="measured", pid=wakes, prio=MINE, target_cpu=where)
        self.at(time_us + 3.5, cpu, "hrtimer_expire_exit", hrtimer=7)
        within = slice(-4 if where == cpu else -3, None)
        self.events[within] = [event._replace(flags=IN_HARD_INTERRUPT) for event in self.events[within]]
        return self.at(time_us + 4, cpu, "local_timer_exit", vector=236)

    def moment(self, latency_us: float, cpu: int = 1, cpus: int = 2) -> Moment:
        """The moment of a latency that was measured on `cpu`."""
        latency = round(latency_us * 1000)
        table = EventTable(
            sorted(self.events, key=lambda event: event.time_ns), tuple(range(cpus)), self.lost
        )
        return Moment(1, cpu, RELEASE, RELEASE + latency, latency, "maximum", 0, THREAD, table)


IDLE = ("swapper/1", 0, 120)
MEASURED = ("measured", THREAD, MINE)
LOWER = ("hackbench", 200, 120)
HIGHER = ("hog", 300, 9)
