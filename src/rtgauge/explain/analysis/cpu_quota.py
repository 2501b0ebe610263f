# SPDX-License-Identifier: MIT
"""When the CPU quota of its control group kept a thread from running: the kernel counts that, and traces it
nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.thread_path import Phase

if TYPE_CHECKING:
    from rtgauge.explain.analysis.thread_path import ThreadPath
    from rtgauge.explain.trace.moment import Moment, Throttled

FAIR = 100
"""Priorities from here on are of fair tasks: a quota does not concern the others."""


@dataclass(frozen=True)
class CpuQuota:
    """The intervals in which `group` had used up its quota; `doubt`: why they may be others, or empty."""

    group: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    doubt: str = ""

    def covers(self, time_ns: int) -> bool:
        """Whether the group was throttled then."""
        return any(start <= time_ns < end for start, end in self.spans)


def cpu_quota(moment: Moment, path: ThreadPath, tolerance_ns: int) -> CpuQuota:
    """Places the counted time in the waits for a CPU of a fair thread.

    A throttled thread waits from the instant at which it is throttled, and later for its turn: the time is at
    the beginning of a wait, and it ends between two readings of the counters. It is certain if exactly one
    wait is long enough for a single throttling and nothing before the release may have been it, or if it is
    as long as all waits that may have been it. Otherwise it is at the beginning of the longest.
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
    for only_certain in (True, False):
        for known in tuple(left):
            found, certain = _placed(known, free, moment.release_ns, tolerance_ns)
            if only_certain and not certain:
                continue
            left.remove(known)
            free = [wait for wait in free if all(wait[0] != start for start, _ in found)]
            spans += found
            if not certain:
                open_ns += known.ns
                placed_ns += sum(end - start for start, end in found)
    doubt = (
        ""
        if placed_ns <= tolerance_ns
        else f"the kernel counts how long {group} was throttled, {open_ns / 1000:,.3f} us, "
        f"but not when: {placed_ns / 1000:,.3f} us are placed in its longest waits"
    )
    return CpuQuota(group, tuple(spans), doubt)


def _placed(
    known: Throttled, waits: list[tuple[int, int]], release_ns: int, tolerance_ns: int
) -> tuple[list[tuple[int, int]], bool]:
    """Where the time of one reading of the counters is, and whether that is certain."""
    before = known.after_ns < release_ns
    """Whether it may have ended before the release."""
    if known.times == 1:
        whole = [
            (start, end)
            for start, end in waits
            if known.after_ns < start + known.ns <= min(known.until_ns, end + tolerance_ns)
        ]
        if whole:
            start, end = max(whole, key=_length)
            exact = end - start <= known.ns + tolerance_ns
            return [(start, min(end, start + known.ns))], len(whole) == 1 and (exact or not before)
    possible = sorted(
        ((start, end) for start, end in waits if start < known.until_ns and end > known.after_ns),
        key=_length,
        reverse=True,
    )
    found: list[tuple[int, int]] = []
    left_ns = known.ns
    for start, end in possible[: known.times]:
        if left_ns <= 0:
            break
        found.append((start, min(end, start + left_ns, known.until_ns)))
        left_ns -= end - start
    all_ns = sum(end - start for start, end in possible)
    return found, not before and abs(all_ns - known.ns) <= tolerance_ns


def _length(wait: tuple[int, int]) -> int:
    return wait[1] - wait[0]


def _waits(path: ThreadPath) -> list[tuple[int, int]]:
    """The intervals in which the thread was ready; a migration does not end one."""
    waits: list[tuple[int, int]] = []
    for piece in path.pieces:
        if piece.phase is not Phase.READY:
            continue
        if waits and waits[-1][1] == piece.start_ns:
            waits[-1] = (waits[-1][0], piece.end_ns)
        else:
            waits.append((piece.start_ns, piece.end_ns))
    return waits
