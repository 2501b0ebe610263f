# SPDX-License-Identifier: MIT
"""Decides from a few runs whether a commit behaves like the good or the bad end of a range, by a sequential
likelihood ratio test (Wald 1945).

Each round runs the commit, the good end and the bad end once, in random order, so that drift affects all
three. The ratio uses Student's t, because the spread between runs is only estimated.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtgauge.analysis.gate_test import ALARM, RESOLUTION

ERROR = 0.02
"""The chance that the search names the wrong commit, if a single commit made the change."""
MOST_ROUNDS = 12
"""The most rounds for one commit. If they do not decide, the commit counts as between the ends."""


class Placement(enum.StrEnum):
    """What the rounds say about a commit: it behaves like one end, it is still open, or it lies between the
    ends.
    """

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
    """Return the allowed chance of misplacing one commit in a search among `commits` commits.

    The chance of any error in the search, including the first gate between the two ends, is then at most
    ERROR (Bonferroni).
    """
    return (ERROR - ALARM) / (math.ceil(math.log2(max(commits, 2))) + 1)


def place(ends: Sequence[tuple[float, float]], rounds: Sequence[Round], error: float) -> Placement:
    """Decide which end the commit measured in `rounds` (values in ns) behaves like: GOOD or BAD; OPEN if more
    rounds are needed; BETWEEN after MOST_ROUNDS without a decision.

    `ends`: (good, bad) in ns of each earlier pair of runs of the two ends; at least 2 pairs. `error`: the
    allowed chance of a wrong decision.
    """
    pairs = np.log([*ends, *((each.good, each.bad) for each in rounds)])
    steps = pairs[:, 1] - pairs[:, 0]
    half, degrees = steps.mean() / 2, len(steps) - 1
    # A value rounded to a bin has at least the standard deviation of a uniform distribution over the bin.
    spread = max(steps.std(ddof=1) / math.sqrt(2), RESOLUTION / math.sqrt(12))
    values = np.log(rounds)
    offset = float((values[:, 0] - values[:, 1:].mean(axis=1)).mean())
    # A run minus the mean of two others has 1.5 times the variance of a run.
    scale = spread * math.sqrt(1.5 / len(rounds))
    ratio = _log_density((offset - half) / scale, degrees) - _log_density((offset + half) / scale, degrees)
    if abs(ratio) >= math.log((1 - error) / error):
        return Placement.BAD if ratio > 0 else Placement.GOOD
    return Placement.OPEN if len(rounds) < MOST_ROUNDS else Placement.BETWEEN


def _log_density(t: float, degrees: int) -> float:
    """Return the logarithm of the density of Student's t, up to a constant."""
    return -(degrees + 1) / 2 * math.log1p(t * t / degrees)
