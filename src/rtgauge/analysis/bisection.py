# SPDX-License-Identifier: MIT
"""Decides from a few runs which end of a range a commit behaves like: a sequential likelihood ratio test
(Wald 1945).

A round runs the commit, the good end and the bad end once each, in random order, so that drift affects all
three. The spread of runs is estimated, not known, so the ratio uses Student's t.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtgauge.analysis.gate import ALARM, RESOLUTION

ERROR = 0.02
"""The chance that the whole search ends at the wrong commit, if one commit made the change."""
MOST_ROUNDS = 12
"""The most rounds for one commit; if they do not place it, it lies between the ends."""


class Place(enum.StrEnum):
    """Which end a commit behaves like."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"
    BETWEEN = "between"


class Round(NamedTuple):
    """The value (ns) of each commit's run in one round."""

    commit: float
    good: float
    bad: float


def error_of_each(commits: int) -> float:
    """Return the allowed chance of placing one commit wrongly, in a search among `commits` commits.

    The chance of any error, including one of the gate between the ends, is then at most ERROR (Bonferroni).
    """
    return (ERROR - ALARM) / (math.ceil(math.log2(max(commits, 2))) + 1)


def place(ends: Sequence[tuple[float, float]], rounds: Sequence[Round], error: float) -> Place:
    """Decide which end the commit of `rounds` behaves like.

    `ends`: (good, bad) in ns for each pair of runs of the ends outside these rounds; at least 2 pairs.
    `error`: the allowed chance of a wrong place.
    """
    pairs = np.log([*ends, *((each.good, each.bad) for each in rounds)])
    steps = pairs[:, 1] - pairs[:, 0]
    half, degrees = steps.mean() / 2, len(steps) - 1
    # A value rounded to a bin has at least the standard deviation of a uniform distribution over the bin.
    spread = max(steps.std(ddof=1) / math.sqrt(2), RESOLUTION / math.sqrt(12))
    values = np.log(rounds)
    offset = float((values[:, 0] - values[:, 1:].mean(axis=1)).mean())
    # one run minus the mean of two
    scale = spread * math.sqrt(1.5 / len(rounds))
    ratio = _log_density((offset - half) / scale, degrees) - _log_density((offset + half) / scale, degrees)
    if abs(ratio) >= math.log((1 - error) / error):
        return Place.BAD if ratio > 0 else Place.GOOD
    return Place.OPEN if len(rounds) < MOST_ROUNDS else Place.BETWEEN


def _log_density(t: float, degrees: int) -> float:
    """Return the log density of Student's t, up to a constant."""
    return -(degrees + 1) / 2 * math.log1p(t * t / degrees)
