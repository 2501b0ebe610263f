# SPDX-License-Identifier: MIT
"""A sleep for a lock is spent by who has the lock: what its owner did meanwhile, and where the owner slept for another lock, what that one's did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.thread_path import Phase, ThreadPath, thread_path

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


def lock_chain(table: EventTable, thread: int, path: ThreadPath) -> list[Link]:
    """The links of a thread that slept for a lock, in the order of time; their pieces are without a gap and together as long as its path."""
    return _links(table, Link(thread, path), frozenset({thread}))


def _links(table: EventTable, link: Link, before: frozenset[int]) -> list[Link]:
    links: list[Link] = []
    for piece in link.path.pieces:
        waking = piece.woken_by
        sleeps = piece.phase in {Phase.LATE, Phase.BLOCKED}
        if not sleeps or waking is None or waking.flags & IN_INTERRUPT or waking.pid <= 0 or waking.pid in before or len(before) >= LONGEST_CHAIN:
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
    """ "real-time priority 80": what the kernel lent an owner of the lock meanwhile; empty: nothing, or it is not recorded."""
    threads = {link.thread for link in links} - {moment.thread}
    higher = [event for event in table.events if event.name == "sched_pi_setprio" and event.number("pid") in threads and _raises(event)]
    during = [event.number("newprio") for event in higher if moment.release_ns - 1_000_000 <= event.time_ns <= moment.end_ns]
    return f"real-time priority {99 - min(during)}" if during else ""


def _raises(event: Event) -> bool:
    return 0 <= event.number("newprio", 140) < min(event.number("oldprio", 140), 100)
