# SPDX-License-Identifier: MIT
"""Bounds the probability that an activation is too late, from the numbers of violations and activations.

Counts may be divided by a design effect (Kish, Survey Sampling, 1965): the number of dependent activations
that are worth one independent activation. Without it, activations count as independent, which gives the
tightest bounds. `bench/bounds.py` measures how often the bounds hold.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.quantile_interval import cautious_error_of_sum

DEFAULT_CONFIDENCE = 0.95
SKEWED = 1.2
"""The factor by which the variance between runs is raised, because few runs seldom show the largest of skewed
rates.
"""
POWER = 0.8
"""A number of activations that is named as enough decides with this probability."""


def _check(violations: float, count: float, confidence: float) -> None:
    if not 0 <= violations <= count:
        raise ValueError(f"{violations} violations among {count} activations")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")


def upper_bound(violations: float, count: float, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the upper bound on the violation probability at `confidence` (one-sided), after `violations`
    among `count` activations.

    The bound is exact: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case
    of the binomial, Biometrika 26 (1934). Without violations it is 1 - (1 - confidence)^(1/count), about
    3/count at 95 % (the rule of three). It is 1 without activations. Raises ValueError for impossible counts.
    """
    _check(violations, count, confidence)
    if violations == count:
        return 1.0
    if violations == 0:
        return -math.expm1(math.log1p(-confidence) / count)
    from scipy.special import betaincinv  # beta.ppf of scipy.stats takes 0.5 s longer to import

    return float(betaincinv(violations + 1, count - violations, confidence))


