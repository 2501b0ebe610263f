# SPDX-License-Identifier: MIT
"""Gives a second opinion on rare latencies, from a generalised Pareto distribution of excesses over a
threshold.

Coles, An Introduction to Statistical Modeling of Extreme Values (2001), ch. 4. The likelihood is searched
along one parameter, as in Grimshaw, Computing Maximum Likelihood Estimates for the Generalized Pareto
Distribution, Technometrics 35 (1993). Each activation counts here, whereas the block maxima of extreme_value
count a burst once. scipy.stats.genpareto.fit takes 30 to 100 times as long and gives no interval for a level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.chi_square import critical_value

FloatArray = npt.NDArray[np.float64]

LEAST_PEAKS, MOST_PEAKS = 50, 500
SHARE = 500
"""One in this many activations is a peak, but at least LEAST_PEAKS and at most MOST_PEAKS are."""
LEAST_DIFFERENT = 10
"""Peaks with fewer different values (bins) than this do not determine a shape."""
LEAST_SHAPE, LARGEST_SHAPE = -0.95, 3.0


@dataclass(frozen=True)
class Pareto:
    """A distribution of the excesses over `threshold` (ns), which a share `rate` of all activations exceeds.

    `scale`: in ns. `spread`: scales, shapes, and the log-likelihood minus its maximum; each has the shape
    (shapes, scales).
    """

    threshold: float
    rate: float
    peaks: int
    scale: float
    shape: float
    spread: tuple[FloatArray, FloatArray, FloatArray]

    def level(self, activations: int) -> float:
        """Return the value (ns) exceeded once in `activations` (at least 1 / rate)."""
        return float(
            _level(self.threshold, self.rate * activations, np.float64(self.scale), np.float64(self.shape))
        )

    def interval(self, activations: int, confidence: float) -> tuple[float, float]:
        """Return both ends (ns) of the profile-likelihood interval of the level: the range of levels over all
        parameters whose loss of likelihood stays within the chi-square quantile.
        """
        scales, shapes, loss = self.spread
        levels = _level(self.threshold, self.rate * activations, scales, shapes)
        levels = levels[loss >= -critical_value(1, 1 - confidence) / 2]
        point = self.level(activations)
        return (
            (point, point)
            if not levels.size
            else (min(point, float(levels.min())), max(point, float(levels.max())))
        )


def _level(
    threshold: float,
    factor: float,
    scale: npt.NDArray[np.float64] | np.float64,
    shape: npt.NDArray[np.float64] | np.float64,
) -> FloatArray:
    bent = np.where(np.abs(shape) < 1e-9, 1e-9, shape)
    return threshold + scale * np.expm1(bent * math.log(factor)) / bent


def _log_likelihood(
    excess: FloatArray, counts: FloatArray, scale: FloatArray, shape: FloatArray
) -> FloatArray:
    """Return the log-likelihood for scales and shapes, both of shape (...); -inf for an impossible excess."""
    bent = np.where(np.abs(shape) < 1e-6, 1e-6, shape)
    inner = 1 + (bent / scale)[..., None] * excess
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(inner) @ counts
    value = -counts.sum() * np.log(scale) - (1 + 1 / bent) * logs
    return np.where((inner > 0).all(axis=-1), value, -np.inf)


def fit(excess: npt.ArrayLike, counts: npt.ArrayLike) -> tuple[float, float]:
    """Return the maximum-likelihood (scale, shape) for excesses, shape (n,), each seen `counts` times. The
    shape is limited to -0.95 ... 3.

    For each theta = shape / scale, the best shape is mean(log(1 + theta excess)), so only theta is searched.
    Raises ValueError if no excess is above 0.
    """
    values, weights = np.asarray(excess, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if not len(values) or values.max() <= 0:
        raise ValueError("a distribution cannot be fitted without excesses")
    largest, mean = float(values.max()), float(np.average(values, weights=weights))

    def profile(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        shape = np.log1p(theta[:, None] * values) @ weights / weights.sum()
        usable = (shape >= LEAST_SHAPE) & (shape <= LARGEST_SHAPE)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(usable, -np.log(shape / theta) - shape - 1, -np.inf)
        return value, shape

    positive = np.geomspace(1e-6, 1e4, 200) / mean
    negative = -(1 - np.geomspace(1e-9, 1, 200)[:-1]) / largest
    grid = np.concatenate([negative, positive])
    grid = np.sort(grid[grid != 0])
    best_theta, best_shape = math.nan, math.nan
    for _ in range(4):
        value, shape = profile(grid)
        at = int(np.argmax(value))
        best_theta, best_shape = float(grid[at]), float(shape[at])
        low, high = float(grid[max(0, at - 1)]), float(grid[min(len(grid) - 1, at + 1)])
        grid = np.linspace(low, high, 41)
        grid = grid[grid != 0]
    return best_shape / best_theta, best_shape


def estimate(values_ns: npt.ArrayLike, counts: npt.ArrayLike) -> Pareto | None:
    """Fit the distribution to the largest values (ns, ascending), each with its count. Return None if they
    are too few or too alike.
    """
    values, weights = np.asarray(values_ns, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    total = float(weights.sum())
    wanted = min(MOST_PEAKS, max(LEAST_PEAKS, total / SHARE))
    above = np.cumsum(weights[::-1])[::-1] - weights  # the number of larger samples
    at = int(np.argmax(above <= wanted)) if len(values) else 0
    peaks = 0 if not len(values) else int(above[at])
    if len(values) - at - 1 < LEAST_DIFFERENT or peaks < LEAST_PEAKS / 2:
        return None
    excess, times = values[at + 1 :] - values[at], weights[at + 1 :]
    scale, shape = fit(excess, times)
    # The likelihood is computed up to six standard errors to each side of its maximum.
    error = (1 + max(shape, -0.5)) / math.sqrt(peaks)
    shapes = shape + np.linspace(-6, 6, 101) * error
    scales = scale * np.exp(np.linspace(-6, 6, 81) * math.sqrt(2 * (1 + max(shape, -0.4)) / peaks))
    scales, shapes = np.meshgrid(scales, shapes[shapes > LEAST_SHAPE])
    likelihood = _log_likelihood(excess, times, scales, shapes)
    most = float(_log_likelihood(excess, times, np.array([scale]), np.array([shape]))[0])
    return Pareto(
        float(values[at]),
        peaks / total,
        peaks,
        scale,
        shape,
        (scales, shapes, likelihood - max(most, float(likelihood.max()))),
    )
