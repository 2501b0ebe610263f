# SPDX-License-Identifier: MIT
"""Computes differences of a quantile between two sides, with intervals and p-values.

The unit is the run, because runs of one system differ by more than their samples suggest. If both sides have
at least two runs, the interval is Welch's on the quantiles of the runs (The generalization of 'Student's'
problem when several different population variances are involved, 1947). If one side has a single run, its
runs are assumed to vary like the other side's. If both sides have a single run, the interval holds only
between these two runs: it combines the bounds of the two quantiles by the squares of their distances (Zou and
Donner, Construction of confidence limits about effect measures, 2008). Maxima get no interval, because one
run does not bound them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rtgauge.analysis.dependent_quantile import ENDLESS_NS, RunQuantile, WindowCounts

Limits = tuple[float, float]

QUANTILES = {
    "p50": Fraction(1, 2),
    "p99": Fraction(99, 100),
    "p99.9": Fraction(999, 1000),
    "p99.99": Fraction(9999, 10000),
}
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
    def variance(self) -> float:
        """The variance of one run (ns²), at least the variance that rounding to bins can hide."""
        low, high = np.asarray(self.low_ns, dtype=np.float64), np.asarray(self.high_ns, dtype=np.float64)
        return max(float(((low + high) / 2).var(ddof=1)), float(((high - low + 1) ** 2).mean()) / 12)


def between_runs(side: RunFigures, baseline: RunFigures) -> Difference:
    """Return the difference of the means over the runs. At least one side has several runs."""
    runs = (len(side.low_ns), len(baseline.low_ns))
    known = [figures.variance for figures, number in zip((side, baseline), runs, strict=True) if number > 1]
    terms = [
        (figures.variance if number > 1 else known[0]) / number
        for figures, number in zip((side, baseline), runs, strict=True)
    ]  # a single run is assumed to vary like the other side's runs
    error = math.sqrt(sum(terms))
    freedom = welch_freedom(terms, runs) if len(known) == 2 else float(max(runs) - 1)
    low = float(np.mean(side.low_ns)) - float(np.mean(baseline.high_ns))
    high = float(np.mean(side.high_ns)) - float(np.mean(baseline.low_ns))
    return Difference(lambda errors: (low - errors * error, high + errors * error), freedom)


def between_pairs(side: RunFigures, baseline: RunFigures) -> Difference:
    """Return the mean difference within pairs of runs. Both sides have their runs in the pairs' order."""
    side_low, side_high, base_low, base_high = (
        np.asarray(ends, dtype=np.float64)
        for ends in (side.low_ns, side.high_ns, baseline.low_ns, baseline.high_ns)
    )
    within = RunFigures((side_low - base_high).tolist(), (side_high - base_low).tolist())
    error = math.sqrt(within.variance / len(side_low))
    low, high = float(np.mean(within.low_ns)), float(np.mean(within.high_ns))
    return Difference(lambda errors: (low - errors * error, high + errors * error), len(side_low) - 1.0)


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