def lower_bound(violations: float, count: float, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the lower bound on the violation probability at `confidence` (one-sided, Clopper-Pearson)."""
    _check(violations, count, confidence)
    if violations == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(violations, count - violations + 1, 1 - confidence))


def range_coverage(results: int) -> float:
    """Return the confidence with which the range of `results` independent results contains their median.

    Each result is on either side of the median with probability 1/2, whatever their distribution (David and
    Nagaraja, Order Statistics, 2003, eq. 7.1.2 with r = 1, s = n). Fewer than two results give 0.
    """
    return max(0.0, 1 - 2.0 ** (1 - results))


def activations_needed(
    allowed: float,
    confidence: float = DEFAULT_CONFIDENCE,
    *,
    violations: int = 0,
    count: int = 0,
    design_effect: float = 1.0,
) -> int | None:
    """Return the total number of activations that show, with probability POWER, a violation probability of at
    most `allowed` at `confidence`, accurate to 0.1 %.

    It assumes that violations continue at the observed rate (`violations` among `count`, by default none, in
    which case the number is exact) and with the same `design_effect`. Returns None if this rate is too high.
    Raises ValueError if `allowed` is not between 0 and 1.
    """
    _check(violations, count, confidence)
    if not 0 < allowed < 1:
        raise ValueError(f"an allowed share of {allowed} is not between 0 and 1")
    if violations == 0:
        return math.ceil(math.log1p(-confidence) / math.log1p(-allowed))
    rate = violations / count
    if rate >= allowed:
        return None

    def shows(total: float) -> bool:
        return upper_bound(math.ceil(_likely(POWER, total, rate)), math.ceil(total), confidence) <= allowed

    return _first(shows, count, design_effect)


def activations_to_refute(
    allowed: float,
    confidence: float = DEFAULT_CONFIDENCE,
    *,
    violations: int,
    count: int,
    design_effect: float = 1.0,
) -> int | None:
    """Return the total number of activations that show, with probability POWER, a violation probability above
    `allowed`. Parameters and assumptions as in `activations_needed`. Returns None if the observed rate is not
    above `allowed`.
    """
    _check(violations, count, confidence)
    rate = violations / count if count else 0.0
    if rate <= allowed:
        return None

    def shows(total: float) -> bool:
        return lower_bound(math.floor(_likely(1 - POWER, total, rate)), total, confidence) > allowed

    return _first(shows, count, design_effect)


def _likely(probability: float, total: float, rate: float) -> float:
    """Return the number of violations that is not exceeded with `probability`, between 0 and `total`."""
    from scipy.special import ndtri

    # Normal: bdtrik takes no fractions of activations, and does not work beyond 32 bits.
    number = rate * total + float(ndtri(probability)) * math.sqrt(total * rate * (1 - rate))
    return min(max(number, 0.0), total)


def _first(shows: Callable[[float], bool], least: int, design_effect: float) -> int | None:
    """Return the smallest number of activations from `least` on, accurate to 0.1 %, of which `shows` is true
    after division by `design_effect`. None if more than 2^60 are needed.
    """
    high = max(least, 1)
    while not shows(high / design_effect):
        if high > 2**60:
            return None
        high *= 2
    totals = range(high // 2, high, max(1, high // 2000))
    index = bisect_left(totals, True, key=lambda total: shows(total / design_effect))
    return totals[index] if index < len(totals) else high


@dataclass(frozen=True)
class Counted:
    """The `violations` among the `activations` of one run. `variance` is the variance of this number, and
    `freedom` its degrees of freedom; None if the run cannot show dependence, because it has one window.
    """

    violations: int
    activations: int
    variance: float
    freedom: float | None

    @classmethod
    def of_windows(cls, violations: npt.ArrayLike, counts: npt.ArrayLike) -> Counted:
        """Count the windows of a run. `violations`, `counts`: the numbers in each window, in order; both have
        the shape (windows,).

        The variance is at least that of independent violations, and that of independent windows. The slowest
        cosine transforms show the variance of dependent windows (see `quantile_interval`).
        """
        late, every = np.asarray(violations, dtype=np.float64), np.asarray(counts, dtype=np.float64)
        total, broken, number = float(every.sum()), float(late.sum()), len(late)
        share = broken / total if total else 0.0
        variance, freedom = total * share * (1 - share), None
        if number > 1:
            error, freedom = cautious_error_of_sum(late - share * every)
            variance = max(variance, error**2)
        return cls(int(broken), int(total), variance, freedom)


def design_effect(conditions: Sequence[Sequence[Counted]], confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the factor, at least 1, by which to divide counts so that one-sided bounds allow for bursts.

    `conditions`: the runs of each condition, whose counts are added up. The factor is the variance of the sum
    of violations, divided by the variance if they were independent. Several runs of one condition show the
    spread between runs, which then replaces the spread within them, with fewer degrees of freedom. What
    exceeds 1 is widened by Student's t, because the variance is estimated (Korn and Graubard, Confidence
    intervals for proportions with small expected number of positive counts, 1998). The t is two-sided,
    because the numbers of violations in bursts are skewed. The factor is 1 without a violation, which cannot
    show bursts.
    """
    from scipy.special import ndtri, stdtrit

    every = [run for runs in conditions for run in runs]
    total, broken = sum(run.activations for run in every), sum(run.violations for run in every)
    if not 0 < broken < total or confidence <= 0.5:
        return 1.0
    parts = [part for runs in conditions for part in _variances(runs)]
    variance = sum(part for part, _ in parts)
    effect = variance / (broken * (1 - broken / total))
    if effect <= 1:
        return 1.0
    below = sum(part**2 / freedom for part, freedom in parts if freedom is not None)
    if not below:
        return effect
    freedom = variance**2 / below  # Satterthwaite, Biometrics Bulletin 2 (1946)
    return 1 + (effect - 1) * float(stdtrit(freedom, (1 + confidence) / 2) / ndtri(confidence)) ** 2


def _variances(runs: Sequence[Counted]) -> list[tuple[float, float | None]]:
    """Return (variance, degrees of freedom) of the violations of one condition: of its run, or of several
    runs between them, at least the variance within them.
    """
    within = [(run.variance, run.freedom) for run in runs]
    total = sum(run.activations for run in runs)
    if len(runs) < 2 or not total:
        return within
    share = sum(run.violations for run in runs) / total
    squares = sum((run.violations - share * run.activations) ** 2 for run in runs)
    between = SKEWED * squares * len(runs) / (len(runs) - 1)
    # Runs that happen to be alike say as little about other runs as runs that differ.
    return [(max(between, sum(variance for variance, _ in within)), len(runs) - 1.0)]
