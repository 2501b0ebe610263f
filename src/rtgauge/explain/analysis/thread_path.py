# SPDX-License-Identifier: MIT
"""Follows a thread during a latency: asleep, being woken, waiting for a CPU or running, and on which CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.explain.trace.moment import Event, EventTable, Moment


STOPPED, TRACED = 4, 8
HELD_STATES = 2 | STOPPED | TRACED
"""Bits of prev_state (include/linux/sched.h): uninterruptible, stopped by a signal, or stopped by a debugger.
"""


class Phase(StrEnum):
    """A phase of a thread's path, by what the thread waited for."""

    LATE = "late"
    """The thread was asleep at its release and has not been woken yet."""
    BLOCKED = "blocked"
    """The thread sleeps again after its release."""
    WAKING = "waking"
    """The thread was woken but is not in its CPU's queue yet."""
    READY = "ready"
    """The thread waits in a CPU's queue."""
    RUNNING = "running"
    UNKNOWN = "unknown"


SLEEPS = frozenset({Phase.LATE, Phase.BLOCKED})


@dataclass(frozen=True)
class Piece:
    """A piece of a path, with the responsible CPU and, for LATE and BLOCKED, the event that ended it."""

    start_ns: int
    end_ns: int
    phase: Phase
    cpu: int
    woken_by: Event | None = None
    since_ns: int = 0
    """The time at which the phase began, perhaps before the release."""
    left: Event | None = None
    """The switch that began a sleep."""

    @property
    def prev_state(self) -> int:
        """The thread's state when it left its CPU (include/linux/sched.h); 0 if no switch shows it."""
        return 0 if self.left is None else self.left.number("prev_state")

    @property
    def is_held(self) -> bool:
        """Whether the thread was stopped, or slept uninterruptibly, for example for a disk."""
        return self.prev_state & HELD_STATES != 0


@dataclass(frozen=True)
class ThreadPath:
    """The pieces from the release to the end, without a gap.

    `moves`: (time, from CPU, to CPU) of each migration. `priority`: in the kernel's numbers; None if unknown.
    """

    pieces: list[Piece]
    moves: list[tuple[int, int, int]]
    priority: int | None
    name: str


_WAKEUPS = frozenset({"sched_wakeup", "sched_wakeup_new"})
REQUEST = "sched_set_need_resched"
"""The event (since Linux 6.14) in which a CPU is asked to call the scheduler. The woken thread is then in the
CPU's queue.
"""


def _about(event: Event, thread: int) -> str | None:
    """Return what an event says about the thread: in, out, waking, wakeup, move, or None."""
    if event.name == "sched_switch":
        if event.number("next_pid", -1) == thread:
            return "in"
        return "out" if event.number("prev_pid", -1) == thread else None
    if event.number("pid", -1) != thread:
        return None
    if event.name in _WAKEUPS:
        return "wakeup"
    return {"sched_waking": "waking", "sched_migrate_task": "move"}.get(event.name)


def _requests(event: Event, last: str, of: Event) -> bool:
    """Return whether the event asks the CPU for a switch to a thread whose last event `of` was its waking."""
    return (
        event.name == REQUEST
        and last == "waking"
        and event.number("cpu", -1) == of.number("target_cpu", of.cpu)
    )


_BEFORE = {
    "in": Phase.READY,
    "out": Phase.RUNNING,
    "waking": Phase.LATE,
    "wakeup": Phase.WAKING,
    "move": Phase.READY,
}
"""Kind of a thread's first event -> the phase before it."""


def _ran_first(table: EventTable, thread: int, own: list[tuple[str, Event]]) -> bool:
    """Return whether the thread ran before its own first event. Other events show it, or it leaves a CPU
    without a switch to it.
    """
    if not own:
        return any(event.pid == thread for event in table.events)
    action, first = own[0]
    if action != "waking":
        return False
    given = next((kind for kind, _ in own if kind in {"in", "out"}), None)
    return given == "out" or any(
        event.pid == thread for event in table.events if event.time_ns <= first.time_ns
    )


