# SPDX-License-Identifier: MIT
"""Finds the times in which a thread waited for its CPU quota, a deadline budget, a server for other tasks or
a kernel lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from sys import maxsize
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.thread_path import IN_INTERRUPT, Phase, ThreadPath

if TYPE_CHECKING:
    from rtgauge.explain.trace.formats import Symbols
    from rtgauge.explain.trace.moment import Event, EventTable, Moment
    from rtgauge.record.stream import ThrottledGroup


FAIR = 100
"""Fair tasks have this priority or a higher number. Only they are subject to a quota."""


@dataclass(frozen=True)
class CpuQuota:
    """The intervals in which `group` had used up its quota. `doubt`: why they are uncertain, or empty."""

    group: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    doubt: str = ""

    def covers(self, time_ns: int) -> bool:
        """Return whether the group was throttled at this time."""
        return any(start <= time_ns < end for start, end in self.spans)


QUOTA_TIMERS = frozenset({"sched_cfs_period_timer", "sched_cfs_slack_timer"})
"""The kernel's functions that end throttling, at the group's next period or when other CPUs leave time."""
LONGEST_UNTHROTTLE_NS = 50_000
"""The longest time from such a timer until the kernel counts the throttling as ended, perhaps on another CPU.
"""


def cpu_quota(moment: Moment, path: ThreadPath, tolerance_ns: int, symbols: Symbols) -> CpuQuota:
    """Assign the throttled time that the kernel counted to the waits of a fair thread for a CPU.

    A throttled thread first waits until the throttling ends, then for its turn. So throttled time is at the
    beginning of a wait and ends between two readings of the counters. Its place is certain if exactly one
    wait is long enough for a single throttling and no earlier wait can contain it, or if it equals the sum of
    all possible waits. Otherwise it is placed at the beginning of the longest wait.

    If the moment has the timers that end throttling, a wait without such a timer was not throttled. A wait of
    the counted length until such a timer was, and so was a wait for an idle CPU.
    """
    if not moment.throttled or path.priority is None or path.priority < FAIR:
        return CpuQuota()
    counted: dict[str, int] = {}
    for known in moment.throttled:
        counted[known.group] = counted.get(known.group, 0) + known.ns
    group = max(counted, key=lambda name: counted[name])
    free = _waits(path)
    spans: list[tuple[int, int]] = []
    open_ns = placed_ns = 0
    left = [known for known in moment.throttled if known.group == group]
    if moment.has_quota_timers:
        ends = [event.time_ns for event in moment.table.events if _ends_throttling(event, symbols)]
        for known in tuple(left):
            exact = _exact(known, free, ends, tolerance_ns)
            if exact is not None:
                left.remove(known)
                free = [wait for wait in free if wait[0] != exact[0]]
                spans.append(exact)
        left, idle = _while_idle(moment, path, left, free, ends, tolerance_ns)
        free = [wait for wait in free if all(wait[0] != start for start, _ in idle)]
        spans += idle
        throttled = ((start, [at for at in ends if start < at <= end]) for start, end in free)
        free = [(start, within[-1]) for start, within in throttled if within]
    for only_certain in (True, False):
        for known in tuple(left):
            throttlings, certain = _placed(known, free, moment.release_ns, tolerance_ns)
            if only_certain and not certain:
                continue
            left.remove(known)
            free = [wait for wait in free if all(wait[0] != start for start, _ in throttlings)]
            spans += throttlings
            if not certain:
                open_ns += known.ns
                placed_ns += sum(end - start for start, end in throttlings)
    doubt = (
        ""
        if placed_ns <= tolerance_ns
        else f"{group} was throttled for {open_ns / 1000:,.3f} us, but the kernel does not report when, so "
        f"rtgauge assigns {placed_ns / 1000:,.3f} us to the longest waits"
    )
    return CpuQuota(group, tuple(spans), doubt)


def _ends_throttling(event: Event, symbols: Symbols) -> bool:
    return event.name == "hrtimer_expire_entry" and symbols.name(event.number("function")) in QUOTA_TIMERS


def _exact(
    known: ThrottledGroup, waits: list[tuple[int, int]], ends: list[int], tolerance_ns: int
) -> tuple[int, int] | None:
    """Return the throttled time of the only wait that began as long before a timer that ends throttling as
    the kernel counted; None if there is no such wait, or several.
    """
    exact = [
        (start, min(end, start + known.ns))
        for start, end in waits
        if any(
            start < at <= end
            and known.after_ns < at <= known.until_ns
            and -tolerance_ns <= known.ns - (at - start) <= LONGEST_UNTHROTTLE_NS
            for at in ends
        )
    ]
    return exact[0] if known.times == 1 and len(exact) == 1 else None


LEAST_IDLE_NS = 100_000
"""After this time, a CPU that has a task to run is no longer idle, whatever idle state it was in."""


def _while_idle(
    moment: Moment,
    path: ThreadPath,
    counted: list[ThrottledGroup],
    waits: list[tuple[int, int]],
    ends: list[int],
    tolerance_ns: int,
) -> tuple[list[ThrottledGroup], list[tuple[int, int]]]:
    """Return the readings that other waits may contain, and the throttled time of waits for an idle CPU.

    Only a throttled thread waits for an idle CPU. A reading that counted less than these waits keeps its
    doubt.
    """
    found = [span for wait in waits for span in _idle_wait(moment, path, wait, ends)]
    left: list[ThrottledGroup] = []
    certain: list[tuple[int, int]] = []
    for known in counted:
        within = [(start, end) for start, end in found if known.after_ns < end <= known.until_ns]
        rest, rest_ns = known.times - len(within), known.ns - sum(end - start for start, end in within)
        if not within or rest < 0 or rest_ns < -tolerance_ns:
            left.append(known)
            continue
        certain += within
        if rest and rest_ns > tolerance_ns:
            left.append(known.model_copy(update={"times": rest, "ns": rest_ns}))
    return left, certain


def _idle_wait(
    moment: Moment, path: ThreadPath, wait: tuple[int, int], ends: list[int]
) -> list[tuple[int, int]]:
    """Return the throttled time of a wait that began with an idle CPU, or nothing for another wait. It lasts
    until the first timer after which the CPU was given to a task, or else until the last timer.
    """
    start, end = wait
    cpu = next(piece.cpu for piece in path.pieces if piece.start_ns <= start < piece.end_ns)
    switches = [event for event in moment.table.of_cpu(cpu) if event.name == "sched_switch"]
    before = [event for event in switches if event.time_ns <= start + LEAST_IDLE_NS]
    within = [at for at in ends if start + LEAST_IDLE_NS < at <= end]
    if not before or before[-1].number("next_pid") != 0 or not within:
        return []
    given_ns = [event.time_ns for event in switches if event.number("next_pid") != 0]
    followed = (at for at in within if any(at < time_ns <= at + LEAST_IDLE_NS for time_ns in given_ns))
    return [(start, next(followed, within[-1]))]


def _placed(
    known: ThrottledGroup, waits: list[tuple[int, int]], release_ns: int, tolerance_ns: int
) -> tuple[list[tuple[int, int]], bool]:
    """Return the intervals of throttled time in a reading of the counters, and whether they are certain."""
    may_precede = known.after_ns < release_ns
    if known.times == 1:
        whole = [
            (start, end)
            for start, end in waits
            if known.after_ns < start + known.ns <= min(known.until_ns, end + tolerance_ns)
        ]
        if whole:
            start, end = max(whole, key=_length)
            exact = end - start <= known.ns + tolerance_ns
            return [(start, min(end, start + known.ns))], len(whole) == 1 and (exact or not may_precede)
    possible = sorted(
        ((start, end) for start, end in waits if start < known.until_ns and end > known.after_ns),
        key=_length,
        reverse=True,
    )
    spans: list[tuple[int, int]] = []
    left_ns = known.ns
    for start, end in possible[: known.times]:
        if left_ns <= 0:
            break
        spans.append((start, min(end, start + left_ns, known.until_ns)))
        left_ns -= end - start
    all_ns = sum(end - start for start, end in possible)
    return spans, not may_precede and abs(all_ns - known.ns) <= tolerance_ns


def _length(wait: tuple[int, int]) -> int:
    return wait[1] - wait[0]


def _waits(path: ThreadPath) -> list[tuple[int, int]]:
    """Return the intervals in which the thread was ready. A migration does not end an interval."""
    waits: list[tuple[int, int]] = []
    for piece in path.pieces:
        if piece.phase is not Phase.READY:
            continue
        if waits and waits[-1][1] == piece.start_ns:
            waits[-1] = (waits[-1][0], piece.end_ns)
        else:
            waits.append((piece.start_ns, piece.end_ns))
    return waits


DEADLINE_TASK = 1
SERVERS = {2: "the fair server", 3: "the ext server"}
"""The types of deadline entities in the scheduler's tracepoints (DL_* of include/trace/events/sched.h)."""
_ENDS, _BEGINS = ("sched_dl_throttle", "sched_dl_server_stop"), ("sched_dl_replenish",)
LONGEST_SERVED_NS = 100_000
"""The longest time from a server's event until the CPU switches to its tasks, or away from them."""


