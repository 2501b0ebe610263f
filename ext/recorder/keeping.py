# SPDX-License-Identifier: MIT
"""Which moments a recorder keeps when there is room for only some: the worst of each culprit stays, whatever
others bring.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

UNNAMED = ""
"""The culprit of a moment that nobody has explained yet."""
OTHERS = "others"
MOST_CULPRITS = 500
"""Culprits beyond this number share one place, so that a program with ever new names cannot fill the folder
with the worst of each.
"""


@dataclass(frozen=True, order=True)
class Kept:
    """A moment that the folder has."""

    latency_ns: int
    number: int
    task: str
    culprit: str
    bytes: int
    source: str
    trigger: str = ""
    """The name of the trigger before which the events are; empty: the moment is a latency."""

    @property
    def key(self) -> tuple[str, str]:
        """What competes for the same room: the thread and its culprit, or the trigger. Of a trigger, the
        newest stay.
        """
        return self.task, f"trigger {self.trigger}" if self.trigger else self.culprit


@dataclass
class Keeping:
    """The moments of a folder by number."""

    moments: dict[int, Kept] = field(default_factory=dict[int, Kept])

    @property
    def bytes(self) -> int:
        """The bytes of all moments."""
        return sum(kept.bytes for kept in self.moments.values())

    def culprit(self, task: str, name: str) -> str:
        """Return the culprit under which a moment is kept: its own, or OTHERS if there are too many."""
        known = {kept.key for kept in self.moments.values()}
        return name if (task, name) in known or len(known) < MOST_CULPRITS else OTHERS

    def over(self, room: int, new: Iterable[Kept] = ()) -> list[Kept]:
        """Return which moments to remove, so that all others and the new ones need at most `room` bytes.

        A moment larger than the room goes first. Then the culprit with the most bytes loses its smallest
        latency. The worst of a culprit goes only if no culprit has two moments left; then the smallest of all
        goes.
        """
        every = [*self.moments.values(), *new]
        removed = [kept for kept in every if kept.bytes > room]
        total = sum(kept.bytes for kept in every if kept.bytes <= room)
        if total <= room:
            return removed
        groups: dict[tuple[str, str], list[Kept]] = defaultdict(list)
        for kept in every:
            if kept.bytes <= room:
                groups[kept.key].append(kept)
        while total > room and groups:
            several = [group for group in groups.values() if len(group) > 1]
            group = (
                max(several, key=lambda group: sum(kept.bytes for kept in group))
                if several
                else min(groups.values(), key=lambda group: _order(group[0]))
            )
            removed.append(smallest := min(group, key=_order))
            group.remove(smallest)
            total -= smallest.bytes
            if not group:
                del groups[smallest.key]
        return removed


def _order(kept: Kept) -> tuple[int, int]:
    """Return what orders moments, faster than comparing them whole."""
    return kept.latency_ns, kept.number
