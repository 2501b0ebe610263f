# SPDX-License-Identifier: MIT
"""Utilisation bounds: quick, sufficient tests for rate-monotonic priorities. Compared as exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from rtgauge.schedulability.model.task import is_rate_monotonic, utilisation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.schedulability.model.task import Task


def liu_layland_bound(count: int) -> float:
    """n (2^(1/n) - 1): a set of n tasks below this utilisation is schedulable.

    Liu and Layland, J. ACM 20 (1973), theorem 5.
    """
    return count * math.expm1(math.log(2) / count)


def within_liu_layland(tasks: Sequence[Task]) -> bool:
    """U <= n (2^(1/n) - 1), compared without rounding as (1 + U/n)^n <= 2."""
    return (1 + utilisation(tasks) / len(tasks)) ** len(tasks) <= 2


def hyperbolic_product(tasks: Sequence[Task]) -> Fraction:
    """The product of (U_i + 1)."""
    return math.prod((1 + Fraction(task.execution_ns, task.period_ns) for task in tasks), start=Fraction(1))


def within_hyperbolic(tasks: Sequence[Task]) -> bool:
    """Product of (U_i + 1) <= 2.

    Bini, Buttazzo and Buttazzo, Rate monotonic analysis: the hyperbolic bound, IEEE Trans. Computers 52
    (2003).
    """
    return hyperbolic_product(tasks) <= 2


def why_not_applicable(ordered: Sequence[Task]) -> str | None:
    """Why the bounds do not apply to these tasks (the highest priority first); None if they do."""
    if any(task.deadline_ns < task.period_ns for task in ordered):
        return "a deadline is before the end of its period"
    if not is_rate_monotonic(ordered):
        return "priorities are not rate-monotonic"
    if any(task.jitter_ns or task.blocking_ns for task in ordered):
        return "tasks have release jitter or blocking"
    return None
