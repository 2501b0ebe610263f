# SPDX-License-Identifier: MIT
"""Finds edges at a threshold, pairs them into responses, and measures their distances, block by block."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtgauge.errors import InputError
from rtgauge.input_file import open_regular
from rtgauge_ext.instrument.messages import Edges, Events


@contextmanager
def open_edges(path: Path) -> Generator[BufferedReader]:
    """Open a file for reading.

    Raises InputError if the file cannot be read or is not regular. It does not wait for a pipe.
    """
    try:
        with open_regular(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


Times = NDArray[np.int64]
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Responses:
    """The responses of one block, in ns: the time of each answered stimulus and the time to its answer; the
    time of each missed stimulus and how long it stayed unanswered.
    """

    stimulus_ns: Times
    response_ns: Times
    missed_ns: Times
    unanswered_ns: Times


class ResponseFollower:
    """Pairs the instrument's accepted answers with their stimuli, across blocks. A stimulus is missed if no
    answer comes before the next stimulus.

    `orphans`: answers whose stimulus was in a dropped block.
    """

    def __init__(self, tick_ns: float, limit_ns: int, stimuli: Edges = Edges.BOTH) -> None:
        """Make a follower. `limit_ns`: the time after which the instrument counts a stimulus as missed."""
        self._tick_ns = tick_ns
        self._limit_ns = limit_ns
        self._stimuli = stimuli
        self._waiting: int | None = None
        self.orphans = 0

    def add(self, events: Events) -> Responses:
        """Return the stimuli that were answered or missed in this block."""
        if events.missing:
            self._waiting = None  # the answer may be in the dropped block
        ticks = events.ticks.astype(np.int64)
        is_stimulus = ~events.answer_line
        if self._stimuli is not Edges.BOTH:
            is_stimulus &= events.high == (self._stimuli is Edges.RISING)
        stimuli = ticks[is_stimulus]
        answers = ticks[events.accepted]
        # The index of the stimulus that follows each answer. 0 is the stimulus that has waited since the
        # previous block.
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
        """Return the last stimulus as missed, if it has no answer yet.

        Call this at the end, if the instrument counted it as missed: no later stimulus shows that.
        """
        missed = np.asarray([] if self._waiting is None else [self._waiting], dtype=np.int64)
        self._waiting = None
        return Responses(
            NOTHING, NOTHING, self._ns(missed), np.full(len(missed), self._limit_ns, dtype=np.int64)
        )

    def _ns(self, ticks: Times) -> Times:
        return np.rint(ticks * self._tick_ns).astype(np.int64)


class TimedDistances(NamedTuple):
    """The distances between edges, each with the time of the later edge."""

    times: Times
    distances: Times


class Distances:
    """Measures the distances of successive edges of one line: half-periods, or periods if all edges are of
    one kind. Times are in any unit.
    """

    def __init__(self, edges: Edges = Edges.BOTH) -> None:
        self._edges = edges
        self._last: int | None = None

    def add(self, times: Times, high: NDArray[np.bool_], *, gap: bool = False) -> TimedDistances:
        """Return the distances that end in these edges, which go to the levels `high`. `gap`: whether edges
        before them were lost, so that no distance may begin there.
        """
        if self._edges is not Edges.BOTH:
            times = times[high == (self._edges is Edges.RISING)]
        if self._last is not None and not gap:
            times = np.concatenate(([self._last], times))
        self._last = int(times[-1]) if len(times) else None if gap else self._last
        return TimedDistances(times[1:], np.diff(times))
