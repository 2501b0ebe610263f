# SPDX-License-Identifier: MIT
"""Gives types to functions of scipy that have none, and imports their modules when they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Minimum(NamedTuple):
    """The place of a minimum, and the value there."""

    at: FloatArray
    value: float


class TestResult(NamedTuple):
    """The statistic of a test, and its p-value."""

    statistic: float
    p_value: float


def _optimize() -> Any:
    from scipy import optimize

    return cast("Any", optimize)


def _stats() -> Any:
    from scipy import stats

    return cast("Any", stats)


def minimise(function: Callable[[FloatArray], float], start: Sequence[float], *, tolerance: float) -> Minimum:
    """Return a minimum of a function that is infinite outside a region, with its value to `tolerance`."""
    options = {"xatol": 1e-6, "fatol": tolerance, "maxiter": 2000, "maxfev": 4000}
    with np.errstate(invalid="ignore"):  # it subtracts infinite values
        minimum = _optimize().minimize(function, start, method="Nelder-Mead", options=options)
    return Minimum(np.asarray(minimum.x, dtype=np.float64), float(minimum.fun))


def root(function: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Return a root between `low` and `high`, to `tolerance` (relative). The values there differ in sign."""
    return float(_optimize().brentq(function, low, high, rtol=tolerance))


def kendall(x: npt.ArrayLike, y: npt.ArrayLike) -> TestResult:
    """Return Kendall's tau, with the two-sided p-value of the normal approximation."""
    return _result(_stats().kendalltau(x, y, method="asymptotic"))


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> TestResult:
    """Return Spearman's rank correlation, two-sided."""
    return _result(_stats().spearmanr(x, y))


def kruskal_wallis(samples: Sequence[npt.ArrayLike]) -> TestResult:
    """Test whether samples have one distribution (Kruskal and Wallis)."""
    return _result(_stats().kruskal(*samples))


def binomial_quantile(probability: float, count: int, share: float) -> int:
    """Return the smallest k with P(Binomial(count, share) <= k) >= `probability`."""
    return int(_stats().binom.ppf(probability, count, share))


def _result(result: Any) -> TestResult:
    return TestResult(float(result.statistic), float(result.pvalue))
