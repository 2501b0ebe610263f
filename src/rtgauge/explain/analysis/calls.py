# SPDX-License-Identifier: MIT
"""Finds in which system call a thread of the watched program was, and which lock it wanted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from sys import maxsize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.explain.trace.moment import Event, EventTable

ENTERS, LEAVES = "sys_enter_", "sys_exit_"
_COMMAND = 127
"""FUTEX_CMD_MASK (include/uapi/linux/futex.h)."""
_WAIT, _WAIT_BITSET, _LOCK_PI, _UNLOCK_PI, _LOCK_PI2 = 0, 9, 6, 7, 13
TIMER_CALLS = frozenset({"nanosleep", "clock_nanosleep"})
"""Calls that only a timer or a signal ends."""
CONTENDED = 2
"""The value that glibc and Rust's library write into a plain lock if a thread waits for it."""


class Lock(StrEnum):
    """How a call takes a lock."""

    NONE = "no lock"
    PLAIN = "plain"
    PERHAPS = "perhaps"
    """The call began before the release and all events, so the trace does not show what it waited for."""
    INHERITS = "with priority inheritance"


@dataclass(frozen=True)
class Call:
    """A system call of a thread. `begin_ns` and `end_ns` are None if the trace does not show them. `address`:
    the futex; None for another call. `untimed`: whether it is known to wait for the futex without a time-out.
    """

    name: str
    begin_ns: int | None
    end_ns: int | None = None
    lock: Lock = Lock.NONE
    address: int | None = None
    unlocks: bool = False
    untimed: bool = False

    @property
    def is_futex(self) -> bool:
        """Whether the call waits for a futex, or wakes its waiters."""
        return self.name == "futex"

    def covers(self, time_ns: int) -> bool:
        """Return whether the thread was in the call at this time."""
        return (self.begin_ns or 0) <= time_ns < (maxsize if self.end_ns is None else self.end_ns)


@dataclass(frozen=True)
class LockSpin:
    """A call that takes a lock with priority inheritance. `owner`: the pid of the lock's owner; None if
    unknown.
    """

    call: Call
    owner: int | None


@dataclass(frozen=True)
class Calls:
    """pid -> the thread's recorded calls, in order of time."""

    of: Mapping[int, list[Call]]

    @classmethod
    def of_table(cls, table: EventTable, release_ns: int) -> Calls:
        """Collect the calls of all threads. If the events begin after the release, because the latency is
        long, a futex call that began before them probably waits for a lock.
        """
        cut = bool(table.events) and table.events[0].time_ns > release_ns
        calls: dict[int, list[Call]] = defaultdict(list)
        for event in table.events:
            known = calls[event.pid] if event.name.startswith((ENTERS, LEAVES)) else None
            if known is None:
                continue
            if event.name.startswith(ENTERS):
                known.append(_entered(event))
            elif known and known[-1].end_ns is None:
                known[-1] = replace(known[-1], end_ns=event.time_ns)
            elif not known:
                call = Call(_name(event), None, event.time_ns)
                known.append(replace(call, lock=Lock.PERHAPS) if cut and call.is_futex else call)
        return cls(dict(calls))

    def spins(self, table: EventTable, thread: int) -> tuple[LockSpin, ...]:
        """Return the calls in which a thread took a lock with priority inheritance. While the lock's owner
        runs on another CPU, the thread spins in this call, and no other event shows that it waits.
        """
        return tuple(
            LockSpin(call, self._owner(table, thread, call))
            for call in self.of.get(thread, [])
            if call.lock is Lock.INHERITS
        )

    def _owner(self, table: EventTable, thread: int, call: Call) -> int | None:
        """Return the owner, which got the thread's priority, or released the lock during the call."""
        for event in table.events:
            lends = event.name == "sched_pi_setprio" and event.pid == thread
            if lends and call.covers(event.time_ns) and event.number("pid") != thread:
                return event.number("pid")
        for pid, calls in self.of.items():
            for other in calls:
                released = other.unlocks and other.address == call.address and pid != thread
                if released and other.begin_ns is not None and call.covers(other.begin_ns):
                    return pid
        return None

    def at(self, thread: int, time_ns: int) -> Call | None:
        """Return the call that the thread was in at this time; None if no recorded call shows one."""
        return next((call for call in self.of.get(thread, []) if call.covers(time_ns)), None)


def _name(event: Event) -> str:
    return event.name.removeprefix(ENTERS).removeprefix(LEAVES).removesuffix("_time64")


def _entered(event: Event) -> Call:
    call = Call(_name(event), event.time_ns)
    if not call.is_futex:
        return call
    command = event.number("op") & _COMMAND
    if command in {_LOCK_PI, _LOCK_PI2}:
        lock = Lock.INHERITS
    else:
        plain = command in {_WAIT, _WAIT_BITSET} and event.number("val") == CONTENDED
        lock = Lock.PLAIN if plain else Lock.NONE
    return replace(
        call,
        lock=lock,
        address=event.number("uaddr"),
        unlocks=command == _UNLOCK_PI,
        untimed=command in {_WAIT, _WAIT_BITSET} and event.number("utime", 1) == 0,
    )
