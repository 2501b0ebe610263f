# SPDX-License-Identifier: MIT
"""Where a thread was from a release to the end of its latency: asleep, being woken, waiting for a CPU,
running; and which CPU it depended on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.explain.trace.events import Event, EventTable


STOPPED, TRACED = 4, 8
HELD_STATES = 2 | STOPPED | TRACED
"""Of a switch's prev_state (TASK_REPORT, include/linux/sched.h): sleeps uninterruptibly, is stopped by a
signal or by a debugger.
"""


class Phase(StrEnum):
    """What the thread waited for."""

    LATE = "late"
    """asleep at its release: for what wakes it"""
    BLOCKED = "blocked"
    """asleep again after its release"""
    WAKING = "waking"
    """between the call that wakes it and its CPU's queue"""
    READY = "ready"
    """in a queue: for a CPU"""
    RUNNING = "running"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Piece:
    """A piece of its path: the CPU that decided over it, and for LATE and BLOCKED the event that ended it."""

    start_ns: int
    end_ns: int
    phase: Phase
    cpu: int
    woken_by: Event | None = None
    since_ns: int = 0
    """When it began, perhaps before the release."""
    left: Event | None = None
    """The switch with which a sleep began."""

    @property
    def prev_state(self) -> int:
        """The state in which the thread left its CPU (include/linux/sched.h); 0 if no switch tells it."""
        return 0 if self.left is None else self.left.number("prev_state")

    @property
    def is_held(self) -> bool:
        """Whether it was stopped, or slept so that no signal wakes it: as for a disk."""
        return self.prev_state & HELD_STATES != 0


@dataclass(frozen=True)
class ThreadPath:
    """The pieces from release to end without a gap; `moves`: (time, from, to) of its migrations; `priority`
    as the kernel counts, None: unknown.
    """

    pieces: list[Piece]
    moves: list[tuple[int, int, int]]
    priority: int | None
    name: str


_WAKEUPS = frozenset({"sched_wakeup", "sched_wakeup_new"})


def _about(event: Event, thread: int) -> str | None:
    """What an event says of the thread: in, out, waking, wakeup, move, or nothing."""
    if event.name == "sched_switch":
        if event.number("next_pid", -1) == thread:
            return "in"
        return "out" if event.number("prev_pid", -1) == thread else None
    if event.number("pid", -1) != thread:
        return None
    if event.name in _WAKEUPS:
        return "wakeup"
    return {"sched_waking": "waking", "sched_migrate_task": "move"}.get(event.name)


def _first_phase(what: str | None) -> Phase:
    """Where it was before its first event."""
    return {
        "in": Phase.READY,
        "out": Phase.RUNNING,
        "waking": Phase.LATE,
        "wakeup": Phase.WAKING,
        "move": Phase.READY,
    }.get(what or "", Phase.UNKNOWN)


def _ran_first(table: EventTable, thread: int, own: list[tuple[str, Event]]) -> bool:
    """Whether the thread ran before its first own event: events show it, or it leaves a CPU that it was not
    given after its first wake-up.
    """
    if not own:
        return any(event.pid == thread for event in table.events)
    what, first = own[0]
    if what != "waking":
        return False
    given = next((kind for kind, _ in own if kind in {"in", "out"}), None)
    return given == "out" or any(
        event.pid == thread for event in table.events if event.time_ns <= first.time_ns
    )


def _runnable(event: Event) -> bool:
    """Whether a switch took the CPU from a task that wanted to run on (its state is 0, or the mark of a
    preemption, which is above the others).
    """
    return event.number("prev_state") & 0xFF == 0


