# SPDX-License-Identifier: MIT
"""What an explained latency is made of: culprits, their parts, and all parts of one latency."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rtgauge.explain.trace.events import EventTable

if TYPE_CHECKING:
    from rtgauge.explain.analysis.thread_path import ThreadPath
    from rtgauge.explain.trace.missed_switches import MissedSwitch
    from rtgauge.explain.trace.moment import Moment

OR = " or "
"""Between the names of two tasks that may have run."""


class Kind(StrEnum):
    """What a part of a latency was: the classes of causes."""

    TIMER_LATE = "timer late"
    INTERRUPTS_OFF = "interrupts off"
    NO_SOFTWARE = "no software ran"
    STEAL = "steal"
    IDLE_EXIT = "idle exit"
    IRQ = "irq"
    INTERRUPT = "interrupt"
    SOFTIRQ = "softirq"
    NMI = "NMI"
    TASK = "task"
    PREEMPTION_OFF = "preemption off"
    THROTTLED = "throttling"
    QUOTA = "CPU quota"
    WAKER = "waker"
    WAKEUP = "wake-up"
    REMOTE_WAKEUP = "wake-up on another CPU"
    SWITCH = "switch"
    PAGE_FAULT = "page fault"
    FAULT_OR_OWN = "page fault or own work"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    KERNEL_LOCK = "kernel lock"
    LOCK_OWNER = "lock owner"
    OWNER_ASLEEP = "lock owner asleep"
    OWN = "own work"
    EITHER = "one or the other"
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True)
class Culprit:
    """A cause by its kind and name, the same for every latency that it delays.

    `number`: of an IRQ. `priority`: of a task, as the kernel counts.
    `mechanism`: of throttling, if only one is possible on the machine. `until`: of a sleep, the task that
    ended it; of a wait for a lock of the kernel, the task that had it.
    """

    kind: Kind
    name: str = ""
    number: int | None = None
    mechanism: str = ""
    until: str = ""
    priority: int | None = field(default=None, compare=False)
    pid: int | None = field(default=None, compare=False)


@dataclass
class Part:
    """The time that one culprit took of one latency.

    `spans`: (start, end, CPU) of each piece; `where`: functions, if the trace names them.
    """

    culprit: Culprit
    ns: int = 0
    spans: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    where: set[str] = field(default_factory=set[str])
    cpus: set[int] = field(default_factory=set[int])
    """Of `no software ran`: the CPUs on which nothing happened."""

    @property
    def begin_ns(self) -> int:
        """When its first piece began; 0 if it has none."""
        return min((start for start, _, _ in self.spans), default=0)


@dataclass(frozen=True)
class Explanation:
    """One latency and its parts in the order of time; they add up to `latency_ns`.

    `doubts`: why it is only partly explained; empty: it is not only partly.
    """

    moment: Moment
    path: ThreadPath
    parts: list[Part]
    doubts: list[str]
    owners: tuple[str, ...] = ()
    """Of a sleep for a lock: who had it; behind it whose lock that one waited for, and so on."""
    lent: str = ""
    """Of such: the priority that the owner was lent meanwhile."""
    missed: tuple[MissedSwitch, ...] = ()
    """The switches in the moment that the kernel did not trace."""

    @property
    def latency_ns(self) -> int:
        """The latency that is explained."""
        return self.moment.latency_ns

    def without_events(self) -> Explanation:
        """The same, without the events of its moment."""
        return (
            self
            if not self.moment.table.events
            else replace(self, moment=replace(self.moment, table=EventTable([], ())))
        )

    @property
    def main(self) -> Part:
        """The part that took most."""
        return max(self.parts, key=lambda part: part.ns, default=Part(Culprit(Kind.UNATTRIBUTED)))

    @property
    def unattributed_ns(self) -> int:
        """The time that no part explains, with the time of which only two tasks are known that may have had
        it.
        """
        return sum(part.ns for part in self.parts if part.culprit.kind in {Kind.UNATTRIBUTED, Kind.EITHER})