def thread_path(
    table: EventTable, thread: int, cpu: int, release_ns: int, end_ns: int, apart_ns: int = 0
) -> ThreadPath:
    """Follow `thread`, which was on `cpu` at the end, from `release_ns` to `end_ns`.

    `apart_ns`: how much later than `end_ns` the last event may be.
    """
    own = _own_events(table, thread, end_ns + apart_ns)
    arrivals = any(event.name == "sched_wakeup" for event in table.events)
    phase = _BEFORE[own[0][0]] if own else Phase.UNKNOWN
    if _ran_first(table, thread, own):
        phase = Phase.RUNNING
    pieces: list[Piece] = []
    moves: list[tuple[int, int, int]] = []
    left: Event | None = None
    woken = False
    since, where = min([release_ns, *(event.time_ns for _, event in own[:1])]), cpu
    if own:
        where = own[0][1].number("orig_cpu") if own[0][0] == "move" else own[0][1].cpu
    for action, event in own:
        woken_by = event if action == "waking" else None
        # The CPU that ended a sleep is responsible for it.
        here = event.cpu if woken_by is not None and phase in SLEEPS else where
        if woken_by is not None and woken and phase in {Phase.WAKING, Phase.READY}:
            # It ran and slept since it was woken before, which the kernel did not trace.
            phase = Phase.UNKNOWN
        if action == "request" and phase is Phase.READY:
            phase = Phase.WAKING
        piece = Piece(since, event.time_ns, phase, here, woken_by, left=left)
        _append(pieces, piece, release_ns, end_ns)
        left = event if action == "out" else None if action in {"in", "waking"} else left
        ran_before = any(piece.phase is Phase.RUNNING for piece in pieces)
        since = event.time_ns
        woken = action in {"waking", "wakeup"} or (woken and action in {"move", "request"})
        match action:
            case "in":
                phase, where = Phase.RUNNING, event.cpu
            case "out":
                state, where = event.number("prev_state"), event.cpu
                # A thread that is held, even since before its release, does not wait for the release.
                within = state & HELD_STATES != 0 or (event.time_ns > release_ns and ran_before)
                # The low bits are 0 (a preemption may set a higher bit): the thread wanted to continue.
                phase = Phase.READY if state & 0xFF == 0 else Phase.BLOCKED if within else Phase.LATE
            case "waking" if phase is Phase.RUNNING:
                pass  # It was woken before it slept, so it continues without a switch.
            case "waking":
                where = event.number("target_cpu", event.cpu)
                # A CPU puts its own thread in its queue at once. If such events are traced, one follows.
                phase = Phase.READY if where == event.cpu and not arrivals else Phase.WAKING
            case "request":
                phase = Phase.READY if phase is Phase.WAKING else phase
            case "wakeup":
                where = event.number("target_cpu", event.cpu)
                phase = phase if phase is Phase.RUNNING else Phase.READY
            case _:
                where = event.number("dest_cpu", where)
                if event.time_ns >= release_ns:
                    moves.append((event.time_ns, event.number("orig_cpu"), where))
    # A thread that measured its latency was woken before, so the events of its wake-up are missing.
    never_woken = phase is Phase.LATE and since < end_ns
    _append(pieces, Piece(since, end_ns, Phase.UNKNOWN if never_woken else phase, where), release_ns, end_ns)
    return ThreadPath(_waking_places(pieces), moves, *_priority_and_name(own))


def _own_events(table: EventTable, thread: int, until_ns: int) -> list[tuple[str, Event]]:
    """Return what happened to a thread: the kind of each of its events, and the event."""
    own: list[tuple[str, Event]] = []
    for event in table.events:
        if event.time_ns > until_ns:
            break
        action = _about(event, thread)
        if action is None and own and _requests(event, *own[-1]):
            action = "request"
        if action is not None:
            own.append((action, event))
    return own


def _priority_and_name(own: list[tuple[str, Event]]) -> tuple[int | None, str]:
    """Return the thread's last priority and its name; (None, "") if no event has them."""
    last = next((event for action, event in reversed(own) if action in {"waking", "wakeup", "in"}), None)
    if last is None:
        return None, ""
    side = "next_" if last.name == "sched_switch" else ""
    return last.number(f"{side}prio", 120), last.text(f"{side}comm")


