# SPDX-License-Identifier: MIT
"""From edges to responses (stimulus to answer) and distances, over successive blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtgauge.instrument.messages import Edges, Events

Times = NDArray[np.int64]
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Responses:
    """Of one block: when each answered stimulus was, and the time to its answer; when each missed one was,
    and how long it had no answer.

    All in ns.
    """

    stimulus_ns: Times
    response_ns: Times
    missed_ns: Times
    unanswered_ns: Times


class ResponseFollower:
    """Pairs the answers that the instrument accepted with their stimuli, across blocks; a stimulus without
    one before the next is missed.

    `orphans`: answers whose stimulus was in a block that was dropped.
    """

    def __init__(self, tick_ns: float, limit_ns: int, stimuli: Edges = Edges.BOTH) -> None:
        """`limit_ns`: the time after which the instrument calls a stimulus missed."""
        self._tick_ns = tick_ns
        self._limit_ns = limit_ns
        self._stimuli = stimuli
        self._waiting: int | None = None
        self.orphans = 0

    def add(self, events: Events) -> Responses:
        """The stimuli that were answered or missed in this block."""
        if events.missing:
            self._waiting = None  # its answer may be among what was dropped
        ticks = events.ticks.astype(np.int64)
        is_stimulus = ~events.answer_line
        if self._stimuli is not Edges.BOTH:
            is_stimulus &= events.high == (self._stimuli is Edges.RISING)
        stimuli = ticks[is_stimulus]
        answers = ticks[events.accepted]
        # Before which of this block's stimuli each answer came: 0 is the one that waits from the block
        # before.
        place = np.searchsorted(np.flatnonzero(is_stimulus), np.flatnonzero(events.accepted))
        waiting = -1 if self._waiting is None else self._waiting
        every = np.concatenate(([waiting], stimuli))
        answered = np.zeros(len(every), dtype=bool)
        known = every[place] >= 0
        answered[place] = True
        self.orphans += int(np.count_nonzero(~known))
        missed = every[:-1][~answered[:-1] & (every[:-1] >= 0)]
        self._waiting = None if answered[-1] or every[-1] < 0 else int(every[-1])
        return Responses(
            stimulus_ns=self._ns(every[place][known]),
            response_ns=self._ns((answers - every[place])[known]),
            missed_ns=self._ns(missed),
            unanswered_ns=np.full(len(missed), self._limit_ns, dtype=np.int64),
        )

    def last_missed(self) -> Responses:
        """The last stimulus, which the instrument has called missed: no other came after it."""
        missed = np.asarray([] if self._waiting is None else [self._waiting], dtype=np.int64)
        self._waiting = None
        return Responses(
            NOTHING, NOTHING, self._ns(missed), np.full(len(missed), self._limit_ns, dtype=np.int64)
        )

    def _ns(self, ticks: Times) -> Times:
        return np.rint(ticks * self._tick_ns).astype(np.int64)


class TimedDistances(NamedTuple):
    """Distances between edges, each with the time of its later edge."""

    times_ns: Times
    distances_ns: Times


class DistanceFollower:
    """Distances of successive edges of the answer line: half-periods, or with one edge kind periods."""

    def __init__(self, tick_ns: float, edges: Edges = Edges.BOTH) -> None:
        self._tick_ns = tick_ns
        self._edges = edges
        self._last: int | None = None

    def add(self, events: Events) -> TimedDistances:
        """The distances that end among these events. None is made across a block that was dropped."""
        if events.missing:
            self._last = None
        chosen = events.answer_line
        if self._edges is not Edges.BOTH:
            chosen = chosen & (events.high == (self._edges is Edges.RISING))
        ticks = events.ticks[chosen].astype(np.int64)
        if self._last is not None:
            ticks = np.concatenate(([self._last], ticks))
        if len(ticks):
            self._last = int(ticks[-1])
        times_ns, distances_ns = (
            np.rint(part * self._tick_ns).astype(np.int64) for part in (ticks[1:], np.diff(ticks))
        )
        return TimedDistances(times_ns, distances_ns)
