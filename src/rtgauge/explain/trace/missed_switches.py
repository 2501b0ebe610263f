# SPDX-License-Identifier: MIT
"""Finds switches that the kernel did not trace, from the task recorded with each event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rtgauge.explain.trace.moment import Event, EventTable

FAIR_PRIORITY = 120
"""The priority of a task if no event has it (nice 0)."""
IDLE_NAME = "swapper"
LONGEST_LEAVING_NS = 20_000
"""The idle task switches to a woken task within this time after its last event. It does nothing else, and an
interrupt would be an event.
"""


LONGEST_RETURN_NS = 10_000
"""A thread that was woken in one of `WAITS` returns from it within this time after it got the CPU."""
WAITS = frozenset(
    f"sys_exit_{call}{suffix}"
    for call in ("nanosleep", "clock_nanosleep", "futex", "ppoll", "pselect6", "rt_sigtimedwait")
    for suffix in ("", "_time64")
)


@dataclass(frozen=True)
class MissedSwitch:
    """A switch of `cpu` from `old` to `new` (pids) that is missing from the trace. It came after `after_ns`,
    when `old` ran, and no later than `until_ns`, when `new` ran.

    Other tasks may have run in between without an event.
    """

    cpu: int
    after_ns: int
    until_ns: int
    old: int
    new: int


class Running(NamedTuple):
    """A thread that is known to have run on a CPU at a time."""

    time_ns: int
    cpu: int
    thread: int


class WithMissed(NamedTuple):
    """The events, missed switches included, and the gaps that hide them."""

    table: EventTable
    missed: list[MissedSwitch]


def with_missed_switches(table: EventTable, running: Running | None = None) -> WithMissed:
    """Return the table with a `sched_switch` added for each gap that hides one, and the gaps in order of
    time.

    Every event names its CPU's task. So a missed switch came between the last event of the old task and the
    first event of another; `seen` also shows one. The added events have only the fields that other events
    supply.
    """
    by_cpu: dict[int, list[Event]] = defaultdict(list)
    for event in table.events:
        by_cpu[event.cpu].append(event)
    missed = [
        _bounded(gap, table.events) for cpu, events in by_cpu.items() for gap in _gaps(cpu, events, running)
    ]
    if not missed:
        return WithMissed(table, [])
    missed.sort(key=lambda gap: gap.until_ns)
    tasks = _tasks(table.events)
    made = [_switch(gap, tasks, table.events) for gap in missed]
    # An added switch comes before traced events of the same time, because the first shows the new task.
    merged = sorted(
        [
            *((event.time_ns, 0, event) for event in made),
            *((event.time_ns, 1, event) for event in table.events),
        ],
        key=lambda known: known[:2],
    )
    return WithMissed(replace(table, events=[event for _, _, event in merged]), missed)


def _gaps(cpu: int, events: Sequence[Event], at_end: Running | None) -> Iterable[MissedSwitch]:
    running: int | None = None
    since_ns = 0
    evidence = [(event.time_ns, *_ran(event)) for event in events]
    if (
        at_end is not None
        and at_end.cpu == cpu
        and not any(time == at_end.time_ns for time, _, _ in evidence)
    ):
        evidence = sorted(
            [*evidence, (at_end.time_ns, at_end.thread, at_end.thread)],
            key=lambda known: known[0],
        )
    for time_ns, before, after in evidence:
        if running is not None and before >= 0 and before != running:
            yield MissedSwitch(cpu, since_ns, time_ns, running, before)
        running, since_ns = after, time_ns


def _bounded(gap: MissedSwitch, events: Sequence[Event]) -> MissedSwitch:
    """Return the gap without times at which the new task was not in the CPU's queue yet, the idle task had
    already left, or the new task would have returned from its wait before.
    """
    queued = _queued(gap, events)
    if queued is None:
        return gap
    if queued > gap.after_ns:
        gap = replace(gap, after_ns=queued)
    elif gap.old == 0:
        gap = replace(gap, until_ns=min(gap.until_ns, gap.after_ns + LONGEST_LEAVING_NS))
    returned = next(
        (
            event
            for event in events
            if event.pid == gap.new and gap.until_ns <= event.time_ns <= gap.until_ns + LONGEST_RETURN_NS
        ),
        None,
    )
    if returned is not None and returned.name in WAITS:
        return replace(gap, after_ns=max(gap.after_ns, gap.until_ns - LONGEST_RETURN_NS))
    return gap


def _queued(gap: MissedSwitch, events: Sequence[Event]) -> int | None:
    """Return when the new task came into the CPU's queue before it ran there; None if no event shows it."""
    queued: int | None = None
    for event in events:
        if event.time_ns >= gap.until_ns:
            break
        if event.name == "sched_switch":
            if gap.new in {event.number("prev_pid"), event.number("next_pid")}:
                queued = None
        elif event.number("pid", -1) == gap.new:
            if event.name in {"sched_waking", "sched_wakeup", "sched_wakeup_new"}:
                place = event.number("target_cpu", event.cpu)
            elif event.name == "sched_migrate_task":
                place = event.number("dest_cpu")
            else:
                continue
            queued = queued or event.time_ns if place == gap.cpu else None
    return queued


def _ran(event: Event) -> tuple[int, int]:
    """Return the tasks that ran before and after an event."""
    if event.name != "sched_switch":
        return event.pid, event.pid
    return event.number("prev_pid", event.pid), event.number("next_pid", event.pid)


def _tasks(events: Iterable[Event]) -> dict[int, tuple[str, int]]:
    tasks: dict[int, tuple[str, int]] = {}
    for event in events:
        if event.name == "sched_switch":
            for side in ("prev", "next"):
                tasks.setdefault(
                    event.number(f"{side}_pid"),
                    (event.text(f"{side}_comm"), event.number(f"{side}_prio", FAIR_PRIORITY)),
                )
        elif event.name in {"sched_waking", "sched_wakeup_new"}:
            tasks.setdefault(event.number("pid"), (event.text("comm"), event.number("prio", FAIR_PRIORITY)))
    tasks[0] = (IDLE_NAME, FAIR_PRIORITY)
    return tasks


def _switch(gap: MissedSwitch, tasks: dict[int, tuple[str, int]], events: Sequence[Event]) -> Event:
    (old, old_priority), (new, new_priority) = (
        tasks.get(pid, ("", FAIR_PRIORITY)) for pid in (gap.old, gap.new)
    )
    values = {
        "prev_comm": old,
        "prev_pid": gap.old,
        "prev_prio": old_priority,
        "prev_state": int(_slept(gap, events)),
        "next_comm": new,
        "next_pid": gap.new,
        "next_prio": new_priority,
    }
    return Event(gap.until_ns, gap.cpu, "sched_switch", gap.old, 0, 0, dict(values))


def _slept(gap: MissedSwitch, events: Iterable[Event]) -> bool:
    """Return whether the old task went to sleep, which is so if it was woken before it ran again."""
    for event in events:
        if event.time_ns <= gap.after_ns:
            continue
        if event.name == "sched_waking" and event.number("pid") == gap.old:
            return True
        if event.time_ns > gap.until_ns and gap.old in _ran(event):
            return False
    return False
