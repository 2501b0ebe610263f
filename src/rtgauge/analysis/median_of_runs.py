# SPDX-License-Identifier: MIT
"""Bounds the median of several runs or boots, in the order in which they were measured.

The mean cannot be bounded from few runs: if one boot in seven is slow, 12 boots often show no slow one. Half
of all runs are on either side of the median, so a rare state hardly moves it. `bench/bounds.py` measures how
often the bounds hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtgauge.analysis.quantile_interval import LEAST_WINDOWS, cautious_error_of_sum

LEAST_RUNS = 3
"""Fewer runs give no interval: two contain the median in only 0.91 of the cases if runs resemble the last."""
FEW_RUNS = 6
"""Fewer runs than this show dependence with one degree of freedom, and others with two."""
PROBABILITY = 0.975
"""The probability at each end of a two-sided interval at 95 %."""


class MedianError(NamedTuple):
    """A median, its standard error, and the degrees of freedom of this error."""

    median: float
    error: float
    freedom: int


def median_error(values: Sequence[float]) -> MedianError | None:
    """Return the median of runs and its error, at least that of the mean of independent runs. None for fewer
    than LEAST_RUNS.
    """
    if len(values) < LEAST_RUNS:
        return None
    every = np.asarray(values, dtype=np.float64)
    error, freedom = cautious_error_of_sum(every - every.mean(), 1 if len(values) < FEW_RUNS else 2)
    return MedianError(float(np.median(every)), error / len(values), freedom)


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the median of runs, in their unit; None for fewer than LEAST_RUNS.

    From 20 runs on, it lies between two of the runs, at ranks that allow for dependence (Woodruff, see
    `quantile_interval`), so it holds for any distribution. Fewer runs give an interval by Student's t.
    """
    from scipy.special import stdtrit

    estimate = median_error(values)
    if estimate is None:
        return None
    number = len(values)
    if number < LEAST_WINDOWS:
        half = float(stdtrit(estimate.freedom, PROBABILITY)) * estimate.error
        return estimate.median - half, estimate.median + half
    ordered = np.sort(values)
    error, freedom = cautious_error_of_sum(np.sign(np.asarray(values) - estimate.median) / 2)
    ranks = float(stdtrit(freedom, PROBABILITY)) * max(error, math.sqrt(number) / 2)
    rank = max(1, math.floor((number + 1) / 2 - ranks))
    return float(ordered[rank - 1]), float(ordered[number - rank])