def deadline_throttling(events: Iterable[Event], thread: int) -> tuple[tuple[int, int], ...]:
    """Return the intervals in which the thread had used up its deadline budget, until the kernel replenished
    it; empty if the kernel does not trace them (before Linux 7.0).
    """
    spans: list[tuple[int, int]] = []
    begun: Event | None = None
    for event in events:
        if (
            event.name == "sched_dl_throttle"
            and event.pid == thread
            and event.number("type") == DEADLINE_TASK
        ):
            begun = event
        elif (
            event.name == "sched_dl_replenish"
            and begun is not None
            and event.number("dl_se") == begun.number("dl_se")
        ):
            spans.append((begun.time_ns, event.time_ns))
            begun = None
    return tuple(spans) if begun is None else (*spans, (begun.time_ns, maxsize))


def server_of(events: Iterable[Event], cpu: int, start_ns: int, end_ns: int) -> str:
    """Return the server that gave the CPU to lower-priority tasks from `start_ns` to `end_ns`; empty if the
    trace does not show it.

    The server ends such an interval when its budget is used up or it has no task left, and begins it when its
    budget is replenished.
    """
    of_servers = [
        event for event in events if event.number("cpu", -1) == cpu and event.number("type") in SERVERS
    ]
    ended = [event for event in of_servers if event.name in _ENDS and start_ns < event.time_ns <= end_ns]
    begun = [
        event
        for event in of_servers
        if event.name in _BEGINS and start_ns - LONGEST_SERVED_NS <= event.time_ns <= start_ns
    ]
    spans = [*begun[-1:], *ended[-1:]]
    return SERVERS[spans[-1].number("type")] if spans else ""


