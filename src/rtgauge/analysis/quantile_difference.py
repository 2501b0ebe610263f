# SPDX-License-Identifier: MIT
"""Computes differences of a quantile between two sides, with intervals and p-values.

The unit is the run, because runs of one system differ by more than their samples suggest. If both sides have
at least two runs, the interval is Welch's on the logarithms of the quantiles of the runs (The generalization
of 'Student's' problem when several different population variances are involved, 1947), because latencies of
runs differ by factors. A difference in ns is the ratio minus 1, times the baseline. Figures that are not
above 0 have no logarithm, so their differences are compared. If one side has a single run, its runs are
assumed to vary like the other side's. If both sides have a single run, the interval holds only between these
two runs: it combines the bounds of the two quantiles by the squares of their distances (Zou and Donner,
Construction of confidence limits about effect measures, 2008). Maxima get no interval, because one run does
not bound them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.quantile_interval import ENDLESS_NS, RunQuantile, WindowCounts

Limits = tuple[float, float]
Doubles = npt.NDArray[np.float64]

QUANTILES = ("p50", "p99", "p99.9", "p99.99")
"""The quantiles that are compared. Each one more makes Holm's correction of the others stricter."""
MOST_ERRORS = 1e6
"""The search for a p-value stops at this many standard errors."""


@dataclass(frozen=True)
class Interval:
    """The interval and p-values of a difference (ns, side minus baseline). An end is None if unlimited."""

    low_ns: int | None
    high_ns: int | None
    p_different: float
    p_not_within: float
    p_not_beyond: float


@dataclass(frozen=True)
class Difference:
    """A difference (ns). `limits(errors)` returns its limits at a number of standard errors, which follows
    from Student's t with `freedom` degrees.
    """

    limits: Callable[[float], Limits]
    freedom: float

    def _p_of_limit(self, holds: Callable[[Limits], bool]) -> float:
        """Return the one-sided p-value: the level at which `holds` stops being true; 1 if it never is."""
        from scipy.special import stdtr

        if not holds(self.limits(0.0)):
            return 1.0
        low, high = 0.0, 1.0
        while holds(self.limits(high)) and high < MOST_ERRORS:
            low, high = high, high * 2
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(self.limits(middle)) else (low, middle)
        return float(stdtr(self.freedom, -low))

    def above(self, ns: float) -> float:
        """Return the one-sided p-value against a difference of at most `ns`."""
        return self._p_of_limit(lambda limits: limits[0] > ns)

    def below(self, ns: float) -> float:
        """Return the one-sided p-value against a difference of at least `ns`."""
        return self._p_of_limit(lambda limits: limits[1] < ns)

    def interval(self, *, alpha: float, within_ns: int) -> Interval:
        """Return the interval at confidence 1 - alpha, and the p-values of "different" (two-sided), "not
        within `within_ns`" and "not beyond".

        "Not within" is the larger p-value of two one-sided tests (Schuirmann, 1987). "Within" includes the
        bound, so two equal figures are the same within 0.
        """
        from scipy.special import stdtrit

        low, high = self.limits(float(stdtrit(self.freedom, 1 - alpha / 2)))
        return Interval(
            math.floor(low) if low > -ENDLESS_NS / 2 else None,
            math.ceil(high) if high < ENDLESS_NS / 2 else None,
            p_different=min(1.0, 2 * min(self.above(0), self.below(0))),
            p_not_within=max(self.above(-within_ns - 1), self.below(within_ns + 1)),
            p_not_beyond=min(1.0, 2 * min(self.above(within_ns), self.below(-within_ns))),
        )


def between_two_runs(side: WindowCounts, baseline: WindowCounts, share: Fraction) -> Difference:
    """Return the difference of a quantile between a single run of each side."""
    of_side, of_baseline = RunQuantile(side, share), RunQuantile(baseline, share)

    def limits(errors: float) -> Limits:
        side_low, side_high = of_side.bounds(errors)
        baseline_low, baseline_high = of_baseline.bounds(errors)
        return (
            of_side.low_ns
            - of_baseline.high_ns
            - math.hypot(of_side.low_ns - side_low, baseline_high - of_baseline.high_ns),
            of_side.high_ns
            - of_baseline.low_ns
            + math.hypot(side_high - of_side.high_ns, of_baseline.low_ns - baseline_low),
        )

    return Difference(limits, min(of_side.freedom, of_baseline.freedom))


