# SPDX-License-Identifier: MIT
"""A smooth function of a few variables made least, from its gradient: Newton's method, damped after Levenberg and Marquardt.

For functions that are infinite outside of a region, which the minimisers of scipy that use a gradient do not take, and that are minimised hundreds of times.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    Gradient = Callable[[FloatArray], tuple[float, FloatArray]]

STEP = 1e-5
MOST_STEPS = 100
LEAST_DAMPING, MOST_DAMPING = 1e-9, 1e12


def _curvature(function: Gradient, at: FloatArray, gradient: FloatArray) -> FloatArray:
    """The second derivatives by differences of the gradient; to the other side where the first one is outside."""
    rows: list[FloatArray] = []
    for i in range(len(at)):
        for step in (STEP, -STEP):
            beside = at.copy()
            beside[i] += step
            value, other = function(beside)
            if math.isfinite(value):
                rows.append((other - gradient) / step)
                break
        else:
            rows.append(np.eye(len(at))[i])
    matrix = np.array(rows)
    return (matrix + matrix.T) / 2


def newton(function: Gradient, start: FloatArray, *, tolerance: float) -> tuple[FloatArray, float]:
    """Where the function is least and its value there, to about `tolerance` in the value; the start itself where the function is infinite there.

    `function` gives its value, infinite outside of its region, and its gradient. It never ends above the value at `start`.
    """
    at = start
    value, gradient = function(at)
    damping = 1e-3
    if not math.isfinite(value):
        return at, value
    for _ in range(MOST_STEPS):
        values, vectors = np.linalg.eigh(_curvature(function, at, gradient))
        bent = np.maximum(np.abs(values), 1e-8)  # down along every axis, also where the function is not convex
        along = vectors.T @ gradient
        if float((along**2 / bent).sum()) / 2 < tolerance / 10:  # so much is still to be gained, and a short step is not mistaken for the end
            break
        while damping < MOST_DAMPING:
            beside = at - vectors @ (along / (bent * (1 + damping)))
            new, slope = function(beside)
            if new < value:
                at, value, gradient = beside, new, slope
                damping = max(LEAST_DAMPING, damping / 10)
                break
            damping = max(damping * 10, 0.1)
        else:
            break
    return at, value


def crossing(function: Callable[[float], float], below: tuple[float, float], beyond: tuple[float, float], *, tolerance: float) -> float:
    """Where a function that is nearly straight is 0, to `tolerance` of the place or absolutely; both ends are (place, value), values of opposite signs.

    The rule of false position, an end that stays twice counting half (Dowell and Jarratt, A modified regula falsi method, 1971).
    """
    (a, at_a), (b, at_b) = below, beyond
    at = b
    for _ in range(MOST_STEPS):
        before, at = at, b - at_b * (b - a) / (at_b - at_a)
        if abs(at - before) <= tolerance * max(1.0, abs(at)):
            break
        value = function(at)
        if value == 0:
            break
        if (value > 0) == (at_b > 0):
            at_a /= 2
        else:
            a, at_a = b, at_b
        b, at_b = at, value
    return at