MEMORY_LOCK = "mmap_lock"
"""The lock of a program's memory map. mmap, munmap, mprotect and brk need it exclusively."""
_SPIN, _READ, _WRITE, _REAL_TIME, _PERCPU, _MUTEX = 1, 2, 4, 8, 16, 32
"""Flags of `contention_begin` (LCB_F_* of include/trace/events/lock.h)."""


@dataclass(frozen=True)
class KernelLockWait:
    """A wait of a thread, from `start_ns` to `end_ns`, for the lock `name`.

    `owner`: the pid of its last holder; None if the trace does not show it.
    """

    start_ns: int
    end_ns: int
    name: str
    owner: int | None = None

    def covers(self, time_ns: int) -> bool:
        """Return whether the thread waited at this time."""
        return self.start_ns <= time_ns < self.end_ns


def kernel_lock_waits(table: EventTable, thread: int) -> tuple[KernelLockWait, ...]:
    """Return the waits of `thread`, in order of time and without overlaps. Waits in interrupts are left out.

    A writer of the memory lock spins before it sleeps, and `contention_begin` does not report spinning. So
    the lock's own events count too, if another thread had the lock.
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
    """The state of a memory map's lock, as one thread sees it: the last other holder, and whether that holder
    still has the lock.
    """

    owner: int | None = None
    held: bool = False
    begun_ns: int | None = None
    """The time at which the thread first tried to take the lock."""
    contended: bool = False
    """Whether another thread has held the lock since then."""


def _memory_waits(table: EventTable, thread: int) -> list[KernelLockWait]:
    waits: list[KernelLockWait] = []
    locks: dict[int, _MemoryLock] = defaultdict(_MemoryLock)
    for event in table.events:
        action = event.name.removeprefix("mmap_lock_")
        if action == event.name:
            continue
        lock = locks[event.number("mm")]
        if event.pid != thread:
            lock.contended |= action == "released"
            if action != "start_locking":
                lock.owner, lock.held = event.pid, action == "acquire_returned"
        elif action == "start_locking":
            lock.begun_ns, lock.contended = event.time_ns, lock.held
        else:
            waits += _memory_wait(lock, event.time_ns)
            # The thread has the lock, so the last owner has it no longer. An owner that becomes a reader
            # reports no release.
            lock.begun_ns, lock.held = None, False
    return [*waits, *(wait for lock in locks.values() for wait in _memory_wait(lock, maxsize))]


def _memory_wait(lock: _MemoryLock, end_ns: int) -> list[KernelLockWait]:
    if lock.begun_ns is None or not lock.contended:
        return []
    return [KernelLockWait(lock.begun_ns, end_ns, MEMORY_LOCK, lock.owner)]
