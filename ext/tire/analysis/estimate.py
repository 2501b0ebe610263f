# SPDX-License-Identifier: MIT
"""Computes estimates with confidence intervals: medians, ratios, and lines by weighted least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_high, median_low

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.median_of_runs import median_error, median_interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with a 95 % confidence interval from `low` to `high` (None: too few measurements).

    `measurements`: the number of measurements that the estimate is based on.
    """

    value: float
    low: float | None = None
    high: float | None = None
    measurements: int = 1


def student(dof: float) -> float:
    """Return the two-sided 95 % quantile of Student's t with `dof` degrees of freedom."""
    from scipy.special import stdtrit  # importing scipy.stats takes a second

    return float(stdtrit(dof, 0.5 + CONFIDENCE / 2))


def with_error(value: float, variance: float, dof: float, measurements: int) -> Estimate:
    """Return an estimate from its variance with `dof` degrees of freedom; without an interval if
    `dof` is 0.
    """
    if dof <= 0:
        return Estimate(value=value, measurements=measurements)
    half = student(dof) * math.sqrt(variance)
    return Estimate(value=value, low=value - half, high=value + half, measurements=measurements)


def combined_dof(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of summed (variance, dof): Satterthwaite, Biometrics Bulletin 2
    (1946).
    """
    total = sum(variance for variance, _ in parts)
    if any(dof <= 0 for _, dof in parts):
        return 0.0
    below = sum(variance**2 / dof for variance, dof in parts)
    return total**2 / below if below > 0 else min(dof for _, dof in parts)


def _median(values: Sequence[float]) -> float:
    """Return the median of positive values; of an even number, the geometric mean of the middle two."""
    return math.sqrt(median_low(values) * median_high(values))


def median_of(values: Sequence[float]) -> Estimate:
    """Return the median of repeats with positive values, in the order of measurement."""
    low, high = median_interval(list(map(math.log, values))) or (None, None)
    return Estimate(
        value=_median(values),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        measurements=len(values),
    )


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Return the ratio of two medians of positive values, each in the order of measurement. Its interval
    comes from their logarithms, with the fewer degrees of freedom of both, and is never below zero.
    """
    top, bottom = (median_error(list(map(math.log, values))) for values in (above, below))
    value, number = _median(above) / _median(below), len(above) + len(below)
    if top is None or bottom is None:
        return Estimate(value=value, measurements=number)
    half = student(min(top.freedom, bottom.freedom)) * math.hypot(top.error, bottom.error)
    return Estimate(
        value=value, low=value * math.exp(-half), high=value * math.exp(half), measurements=number
    )


@dataclass(frozen=True)
class Uncertain:
    """A value with the variance of its error, and the degrees of freedom of that variance."""

    value: float
    variance: float
    dof: float


def quotient(above: Uncertain, below: Uncertain, covariance: float, measurements: int) -> Estimate | None:
    """Return above / below with an interval from Fieller's theorem (1954). None if either is not above zero;
    without an interval if `below` may be zero.
    """
    if above.value <= 0 or below.value <= 0:
        return None
    value = above.value / below.value
    dof = min(above.dof, below.dof)
    if dof <= 0:
        return Estimate(value=value, measurements=measurements)
    t2 = student(dof) ** 2
    a = below.value**2 - t2 * below.variance
    b = below.value * above.value - t2 * covariance
    c = above.value**2 - t2 * above.variance
    inner = b * b - a * c
    if a <= 0 or inner < 0:
        return Estimate(value=value, measurements=measurements)
    root = math.sqrt(inner)
    return Estimate(value=value, low=max(0.0, (b - root) / a), high=(b + root) / a, measurements=measurements)


PASSES = 5
"""How often the weights are recomputed from the fitted line. They converge much earlier."""
LEAST_SIZES = 3


@dataclass(frozen=True)
class WeightedLine:
    """A line y = intercept + slope * n, fitted with weights 1/y², because step times scatter in proportion to
    their size. `covariance`: of (intercept, slope), shape (2, 2). `medians` (ns) at `nodes`, and `residuals`
    relative to the fitted values, have shape (n,).
    """

    intercept_ns: float
    slope_ns: float
    covariance: npt.NDArray[np.float64]
    dof: int
    measurements: int
    nodes: npt.NDArray[np.float64]
    medians: npt.NDArray[np.float64]
    residuals: npt.NDArray[np.float64]

    @property
    def slope(self) -> Estimate:
        """The slope in ns per node."""
        return with_error(self.slope_ns, float(self.covariance[1, 1]), self.dof, self.measurements)

    @property
    def intercept(self) -> Estimate:
        """The part of a step's time (ns) that does not depend on the size."""
        return with_error(self.intercept_ns, float(self.covariance[0, 0]), self.dof, self.measurements)


def fit(nodes: Sequence[float], step_ns: Sequence[float]) -> WeightedLine | None:
    """Fit a line through the medians of at least three sizes; None if there are fewer. Times are positive.

    A size counts with the median of its repeats. So if the line bends, for example at the end of a cache, the
    intervals get wider, and more repeats cannot hide this.
    """
    every = np.asarray(nodes, dtype=np.float64)
    x, where = np.unique(every, return_inverse=True)
    if len(x) < LEAST_SIZES:
        return None
    times = np.asarray(step_ns, dtype=np.float64)
    y = np.array([np.median(times[where == size]) for size in range(len(x))])
    line = _weighted(x, y, y, len(every))
    for _ in range(PASSES):
        # Where a line is below zero, at small n, it gives no weight.
        line = _weighted(x, y, np.maximum(line.intercept_ns + line.slope_ns * x, y.min() / 10), len(every))
    return line


def combine(terms: Sequence[tuple[float, WeightedLine]]) -> WeightedLine | None:
    """Fit a line to a sum of lines' medians, each with its factor, at their common sizes; None if there are
    fewer than three.

    The weights come from the first line. A bend that all lines share (at the end of a cache) cancels at each
    size. It would not cancel in a sum of slopes.
    """
    common = [size for size in terms[0][1].nodes.tolist() if all(size in line.nodes for _, line in terms)]
    if len(common) < LEAST_SIZES:
        return None
    x = np.asarray(common, dtype=np.float64)
    y = np.sum([factor * line.medians[np.isin(line.nodes, x)] for factor, line in terms], axis=0)
    first = terms[0][1]
    return _weighted(
        x, y, first.medians[np.isin(first.nodes, x)], sum(line.measurements for _, line in terms)
    )


def _weighted(
    x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], scale: npt.NDArray[np.float64], measurements: int
) -> WeightedLine:
    """Fit by least squares. Errors are proportional to `scale`."""
    coefficients, covariance = np.polyfit(x, y, 1, w=1 / scale, cov=True)
    slope, intercept = (float(value) for value in coefficients)
    residuals = (y - intercept - slope * x) / scale
    exact = np.asarray(covariance, dtype=np.float64)[::-1, ::-1]
    return WeightedLine(intercept, slope, exact, len(x) - 2, measurements, x, y, residuals)