@dataclass(frozen=True)
class RunFigures:
    """One figure for each run of a side. Each lies between `low_ns` and `high_ns`, the ends of its bin."""

    low_ns: Sequence[float]
    high_ns: Sequence[float]

    @property
    def are_positive(self) -> bool:
        """Whether the figures have logarithms."""
        return min(self.low_ns) > 0

    def on(self, *, logarithms: bool) -> _Scaled:
        """Return the figures, or their logarithms."""
        low, high = np.asarray(self.low_ns, dtype=np.float64), np.asarray(self.high_ns, dtype=np.float64)
        if logarithms:
            return _Scaled(np.log(low), np.log(high), np.log((high + 1) / low))
        return _Scaled(low, high, high - low + 1)


class _Scaled(NamedTuple):
    """The ends of the bins of each run's figure, and how wide the bins are; each has the shape (runs,)."""

    low: Doubles
    high: Doubles
    width: Doubles

    @property
    def variance(self) -> float:
        """The variance of one run, at least the variance that rounding to bins can hide."""
        return max(float(((self.low + self.high) / 2).var(ddof=1)), float((self.width**2).mean()) / 12)


def typical_ns(runs_ns: Sequence[int]) -> int:
    """Return the geometric mean of the runs' figures; their arithmetic mean if one is not above 0."""
    if min(runs_ns) > 0:
        return round(math.exp(sum(map(math.log, runs_ns)) / len(runs_ns)))
    return round(sum(runs_ns) / len(runs_ns))


MOST_LOG = 50.0
"""The logarithm of a ratio that counts as unlimited."""


def _difference(
    low: float, high: float, error: float, freedom: float, baseline_ns: Limits | None
) -> Difference:
    """Return the difference whose estimate lies between `low` and `high`, with this standard error.

    `baseline_ns`: what the baseline lies between, if these are logarithms of the ratio to it; otherwise None.
    """

    def limits(errors: float) -> Limits:
        ends = low - errors * error, high + errors * error
        if baseline_ns is None:
            return ends
        below, above = ([math.expm1(min(end, MOST_LOG)) * ns for ns in baseline_ns] for end in ends)
        return min(below), math.inf if ends[1] > MOST_LOG else max(above)

    return Difference(limits, freedom)


def _baseline_ns(baseline: _Scaled, *, logarithms: bool) -> Limits | None:
    return (math.exp(baseline.low.mean()), math.exp(baseline.high.mean())) if logarithms else None


def between_runs(side: RunFigures, baseline: RunFigures) -> Difference:
    """Return the difference of the means over the runs. At least one side has several runs."""
    logarithms = side.are_positive and baseline.are_positive
    scaled = [figures.on(logarithms=logarithms) for figures in (side, baseline)]
    runs = (len(side.low_ns), len(baseline.low_ns))
    known = [figures.variance for figures, number in zip(scaled, runs, strict=True) if number > 1]
    terms = [
        (figures.variance if number > 1 else known[0]) / number
        for figures, number in zip(scaled, runs, strict=True)
    ]  # a single run is assumed to vary like the other side's runs
    freedom = welch_freedom(terms, runs) if len(known) == 2 else float(max(runs) - 1)
    of_side, of_baseline = scaled
    return _difference(
        float(of_side.low.mean() - of_baseline.high.mean()),
        float(of_side.high.mean() - of_baseline.low.mean()),
        math.sqrt(sum(terms)),
        freedom,
        _baseline_ns(of_baseline, logarithms=logarithms),
    )


def between_pairs(side: RunFigures, baseline: RunFigures) -> Difference:
    """Return the mean difference within pairs of runs. Both sides have their runs in the pairs' order."""
    logarithms = side.are_positive and baseline.are_positive
    of_side, of_baseline = (figures.on(logarithms=logarithms) for figures in (side, baseline))
    low, high = of_side.low - of_baseline.high, of_side.high - of_baseline.low
    within = _Scaled(low, high, of_side.width + of_baseline.width)
    return _difference(
        float(low.mean()),
        float(high.mean()),
        math.sqrt(within.variance / len(low)),
        len(low) - 1.0,
        _baseline_ns(of_baseline, logarithms=logarithms),
    )


def welch_freedom(terms: Sequence[float], numbers: Sequence[int]) -> float:
    """Return Welch's degrees of freedom for the difference of two means, from variances and run counts."""
    return sum(terms) ** 2 / sum(term**2 / (number - 1) for term, number in zip(terms, numbers, strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number; the result is in the same order (Holm, A simple sequentially
    rejective multiple test procedure, 1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = running
    return corrected
