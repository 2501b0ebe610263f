# SPDX-License-Identifier: MIT
"""A sleep is spent by who ends it, as the owner of a lock: what that thread did meanwhile, and if it slept
until another one woke it, what that one did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.thread_path import Phase, Piece, ThreadPath, thread_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.explain.trace.events import Event, EventTable
    from rtgauge.explain.trace.moment import Moment

LONGEST_CHAIN = 8
IN_INTERRUPT = 8 | 16
"""common_flags of an event in an interrupt or a softirq (include/linux/trace_events.h)."""


@dataclass(frozen=True)
class Link:
    """A stretch of time by the thread that decided over it."""

    thread: int
    path: ThreadPath


def waker_chain(table: EventTable, thread: int, path: ThreadPath) -> list[Link]:
    """The links of a thread that slept until another one woke it, in the order of time; their pieces are
    without a gap and together as long as its path.
    """
    return _links(table, Link(thread, path), frozenset({thread}))


def since_its_beginning(links: Sequence[Link]) -> list[Link]:
    """The links from where an interrupt woke the first of the wakers on: until then they waited for their
    time, and nothing was late.
    """
    begun = [
        at for at, link in enumerate(links) for piece in link.path.pieces if _waited_for_interrupt(piece)
    ]
    return list(links[begun[-1] + 1 :] if begun else links)


def _waited_for_interrupt(piece: Piece) -> bool:
    waking = piece.woken_by
    by_interrupt = waking is not None and (waking.flags & IN_INTERRUPT != 0 or waking.pid <= 0)
    return piece.phase in {Phase.LATE, Phase.BLOCKED} and not piece.is_held and by_interrupt


def _links(table: EventTable, link: Link, before: frozenset[int]) -> list[Link]:
    links: list[Link] = []
    for piece in link.path.pieces:
        waking = piece.woken_by
        sleeps = piece.phase in {Phase.LATE, Phase.BLOCKED}
        if (
            not sleeps
            or waking is None
            or waking.flags & IN_INTERRUPT
            or waking.pid <= 0
            or waking.pid in before
            or len(before) >= LONGEST_CHAIN
        ):
            links.append(Link(link.thread, replace(link.path, pieces=[piece])))
            continue
        owner = thread_path(table, waking.pid, waking.cpu, piece.start_ns, piece.end_ns)
        owner = owner if owner.priority is not None else replace(owner, name=_name(table, waking.pid))
        links += _links(table, Link(waking.pid, owner), before | {waking.pid})
    return links


def _name(table: EventTable, thread: int) -> str:
    """Of a thread that did not switch meanwhile: from a switch before or after."""
    for event in table.events:
        for side in ("prev", "next"):
            if event.name == "sched_switch" and event.number(f"{side}_pid") == thread:
                return event.text(f"{side}_comm")
    return f"pid {thread}"


def owners(links: Sequence[Link], thread: int) -> tuple[str, ...]:
    """Who had the locks, the last in the chain first, as the time went by."""
    return tuple(dict.fromkeys(link.path.name for link in links if link.thread != thread))


def lent(table: EventTable, links: Sequence[Link], moment: Moment) -> str:
    """ "real-time priority 80": what the kernel lent an owner of the lock meanwhile; empty: nothing, or it is
    not recorded.
    """
    threads = {link.thread for link in links} - {moment.thread}
    higher = [
        event
        for event in table.events
        if event.name == "sched_pi_setprio" and event.number("pid") in threads and _raises(event)
    ]
    during = [
        event.number("newprio")
        for event in higher
        if moment.release_ns - 1_000_000 <= event.time_ns <= moment.end_ns
    ]
    return f"real-time priority {99 - min(during)}" if during else ""


def _raises(event: Event) -> bool:
    return 0 <= event.number("newprio", 140) < min(event.number("oldprio", 140), 100)
