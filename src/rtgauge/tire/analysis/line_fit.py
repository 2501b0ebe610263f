# SPDX-License-Identifier: MIT
"""A straight line through step times over n: slope and intercept with intervals, and the residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.tire.analysis.estimate import Estimate, with_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

PASSES = 5
"""How often the weights are taken anew from the fitted line; they converge long before."""
LEAST_SIZES = 3


@dataclass(frozen=True)
class Line:
    """y = intercept + slope * n, fitted with weights 1/y², since step times scatter in proportion to
    themselves.

    `covariance`, shape (2, 2), of (intercept, slope); `means` (ns), the measured ones at `nodes`, and
    `residuals`, shares of the fitted values: shape (n,).
    """

    intercept_ns: float
    slope_ns: float
    covariance: npt.NDArray[np.float64]
    dof: int
    measurements: int
    nodes: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    residuals: npt.NDArray[np.float64]

    @property
    def slope(self) -> Estimate:
        """ns for each node."""
        return with_error(self.slope_ns, float(self.covariance[1, 1]), self.dof, self.measurements)

    @property
    def intercept(self) -> Estimate:
        """ns for each step, whatever its size."""
        return with_error(self.intercept_ns, float(self.covariance[0, 0]), self.dof, self.measurements)

    @property
    def scatter(self) -> float:
        """Standard deviation of the residuals, a share of the fitted value."""
        return float(np.sqrt(np.sum(self.residuals**2) / self.dof))

    def at(self, nodes: float) -> float:
        """The fitted step time (ns)."""
        return self.intercept_ns + self.slope_ns * nodes


def fit(nodes: Sequence[float], step_ns: Sequence[float]) -> Line | None:
    """The line through the means of at least three sizes; None if there are fewer.

    Repeats of a size are averaged first, so that what bends the line (a cache that is left, say) widens the
    intervals and is not taken for known the better the more often it was repeated. Times are positive.
    """
    every = np.asarray(nodes, dtype=np.float64)
    x, where = np.unique(every, return_inverse=True)
    if len(x) < LEAST_SIZES:
        return None
    y = np.bincount(where, weights=np.asarray(step_ns, dtype=np.float64)) / np.bincount(where)
    line = _weighted(x, y, y, len(every))
    for _ in range(PASSES):
        # A line that runs below zero at small n has no weight to give there.
        line = _weighted(x, y, np.maximum(line.intercept_ns + line.slope_ns * x, y.min() / 10), len(every))
    return line


def combine(terms: Sequence[tuple[float, Line]]) -> Line | None:
    """The line through a sum of lines' means, each with its factor, at the sizes that all have; None if these
    are fewer than three.

    Weights go with the first of them. What bends all alike (a cache that is left) cancels at each size, as it
    would not in a sum of slopes.
    """
    common = [size for size in terms[0][1].nodes.tolist() if all(size in line.nodes for _, line in terms)]
    if len(common) < LEAST_SIZES:
        return None
    x = np.asarray(common, dtype=np.float64)
    y = np.sum([factor * line.means[np.isin(line.nodes, x)] for factor, line in terms], axis=0)
    first = terms[0][1]
    return _weighted(x, y, first.means[np.isin(first.nodes, x)], sum(line.measurements for _, line in terms))


def _weighted(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], scale: npt.NDArray[np.float64], measurements: int
) -> Line:
    """Least squares with errors in proportion to `scale`."""
    coefficients, covariance = np.polyfit(x, y, 1, w=1 / scale, cov=True)
    slope, intercept = (float(value) for value in coefficients)
    residuals = (y - intercept - slope * x) / scale
    return Line(
        intercept,
        slope,
        np.asarray(covariance, dtype=np.float64)[::-1, ::-1],
        len(x) - 2,
        measurements,
        x,
        y,
        residuals,
    )
