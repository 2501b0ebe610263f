# SPDX-License-Identifier: MIT
"""Tells by a few runs on which side of a change a commit lies: a sequential likelihood ratio test (Wald
1945).

A round is one run of the commit, of the last good and of the first bad end, in random order, so that what
drifts falls on all three. The spread of runs is not known but estimated, so that the ratio is that of
Student's t.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rtgauge.analysis.gate import ALARM

if TYPE_CHECKING:
    from collections.abc import Sequence

ERROR = 0.02
"""The chance that the whole search ends at a wrong commit, if one commit made the change."""
MOST_ROUNDS = 12
"""A commit that so many rounds do not place lies between the ends."""


class Place(enum.StrEnum):
    """Like which end a commit is."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"
    BETWEEN = "between"


class Round(NamedTuple):
    """The values (ns) of one round."""

    commit: float
    good: float
    bad: float


def error_of_each(commits: int) -> float:
    """The chance of a wrong place that each decision may have, in a search among so many commits.

    Together with the gate of the ends all decisions have ERROR (Bonferroni).
    """
    return (ERROR - ALARM) / (math.ceil(math.log2(max(commits, 2))) + 1)


def place(ends: Sequence[tuple[float, float]], rounds: Sequence[Round], error: float) -> Place:
    """Like which end the commit of `rounds` is.

    `ends`: (good, bad) in ns, of every pair of runs of the ends outside of these rounds, at least 2; `error`:
    the chance of a wrong place.
    """
    pairs = np.log([*ends, *((each.good, each.bad) for each in rounds)])
    steps = pairs[:, 1] - pairs[:, 0]
    half, spread, degrees = steps.mean() / 2, steps.std(ddof=1) / math.sqrt(2), len(steps) - 1
    values = np.log(rounds)
    offset = float((values[:, 0] - values[:, 1:].mean(axis=1)).mean())
    # a run, less the mean of two
    scale = spread * math.sqrt(1.5 / len(rounds))
    if scale == 0:
        return Place.BAD if offset * half > 0 else Place.GOOD
    ratio = _log_density((offset - half) / scale, degrees) - _log_density((offset + half) / scale, degrees)
    if abs(ratio) >= math.log((1 - error) / error):
        return Place.BAD if ratio > 0 else Place.GOOD
    return Place.OPEN if len(rounds) < MOST_ROUNDS else Place.BETWEEN


def _log_density(t: float, degrees: int) -> float:
    """Of Student's t, up to a constant."""
    return -(degrees + 1) / 2 * math.log1p(t * t / degrees)
