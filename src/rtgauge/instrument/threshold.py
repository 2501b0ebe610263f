# SPDX-License-Identifier: MIT
"""Edges of a sampled line: a threshold with hysteresis, over blocks that come one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtgauge.errors import InputError

# Share of the swing between the two thresholds, and the least swing that is taken for a signal without being
# told (volts).
HYSTERESIS_SHARE = 0.2
LEAST_SWING = 0.2


@dataclass(frozen=True)
class Thresholds:
    """A line is high from `rise` on and low from `fall` down; between them it stays what it was."""

    rise: float
    fall: float

    @classmethod
    def around(cls, threshold: float, hysteresis: float) -> Thresholds:
        """Raises InputError for a negative hysteresis."""
        if not hysteresis >= 0:
            raise InputError(f"a hysteresis of {hysteresis} is negative; give 0 or more")
        return cls(threshold + hysteresis / 2, threshold - hysteresis / 2)

    @classmethod
    def of_levels(
        cls, low: float, high: float, name: str, threshold: float | None, hysteresis: float | None
    ) -> Thresholds:
        """Halfway between the least and the largest level if none is given.

        Raises InputError if the line hardly moves.
        """
        if threshold is None:
            if high - low < LEAST_SWING:
                raise InputError(
                    f"{name} stays between {low:g} and {high:g}: no edges; if that is a signal, give"
                    " its threshold and hysteresis"
                )
            threshold = (low + high) / 2
        return cls.around(threshold, HYSTERESIS_SHARE * (high - low) if hysteresis is None else hysteresis)


class Crossings(NamedTuple):
    """Edges of a line: when, in the unit in which the samples came, and whether rising."""

    times: NDArray[np.float64]
    rising: NDArray[np.bool_]


class Slicer:
    """Finds the edges of one line.

    The level before the first sample beyond a threshold is not known: that one is no edge.
    """

    def __init__(self, thresholds: Thresholds, *, interpolate: bool) -> None:
        """`interpolate`: the time of an edge is where the line between two samples crosses the threshold, not
        that of the later sample.
        """
        self._thresholds = thresholds
        self._interpolate = interpolate
        self._state = 0
        self._last: tuple[float, float] | None = None

    def add(self, times: NDArray[np.float64], values: NDArray[np.float64]) -> Crossings:
        """The edges among these samples; neither times nor values may be NaN."""
        if len(times) == 0:
            return Crossings(np.empty(0), np.empty(0, dtype=bool))
        rise, fall = self._thresholds.rise, self._thresholds.fall
        sides = np.where(values >= rise, 1, np.where(values <= fall, -1, 0)).astype(np.int8)
        known = np.maximum.accumulate(np.where(sides != 0, np.arange(len(sides)), -1))
        states = np.where(known >= 0, sides[known], self._state)
        before = np.concatenate(([self._state], states[:-1]))
        places = np.flatnonzero((states != before) & (before != 0))
        rising = states[places] > 0
        edges = times[places]
        if self._interpolate and len(places):
            last_time, last_value = self._last or (times[0], values[0])
            previous_times = np.where(places > 0, times[places - 1], last_time)
            previous_values = np.where(places > 0, values[places - 1], last_value)
            level = np.where(rising, rise, fall)
            share = (level - previous_values) / (values[places] - previous_values)
            edges = previous_times + share * (edges - previous_times)
        self._state = int(states[-1])
        self._last = (float(times[-1]), float(values[-1]))
        return Crossings(edges, rising)
