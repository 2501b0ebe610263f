# SPDX-License-Identifier: MIT
"""Counts the cycles that break the requirement by the histograms of the engine's windows: each cycle once,
although some of them also have a moment.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.record.windows import Windows
from rtgauge.units import NS_PER_S, format_time, plural
from rtgauge.verdict.violations import count_violations
from rtgauge_ext.recorder.triggers import LATE, Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rtgauge.record.stream import Window

WAIT_NS = 10 * NS_PER_S
"""The moments of a window have come after this time: the engine reads the events once a second or oftener."""
MOST_MOMENTS = 1000
"""Moments that wait for their window. An engine keeps 200."""
FIGURES = re.compile(rb'"series":(\d+),.*?"missed":(\d+),.*?"max_ns":(-?\d+|null)')


@dataclass
class _LateWindow:
    """A window with late cycles. `left`: those whose moment has not come; `seen`: whether any has."""

    series: tuple[str, str]
    start_ns: int
    end_ns: int
    came_ns: int
    number: int
    worst_ns: int
    left: int
    seen: bool


def late_series(text: bytes, bounds: Mapping[int, int]) -> int | None:
    """Return the series of a window's line if it has late cycles; None if not. `bounds`: series -> ns. This
    spares the recorder the parsing of nearly all lines.
    """
    match = FIGURES.search(text)
    if match is None or (bound := bounds.get(int(match[1]))) is None:
        return None
    is_late = int(match[2]) > 0 or (match[3] != b"null" and int(match[3]) > bound)
    return int(match[1]) if is_late else None


class LateCounts:
    """The late cycles of the last seconds."""

    def __init__(self, bounds: Mapping[str, int]) -> None:
        """`bounds`: metric -> bound (ns)."""
        self._bounds = bounds
        self._windows: list[_LateWindow] = []
        self._moments: deque[tuple[tuple[str, str], int]] = deque(maxlen=MOST_MOMENTS)

    def moment(self, task: str, metric: str, release_ns: int) -> int:
        """Return how many late cycles a moment adds: 0 if its window has already come."""
        for window in self._windows:
            if window.series == (task, metric) and window.start_ns <= release_ns < window.end_ns:
                window.seen = True
                window.left -= 1
                return int(window.left < 0)
        self._moments.append(((task, metric), release_ns))
        return 1

    def window(self, task: str, metric: str, window: Window, now_ns: int) -> int:
        """Return how many late cycles a window adds to those whose moments have come. A cycle in the bin that
        holds the bound counts as in time. Raises RecordError if the histogram is damaged.
        """
        number = count_violations(Windows.of([window]), self._bounds[metric]).certain
        own = [
            known
            for known in self._moments
            if known[0] == (task, metric) and window.start_ns <= known[1] < window.end_ns
        ]
        for known in own:
            self._moments.remove(known)
        left = max(0, number - len(own))
        if number:
            self._windows.append(
                _LateWindow(
                    *((task, metric), window.start_ns, window.end_ns, now_ns, number, window.max_ns or 0),
                    *(left, bool(own)),
                )
            )
        return left

    def without_moment(self, now_ns: int) -> list[Trigger]:
        """Return a trigger for each window whose late cycles have no moment, and forget old windows."""
        old = [window for window in self._windows if now_ns - window.came_ns >= WAIT_NS]
        self._windows = [window for window in self._windows if now_ns - window.came_ns < WAIT_NS]
        return [self._trigger(window) for window in old if not window.seen]

    def _trigger(self, window: _LateWindow) -> Trigger:
        task, metric = window.series
        return Trigger(
            LATE,
            f"{task}: {plural(window.number, 'cycle')} with a {metric} of more than "
            f"{format_time(self._bounds[metric])}, the worst {format_time(window.worst_ns)}; "
            "without a moment",
        )
