# SPDX-License-Identifier: MIT
"""A number with its confidence interval: from repeats, from a variance, and of a quotient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from rtgauge.record.model import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


class Estimate(Model):
    """A number with its 95 % confidence interval, `low` to `high` (None: too few measurements)."""

    value: float
    low: float | None = None
    high: float | None = None
    measurements: int = Field(default=1, description="how many measurements it rests on")

    @property
    def differs_from_zero(self) -> bool:
        """Whether zero lies outside of the interval; false if there is none."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def student(dof: float) -> float:
    """The two-sided 95 % quantile of Student's t with `dof` degrees of freedom."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(dof, 0.5 + CONFIDENCE / 2))


def with_error(value: float, variance: float, dof: float, measurements: int) -> Estimate:
    """An estimate from its variance with `dof` degrees of freedom; without an interval if there are none."""
    if dof <= 0:
        return Estimate(value=value, measurements=measurements)
    half = student(dof) * math.sqrt(variance)
    return Estimate(value=value, low=value - half, high=value + half, measurements=measurements)


def combined_dof(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of summed (variance, dof): Satterthwaite, Biometrics Bulletin 2 (1946)."""
    total = sum(variance for variance, _ in parts)
    if any(dof <= 0 for _, dof in parts):
        return 0.0
    below = sum(variance**2 / dof for variance, dof in parts)
    return total**2 / below if below > 0 else min(dof for _, dof in parts)


def moments(values: Sequence[float]) -> tuple[float, float, int]:
    """Mean, variance of that mean, and degrees of freedom."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, 0.0, 0
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, variance / len(values), len(values) - 1


def mean_of(values: Sequence[float]) -> Estimate:
    """The mean of independent repeats, by Student's t."""
    mean, variance, dof = moments(values)
    return with_error(mean, variance, dof, len(values))


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The ratio of two means of positive values, by their logarithms (Welch); never below zero."""
    top, bottom = moments([math.log(value) for value in above]), moments([math.log(value) for value in below])
    dof = combined_dof([top[1:], bottom[1:]])
    value = math.fsum(above) / len(above) / (math.fsum(below) / len(below))
    number = len(above) + len(below)
    if dof <= 0:
        return Estimate(value=value, measurements=number)
    half = student(dof) * math.sqrt(top[1] + bottom[1])
    return Estimate(
        value=value, low=value * math.exp(-half), high=value * math.exp(half), measurements=number
    )


@dataclass(frozen=True)
class Uncertain:
    """A value with the variance of its error and the degrees of freedom by which that is known."""

    value: float
    variance: float
    dof: float


def quotient(above: Uncertain, below: Uncertain, covariance: float, measurements: int) -> Estimate | None:
    """above / below with its interval by Fieller's theorem (1954); None if either is not above zero, no
    interval where `below` may be zero.
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
