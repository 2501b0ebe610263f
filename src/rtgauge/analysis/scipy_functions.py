# SPDX-License-Identifier: MIT
"""Gives types to a function of scipy that has none, and imports its module when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast


def root(function: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Return a root between `low` and `high`, to `tolerance` (relative). The values there differ in sign."""
    from scipy import optimize

    return float(cast("Any", optimize).brentq(function, low, high, rtol=tolerance))
