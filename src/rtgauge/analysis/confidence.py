# SPDX-License-Identifier: MIT
"""Computes exact bounds on the probability that an activation is too late, from the numbers of violations and
activations.

Counts may be divided by a design effect (Kish, Survey Sampling, 1965): the number of dependent activations
that are worth one independent activation. Without it, activations count as independent, which gives the
tightest bounds.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.dependent_quantile import LEAST_WINDOWS, error_of_sum

DEFAULT_CONFIDENCE = 0.95


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
    """Return the total number of activations needed to show a violation probability of at most `allowed` at
    `confidence`, accurate to 0.1 %.

    It assumes that violations continue at the observed rate (`violations` among `count`, by default none) and
    with the same `design_effect`, which does not matter without violations. Returns None if this rate is too
    high. Raises ValueError if `allowed` is not between 0 and 1.
    """
    _check(violations, count, confidence)
    if not 0 < allowed < 1:
        raise ValueError(f"an allowed share of {allowed} is not between 0 and 1")
    if violations == 0:
        return math.ceil(math.log1p(-confidence) / math.log1p(-allowed))
    rate = violations / count
    if rate >= allowed:
        return None

    def supports(total: int) -> bool:
        late = min(total, math.ceil(rate * total))
        return upper_bound(late / design_effect, total / design_effect, confidence) <= allowed

    high = max(count, 1)
    while not supports(high):
        if high > 2**60:
            return None
        high *= 2
    totals = range(high // 2, high, max(1, high // 2000))
    index = bisect_left(totals, True, key=supports)
    return totals[index] if index < len(totals) else high


def design_effect(
    violations: npt.ArrayLike, counts: npt.ArrayLike, confidence: float = DEFAULT_CONFIDENCE
) -> float:
    """Return the factor, at least 1, by which to divide counts so that one-sided bounds allow for bursts.

    `violations`, `counts`: the numbers in each window of one run, in order; both have the shape (windows,).
    The factor is the variance of the sum of violations, divided by the variance if they were independent. It
    is widened by Student's t because the variance is estimated (Korn and Graubard, Confidence intervals for
    proportions with small expected number of positive counts, 1998). The factor is 1 for fewer than
    LEAST_WINDOWS windows or no violation, which cannot show bursts.
    """
    from scipy.special import ndtri, stdtrit

    late, every = np.asarray(violations, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    share = float(late.sum() / every.sum()) if every.sum() else 0.0
    if len(late) < LEAST_WINDOWS or not 0 < share < 1:
        return 1.0
    error, freedom = error_of_sum(late - share * every)
    widened = float(stdtrit(freedom, confidence) / ndtri(confidence)) if confidence > 0.5 else 1.0
    return max(1.0, error**2 / (float(every.sum()) * share * (1 - share)) * widened**2)