def _append(pieces: list[Piece], piece: Piece, release_ns: int, end_ns: int) -> None:
    start, end = max(piece.start_ns, release_ns), min(piece.end_ns, end_ns)
    if end > start:
        pieces.append(replace(piece, start_ns=start, end_ns=end, since_ns=min(piece.start_ns, start)))


def _waking_places(pieces: list[Piece]) -> list[Piece]:
    """Assign each wake-up to the CPU in whose queue it ends."""
    return [
        replace(piece, cpu=after.cpu)
        if piece.phase is Phase.WAKING and after.phase in {Phase.READY, Phase.RUNNING}
        else piece
        for piece, after in zip(pieces, [*pieces[1:], *pieces[-1:]], strict=True)
    ]


LONGEST_CHAIN = 8
IN_INTERRUPT = 8 | 16
"""Bits of common_flags that mark an event in an interrupt or a softirq (include/linux/trace_events.h)."""


@dataclass(frozen=True)
class Link:
    """A stretch of time with the thread responsible for it."""

    thread: int
    path: ThreadPath


def waker_chain(
    table: EventTable, thread: int, path: ThreadPath, follows: Callable[[int, Piece], bool]
) -> list[Link]:
    """Return the links of a thread's path in order of time. Their pieces cover the path without a gap.

    While the thread waits for another thread, the links follow its waker, if `follows`(thread, sleep).
    """
    return _links(table, Link(thread, path), frozenset({thread}), follows)


def since_its_beginning(links: Sequence[Link]) -> list[Link]:
    """Return the links since an interrupt woke the first waker, because nothing was late before."""
    begun = [
        at for at, link in enumerate(links) for piece in link.path.pieces if _waited_for_interrupt(piece)
    ]
    return list(links[begun[-1] + 1 :] if begun else links)


def _waited_for_interrupt(piece: Piece) -> bool:
    waking = piece.woken_by
    by_interrupt = waking is not None and (waking.flags & IN_INTERRUPT != 0 or waking.pid <= 0)
    return piece.phase in SLEEPS and not piece.is_held and by_interrupt


def _links(
    table: EventTable, link: Link, before: frozenset[int], follows: Callable[[int, Piece], bool]
) -> list[Link]:
    links: list[Link] = []
    for piece in link.path.pieces:
        waking = piece.woken_by
        if (
            piece.phase not in SLEEPS
            or waking is None
            or waking.flags & IN_INTERRUPT
            or waking.pid <= 0
            or waking.pid in before
            or len(before) >= LONGEST_CHAIN
            or not follows(link.thread, piece)
        ):
            links.append(Link(link.thread, replace(link.path, pieces=[piece])))
            continue
        owner = thread_path(table, waking.pid, waking.cpu, piece.start_ns, piece.end_ns)
        owner = owner if owner.priority is not None else replace(owner, name=thread_name(table, waking.pid))
        links += _links(table, Link(waking.pid, owner), before | {waking.pid}, follows)
    return links


def thread_name(table: EventTable, thread: int) -> str:
    """Return a thread's name from any switch in the table, for a thread that did not switch in its path."""
    for event in table.events:
        for side in ("prev", "next"):
            if event.name == "sched_switch" and event.number(f"{side}_pid") == thread:
                return event.text(f"{side}_comm")
    return f"pid {thread}"


def owners(links: Sequence[Link], thread: int) -> tuple[str, ...]:
    """Return the names of the threads that `thread` waited for, in order of time. In a chain of lock owners,
    the last owner comes first.
    """
    return tuple(dict.fromkeys(link.path.name for link in links if link.thread != thread))


def lent(table: EventTable, links: Sequence[Link], moment: Moment) -> str:
    """Return the priority lent to a lock's owner, such as "real-time priority 80"; empty if unknown."""
    threads = {link.thread for link in links} - {moment.thread}
    during = [
        event.number("newprio")
        for event in table.events
        if event.name == "sched_pi_setprio"
        and event.number("pid") in threads
        and 0 <= event.number("newprio", 140) < min(event.number("oldprio", 140), 100)
        and moment.release_ns - 1_000_000 <= event.time_ns <= moment.end_ns
    ]
    return f"real-time priority {99 - min(during)}" if during else ""
