# SPDX-License-Identifier: MIT
"""How large a difference between two distributions is, whatever the number of samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def wasserstein(values_a: npt.ArrayLike, counts_a: npt.ArrayLike, values_b: npt.ArrayLike, counts_b: npt.ArrayLike) -> float:
    """The mean distance by which the samples of one side must be moved to become the other: the area between the two distribution functions.

    In the unit of the values; every value counts with its weight. Raises ValueError where a side is empty. wasserstein_distance of scipy.stats
    gives the same, and takes 0.5 s longer to import, near half of what a comparison of six records takes.
    """
    at_a, at_b = np.asarray(values_a, dtype=np.float64), np.asarray(values_b, dtype=np.float64)
    weights_a, weights_b = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if weights_a.sum() <= 0 or weights_b.sum() <= 0:
        raise ValueError("an empty sample has no distance to another")
    values, inverse = np.unique(np.concatenate([at_a, at_b]), return_inverse=True)
    shares = np.concatenate([weights_a / weights_a.sum(), -weights_b / weights_b.sum()])
    difference = np.cumsum(np.bincount(inverse, weights=shares, minlength=len(values)))
    return float(np.abs(difference[:-1]) @ np.diff(values))


def cramers_v(statistic: float, count: int, rows: int, columns: int) -> float | None:
    """Cramer's V of a table of counts, from its chi-square statistic: 0 (no association) to 1 (complete). None where the table has one row or column.

    Cramer, Mathematical Methods of Statistics (1946), sec. 21.9: sqrt(chi2 / (n min(rows - 1, columns - 1))). Raises ValueError for no counts.
    """
    if count <= 0:
        raise ValueError("a table without counts has no association")
    smaller = min(rows, columns) - 1
    return None if smaller < 1 else math.sqrt(max(statistic, 0.0) / (count * smaller))