def thread_path(
    table: EventTable, thread: int, cpu: int, release_ns: int, end_ns: int, apart_ns: int = 0
) -> ThreadPath:
    """The path of `thread`, which was on `cpu` at the end, between two times.

    `apart_ns`: how much later than `end_ns` the event of the end itself may be.
    """
    own = [
        (what, event)
        for event in table.events
        if event.time_ns <= end_ns + apart_ns and (what := _about(event, thread)) is not None
    ]
    arrivals = any(event.name == "sched_wakeup" for event in table.events)
    phase = Phase.RUNNING if _ran_first(table, thread, own) else _first_phase(own[0][0] if own else None)
    pieces: list[Piece] = []
    moves: list[tuple[int, int, int]] = []
    left: Event | None = None
    since, where = min([release_ns, *(event.time_ns for _, event in own[:1])]), cpu
    if own:
        where = own[0][1].number("orig_cpu") if own[0][0] == "move" else own[0][1].cpu
    for what, event in own:
        here = _place(phase, event, where, what)
        _append(
            pieces,
            Piece(since, event.time_ns, phase, here, event if what == "waking" else None, left=left),
            release_ns,
            end_ns,
        )
        left = event if what == "out" else None if what in {"in", "waking"} else left
        ran_before = any(piece.phase is Phase.RUNNING for piece in pieces)
        since = event.time_ns
        match what:
            case "in":
                phase, where = Phase.RUNNING, event.cpu
            case "out":
                within = event.time_ns > release_ns and (
                    ran_before or event.number("prev_state") & HELD_STATES != 0
                )
                phase = Phase.READY if _runnable(event) else Phase.BLOCKED if within else Phase.LATE
                where = event.cpu
            case "waking" if phase is Phase.RUNNING:
                pass  # woken before it slept: it runs on, and no switch is due
            case "waking":
                phase, where = (
                    _after_waking(event, arrivals_traced=arrivals),
                    event.number("target_cpu", event.cpu),
                )
            case "wakeup":
                phase, where = (
                    (Phase.READY if phase is not Phase.RUNNING else phase),
                    event.number("target_cpu", event.cpu),
                )
            case _:
                where = event.number("dest_cpu", where)
                if event.time_ns >= release_ns:
                    moves.append((event.time_ns, event.number("orig_cpu"), where))
    # a thread that has measured its latency was woken before: the events that tell it are missing
    never_woken = phase is Phase.LATE and since < end_ns
    _append(pieces, Piece(since, end_ns, Phase.UNKNOWN if never_woken else phase, where), release_ns, end_ns)
    last = next((event for what, event in reversed(own) if what in {"waking", "wakeup", "in"}), None)
    priority = (
        None if last is None else last.number("next_prio" if last.name == "sched_switch" else "prio", 120)
    )
    name = "" if last is None else last.text("next_comm" if last.name == "sched_switch" else "comm")
    return ThreadPath(_waking_places(pieces), moves, priority, name)


def _after_waking(event: Event, *, arrivals_traced: bool) -> Phase:
    """Where a thread is after the call that wakes it: on the way to its queue, or, where a CPU wakes its own
    thread and its arrival is not traced, in it.
    """
    local = event.number("target_cpu", event.cpu) == event.cpu
    return Phase.READY if local and not arrivals_traced else Phase.WAKING


def _place(phase: Phase, event: Event, where: int, what: str) -> int:
    """The CPU that decided over a piece that ends with `event`: of a sleep, the one on which it was woken."""
    if phase in {Phase.LATE, Phase.BLOCKED} and what == "waking":
        return event.cpu
    return where


def _append(pieces: list[Piece], piece: Piece, release_ns: int, end_ns: int) -> None:
    start, end = max(piece.start_ns, release_ns), min(piece.end_ns, end_ns)
    if end > start:
        pieces.append(replace(piece, start_ns=start, end_ns=end, since_ns=min(piece.start_ns, start)))


def _waking_places(pieces: list[Piece]) -> list[Piece]:
    """A wake-up goes to the CPU in whose queue it ends."""
    return [
        replace(piece, cpu=after.cpu)
        if piece.phase is Phase.WAKING and after.phase in {Phase.READY, Phase.RUNNING}
        else piece
        for piece, after in zip(pieces, [*pieces[1:], *pieces[-1:]], strict=True)
    ]
