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
    from rtgauge.explain.trace.moment import Moment

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
    the beginning of a wait. Of several waits it is at that of the longest. It is certain if it is as long as
    all waits, or if only one of them is long enough for a single throttling.
    """
    throttled = max(moment.throttled, key=lambda known: known.ns, default=None)
    if throttled is None or path.priority is None or path.priority < FAIR:
        return CpuQuota()
    waits = sorted(_waits(path), key=lambda wait: wait[0] - wait[1])
    spans: list[tuple[int, int]] = []
    left_ns = throttled.ns
    for start, end in waits[: throttled.times]:
        if left_ns <= 0:
            break
        spans.append((start, min(end, start + left_ns)))
        left_ns -= end - start
    all_ns = sum(end - start for start, end in waits)
    fitting = sum(end - start >= throttled.ns - tolerance_ns for start, end in waits)
    certain = abs(all_ns - throttled.ns) <= tolerance_ns or (throttled.times == 1 and fitting == 1)
    placed_ns = sum(end - start for start, end in spans)
    doubt = (
        ""
        if certain or placed_ns <= tolerance_ns
        else f"the kernel counts how long {throttled.group} was throttled, {throttled.ns / 1000:,.3f} us, "
        f"but not when: {placed_ns / 1000:,.3f} us are placed in its longest waits"
    )
    return CpuQuota(throttled.group, tuple(spans), doubt)


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
