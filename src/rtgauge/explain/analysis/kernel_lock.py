# SPDX-License-Identifier: MIT
"""When a thread waited for a lock of the kernel, and who had it, from the kernel's events of contended locks
and of the lock of a program's memory.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from sys import maxsize
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.lock_chain import IN_INTERRUPT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rtgauge.explain.trace.events import Event, EventTable

MEMORY_LOCK = "mmap_lock"
"""The lock of a program's memory map: mmap, munmap, mprotect and brk take it for themselves alone."""
_SPIN, _READ, _WRITE, _REAL_TIME, _PERCPU, _MUTEX = 1, 2, 4, 8, 16, 32
"""Flags of `contention_begin` (LCB_F_* of include/trace/events/lock.h)."""


@dataclass(frozen=True)
class KernelLockWait:
    """A thread waited from `start_ns` to `end_ns` for the lock `name`.

    `owner`: the pid of who had it last; None: the trace does not tell.
    """

    start_ns: int
    end_ns: int
    name: str
    owner: int | None = None

    def covers(self, time_ns: int) -> bool:
        """Whether the thread waited then."""
        return self.start_ns <= time_ns < self.end_ns


def kernel_lock_waits(table: EventTable, thread: int) -> tuple[KernelLockWait, ...]:
    """The waits of `thread` in the order of time; none overlap. Waits in interrupts are not the thread's.

    For the lock of a memory a writer spins before it sleeps, of which `contention_begin` tells nothing. Its
    own events tell each time that it is taken: those count if somebody else had the lock.
    """
    waits = [*_memory_waits(table, thread), *_contended(table.events, thread)]
    kept: list[KernelLockWait] = []
    for wait in sorted(waits, key=lambda known: (known.start_ns, -known.end_ns)):
        if not kept or wait.start_ns >= kept[-1].end_ns:
            kept.append(wait)
    return tuple(kept)


def _contended(events: Iterable[Event], thread: int) -> list[KernelLockWait]:
    waits: list[KernelLockWait] = []
    begun: tuple[int, int, str] | None = None
    for event in events:
        if event.pid != thread or event.flags & IN_INTERRUPT:
            continue
        if event.name == "contention_begin" and begun is None:
            begun = (event.time_ns, event.number("lock_addr"), _name(event.number("flags")))
        elif event.name == "contention_end" and begun is not None and event.number("lock_addr") == begun[1]:
            waits.append(KernelLockWait(begun[0], event.time_ns, begun[2]))
            begun = None
    return waits if begun is None else [*waits, KernelLockWait(begun[0], maxsize, begun[2])]


def _name(flags: int) -> str:
    for flag, name in (
        (_MUTEX, "mutex"),
        (_REAL_TIME, "rt_mutex"),
        (_PERCPU, "percpu_rwsem"),
        (_SPIN, "spinlock"),
        (_READ | _WRITE, "rwsem"),
    ):
        if flags & flag:
            return name
    return "semaphore"


@dataclass
class _MemoryLock:
    """The lock of one memory map as `thread` finds it: who had it last, and whether that one still has it."""

    owner: int | None = None
    held: bool = False
    begun_ns: int | None = None
    """When the thread began to take it."""
    contended: bool = False
    """Somebody else had it since then."""


def _memory_waits(table: EventTable, thread: int) -> list[KernelLockWait]:
    waits: list[KernelLockWait] = []
    locks: dict[int, _MemoryLock] = defaultdict(_MemoryLock)
    for event in table.events:
        what = event.name.removeprefix("mmap_lock_")
        if what == event.name:
            continue
        lock = locks[event.number("mm")]
        if event.pid != thread:
            lock.contended |= what == "released"
            if what != "start_locking":
                lock.owner, lock.held = event.pid, what == "acquire_returned"
        elif what == "start_locking":
            lock.begun_ns, lock.contended = event.time_ns, lock.held
        else:
            waits += _memory_wait(lock, event.time_ns)
            # it has the lock, so nobody else does: an owner that goes on as a reader tells of no release
            lock.begun_ns, lock.held = None, False
    return [*waits, *(wait for lock in locks.values() for wait in _memory_wait(lock, maxsize))]


def _memory_wait(lock: _MemoryLock, end_ns: int) -> list[KernelLockWait]:
    if lock.begun_ns is None or not lock.contended:
        return []
    return [KernelLockWait(lock.begun_ns, end_ns, MEMORY_LOCK, lock.owner)]
