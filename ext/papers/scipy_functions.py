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


def _optimize() -> Any:
    from scipy import optimize

    return cast("Any", optimize)


def stats() -> Any:
    """Return the module scipy.stats, which takes 0.5 s to import."""
    from scipy import stats as module

    return cast("Any", module)


def minimise(function: Callable[[FloatArray], float], start: Sequence[float], *, tolerance: float) -> Minimum:
    """Return a minimum of a function that is infinite outside a region, with its value to `tolerance`."""
    options = {"xatol": 1e-6, "fatol": tolerance, "maxiter": 2000, "maxfev": 4000}
    with np.errstate(invalid="ignore"):  # it subtracts infinite values
        minimum = _optimize().minimize(function, start, method="Nelder-Mead", options=options)
    return Minimum(np.asarray(minimum.x, dtype=np.float64), float(minimum.fun))


def root(function: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Return a root between `low` and `high`, to `tolerance` (relative). The values there differ in sign."""
    return float(_optimize().brentq(function, low, high, rtol=tolerance))
