# SPDX-License-Identifier: MIT
"""Measures how large the difference between two distributions is, regardless of the number of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.quantile_difference import welch_freedom

Histogram = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def wasserstein(
    values_a: npt.ArrayLike, counts_a: npt.ArrayLike, values_b: npt.ArrayLike, counts_b: npt.ArrayLike
) -> float:
    """Return the mean distance by which the samples of one side must move to match the other side: the area
    between the two distribution functions, in the unit of the values.

    Each value is weighted by its count. Raises ValueError if a side is empty. wasserstein_distance of
    scipy.stats gives the same value, but takes 0.5 s longer to import, almost half the time of comparing six
    records.
    """
    at_a, at_b = np.asarray(values_a, dtype=np.float64), np.asarray(values_b, dtype=np.float64)
    weights_a, weights_b = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if weights_a.sum() <= 0 or weights_b.sum() <= 0:
        raise ValueError("an empty sample has no distance to another")
    values, inverse = np.unique(np.concatenate([at_a, at_b]), return_inverse=True)
    shares = np.concatenate([weights_a / weights_a.sum(), -weights_b / weights_b.sum()])
    difference = np.cumsum(np.bincount(inverse, weights=shares, minlength=len(values)))
    return float(np.abs(difference[:-1]) @ np.diff(values))


def _together(runs: Sequence[Histogram]) -> Histogram:
    return np.concatenate([values for values, _ in runs]), np.concatenate([counts for _, counts in runs])


def _variance(runs: Sequence[Histogram]) -> float:
    """Estimate the mean square distance between the pooled runs and the true distribution, from the distance
    of each run to all the others.

    If runs differ only by a shift, this is the variance of the mean shift. Any other difference increases it.
    """
    number = len(runs)
    distances = [wasserstein(*run, *_together([*runs[:i], *runs[i + 1 :]])) for i, run in enumerate(runs)]
    return sum(distance**2 for distance in distances) / number * (number - 1) / number**2


def wasserstein_interval(
    side: Sequence[Histogram], baseline: Sequence[Histogram], *, alpha: float
) -> tuple[float, float]:
    """Return both ends of the interval of the distance between two sides, in the unit of the values, at
    confidence 1 - `alpha`. Each side has at least two runs, each given as (values, counts).

    By the triangle inequality, the error of the distance is at most the sum of both sides' distances from
    their true distributions. The lower end is at least 0.
    """
    from scipy.special import stdtrit

    distance = wasserstein(*_together(side), *_together(baseline))
    variances = [_variance(side), _variance(baseline)]
    if not any(variances):
        return distance, distance
    error = math.sqrt(sum(variances)) * float(
        stdtrit(welch_freedom(variances, [len(side), len(baseline)]), 1 - alpha / 2)
    )
    return max(0.0, distance - error), distance + error


def cramers_v(statistic: float, count: int, rows: int, columns: int) -> float | None:
    """Return Cramer's V of a table of counts, from its chi-square statistic: 0 (independent) to 1.

    Cramer, Mathematical Methods of Statistics (1946), sec. 21.9: sqrt(chi2 / (n min(rows - 1, columns - 1))).
    Returns None if the table has only one row or column. Raises ValueError if `count` is not positive.
    """
    if count <= 0:
        raise ValueError("a table without counts has no association")
    smaller = min(rows, columns) - 1
    return None if smaller < 1 else math.sqrt(max(statistic, 0.0) / (count * smaller))
