# SPDX-License-Identifier: MIT
"""From edges to what is compared: responses (stimulus to answer) and distances of edges, both over blocks that come one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtgauge.instrument.messages import Edges, Events

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Responses:
    """Of one block: when each stimulus was, and the time to its answer; both in ns, of one length."""

    stimulus_ns: Times
    response_ns: Times


class ResponseFollower:
    """Pairs the answers that the instrument accepted with their stimuli, across blocks. `orphans`: answers whose stimulus was in a block that
    was dropped.
    """

    def __init__(self, tick_ns: float) -> None:
        self._tick_ns = tick_ns
        self._stimulus: int | None = None
        self.orphans = 0

    def add(self, events: Events) -> Responses:
        """The responses whose answer is in this block."""
        if events.missing:
            self._stimulus = None
        ticks = events.ticks.astype(np.int64)
        stimuli = np.flatnonzero(~events.answer_line)
        answers = np.flatnonzero(events.accepted)
        place = np.searchsorted(stimuli, answers) - 1
        before = np.full(len(answers), -1, dtype=np.int64)
        here = place >= 0
        before[here] = ticks[stimuli[place[here]]]
        if self._stimulus is not None:
            before[~here] = self._stimulus
        known = before >= 0
        self.orphans += int(np.count_nonzero(~known))
        if len(stimuli):
            self._stimulus = int(ticks[stimuli[-1]])
        return Responses(
            stimulus_ns=np.rint(before[known] * self._tick_ns).astype(np.int64),
            response_ns=np.rint((ticks[answers] - before)[known] * self._tick_ns).astype(np.int64),
        )


class DistanceFollower:
    """Distances between edges of the answer line that follow one another: half-periods, or with one kind of edge whole periods."""

    def __init__(self, tick_ns: float, edges: Edges = Edges.BOTH) -> None:
        self._tick_ns = tick_ns
        self._edges = edges
        self._last: int | None = None

    def add(self, events: Events) -> tuple[Times, Times]:
        """(time of the later edge, distance) in ns. None is made across a block that was dropped."""
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
        return np.rint(ticks[1:] * self._tick_ns).astype(np.int64), np.rint(np.diff(ticks) * self._tick_ns).astype(np.int64)
