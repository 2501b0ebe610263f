# SPDX-License-Identifier: MIT
"""Follows a wait from thread to thread to its origin: A waited for B, which waited for C, which slept in a
call or ran. The threads may be of several programs; what they wait for does not matter, only who woke whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.thread_path import (
    IN_INTERRUPT,
    LONGEST_CHAIN,
    SLEEPS,
    Phase,
    Piece,
    thread_name,
    thread_path,
)
from rtgauge.units import format_time

if TYPE_CHECKING:
    from rtgauge.explain.analysis.calls import Calls
    from rtgauge.explain.trace.moment import Event, EventTable

MOSTLY = 0.5
"""A thread passes a wait on if it slept for at least this share of it; otherwise it is the origin."""


@dataclass(frozen=True)
class WaitLink:
    """A thread of a chain. `ns`: for how long it slept or, at the origin, did what `phase` says (UNKNOWN: 0).
    `call`: the system call in which it slept; empty if it is unknown, or if the thread did not sleep.
    """

    thread: int
    name: str
    phase: Phase
    call: str
    ns: int


def wait_chain(
    table: EventTable, calls: Calls, thread: int, name: str, pieces: Sequence[Piece]
) -> tuple[WaitLink, ...]:
    """Return the chain of the longest sleep among a thread's pieces that a task ended; empty if there is
    none.

    The first link is the thread itself, and the last one the origin. Each waker is followed back through its
    own longest sleep during the wait, until an interrupt ended it, it was uninterruptible (a disk), or the
    waker did not sleep.
    """
    ended = [piece for piece in pieces if piece.phase is Phase.BLOCKED and _waker(piece) is not None]
    piece = max(ended, key=lambda each: each.end_ns - each.start_ns, default=None)
    links: list[WaitLink] = []
    while piece is not None:
        links.append(_asleep(calls, thread, name, piece))
        waking = None if piece.is_held else _waker(piece)
        if waking is None or waking.pid in {link.thread for link in links} or len(links) >= LONGEST_CHAIN:
            break
        thread = waking.pid
        path = thread_path(table, thread, waking.cpu, piece.start_ns, piece.end_ns)
        name = path.name or thread_name(table, thread)
        wait_ns = piece.end_ns - piece.start_ns
        longest = _longest(path.pieces)
        sleeps = longest is not None and longest.phase in SLEEPS
        if longest is None or not sleeps or longest.end_ns - longest.start_ns < MOSTLY * wait_ns:
            # Without the events of its CPU, a task seems to have run until it woke the thread.
            shown = any(event.cpu == waking.cpu and event.time_ns <= piece.start_ns for event in table.events)
            links.append(_awake(thread, name, path.pieces, wait_ns, shown=shown))
            break
        piece = longest
    return tuple(links)


def _waker(piece: Piece) -> Event | None:
    """Return the event in which a task ended a sleep; None if an interrupt did, or nothing that is known."""
    waking = piece.woken_by
    return None if waking is None or waking.flags & IN_INTERRUPT or waking.pid <= 0 else waking


def _longest(pieces: Sequence[Piece]) -> Piece | None:
    return max(pieces, key=lambda piece: piece.end_ns - piece.start_ns, default=None)


def _asleep(calls: Calls, thread: int, name: str, piece: Piece) -> WaitLink:
    call = calls.at(thread, piece.since_ns)
    return WaitLink(
        thread, name, Phase.BLOCKED, "" if call is None else call.name, piece.end_ns - piece.start_ns
    )


def _awake(thread: int, name: str, pieces: Sequence[Piece], wait_ns: int, *, shown: bool) -> WaitLink:
    """Return the origin that mostly ran or waited for a CPU; UNKNOWN if the trace does not show this."""
    times = {
        phase: sum(piece.end_ns - piece.start_ns for piece in pieces if piece.phase is phase)
        for phase in (Phase.RUNNING, Phase.READY)
    }
    if not shown or sum(times.values()) < MOSTLY * wait_ns:
        return WaitLink(thread, name, Phase.UNKNOWN, "", 0)
    phase = max(times, key=lambda each: times[each])
    return WaitLink(thread, name, phase, "", times[phase])


def chain_words(chain: Sequence[WaitLink]) -> str:
    """Return "it waited 71.3 ms in read for B, which waited 70.9 ms in futex for C, which slept 70.2 ms in
    fdatasync"; empty if the first waker already is the origin and nothing more is known of it.
    """
    if len(chain) < 2 or (len(chain) == 2 and chain[1].phase is not Phase.BLOCKED):
        return ""
    parts = [f"it waited {_time(chain[0])} for {chain[1].name}"]
    parts += [f"which waited {_time(link)} for {after.name}" for link, after in pairwise(chain[1:])]
    origin = chain[-1]
    if origin.phase is Phase.UNKNOWN:
        return ", ".join(parts)
    verb = {Phase.RUNNING: "ran for", Phase.READY: "was ready without a CPU for"}.get(origin.phase, "slept")
    return ", ".join([*parts, f"which {verb} {_time(origin)}"])


def _time(link: WaitLink) -> str:
    return f"{format_time(link.ns)}{f' in {link.call}' if link.call else ''}"
