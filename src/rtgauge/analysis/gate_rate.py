# SPDX-License-Identifier: MIT
"""Decides from pairs of runs whether a candidate exceeds a bound more often than its baseline.

This suits violations that are too rare for a quantile. If both sides have the same rate, each violation is
the candidate's with chance 1/2 (Przyborowski and Wilenski, Homogeneity of results in testing samples from
Poisson series, Biometrika 31, 1940). Violations that come in bursts, or runs that differ by more than chance,
hold fewer independent violations, so counts are divided by a design effect. It is the larger of two: the
variance that the windows within the runs show, and the dispersion of the pairs' differences (McCullagh and
Nelder, Generalized Linear Models, 1989, sec. 6.2), which is widened because it is estimated (Korn and
Graubard 1998). If boots differ much, a few boots have most of the violations, and the ratios within pairs
show more than the counts. So half of the error goes to Student's t on the logarithms of these ratios, with
half a violation added to each count (Haldane 1956). Looks and error are as in `analysis.gate`.
`bench/gate_simulation.py --rate` measures the resulting error.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtgauge.analysis.gate_test import ALARM, OVERLOOK, Decision, Doubles, Outcome, first_pass, levels, looks
from rtgauge.analysis.violation_bounds import lower_bound, upper_bound

LEAST_EVENTS = 5
"""The spread of the rates needs at least this many independent violations per run, on average."""
OF_RATIOS = ALARM / 2
"""The share of the chance of a false alarm for the ratios within pairs; the rest is for the counts."""


@dataclass(frozen=True)
class PairCounts:
    """The violations of each pair's runs (baseline, candidate), both of shape (pairs, 2). All runs are
    equally long. `variances`: the variance of each number, as the windows of its run show it.
    """

    violations: Doubles
    variances: Doubles

    @staticmethod
    def of(
        violations: Sequence[tuple[int, int]], variances: Sequence[tuple[float, float]] | None = None
    ) -> PairCounts:
        """Return the counts of these pairs. Without variances, violations come singly."""
        counts = np.asarray(violations, dtype=np.float64).reshape(-1, 2)
        shown = counts if variances is None else np.asarray(variances, dtype=np.float64).reshape(-1, 2)
        return PairCounts(counts, shown)

    def first(self, pairs: int) -> PairCounts:
        """Return the first pairs."""
        return PairCounts(self.violations[:pairs], self.variances[:pairs])

    def independent(self) -> Doubles:
        """Return how many independent violations these are worth, as far as windows show."""
        every = float(self.violations.sum())
        return self.violations / max(1.0, float(self.variances.sum()) / every if every else 1.0)


def decide_rate(
    counts: PairCounts,
    *,
    larger_than: float,
    max_pairs: int,
    rare: float | None = None,
    before: tuple[int, ...] = (),
) -> Decision:
    """Decide from the violations of each pair so far.

    Changes are relative changes of the rate: 1 is twice as many violations. A change is infinite if the
    baseline has none. `larger_than`: the change that a pass rules out. `rare`, `before`: as in `gate.decide`.
    `spread` in the result is the relative standard deviation of one side's rates; None if a side has fewer
    than LEAST_EVENTS independent violations per run. Raises InputError as `gate.looks` does.
    """
    planned = looks(max_pairs, before)
    first = first_pass(max_pairs, rare, before)
    alarms = levels(max_pairs, ALARM, before=before)
    overlooks = levels(max_pairs, OVERLOOK, first, before)
    passing = (1 + larger_than) / (2 + larger_than)
    outcome, used_pairs = Outcome.GO_ON, min(len(counts.violations), max_pairs)
    for look, pairs in enumerate(planned):
        if pairs > used_pairs:
            break
        events = counts.first(pairs).independent()
        if _passes(events, overlooks[look], passing):
            if pairs < first:
                continue
            outcome, used_pairs = Outcome.PASS, pairs
            break
        if _least_change(events, alarms[look]) > 0:
            outcome, used_pairs = Outcome.WORSE, pairs
            break
        if pairs == planned[-1]:
            outcome = Outcome.CANNOT_TELL
    used_counts = counts.first(used_pairs)
    baseline, candidate = used_counts.violations.sum(axis=0).tolist()
    if not baseline + candidate:
        return Decision(outcome, used_pairs, 0.0, None, None, None)
    events = used_counts.independent()
    low, high = _interval(events, 0.025 / len(planned))
    change = candidate / baseline - 1 if baseline else math.inf
    # The half violations that ratios within pairs get could exclude the observed change.
    low, high = min(low, change), max(high, change)
    enough = used_pairs > 1 and float(events.sum(axis=0).min()) >= LEAST_EVENTS * used_pairs
    spread = _deviation(events) / math.sqrt(2) if enough else None
    return Decision(outcome, used_pairs, change, low, high, spread)


def least_alarm(counts: PairCounts, *, max_pairs: int, before: tuple[int, ...] = ()) -> int:
    """Return the smallest number of the candidate's violations that shows it to be worse at the last look,
    given the baseline's violations, and the bursts and the dispersion of these pairs.
    """
    events = counts.independent()
    every = float(counts.violations.sum())
    worth = every / float(events.sum()) if every else 1.0
    level = levels(max_pairs, ALARM, before=before)[-1] / 2
    effect = dispersion(events, level)
    baseline = float(events[:, 0].sum()) / effect

    def alarms(violations: int) -> bool:
        candidate = violations / worth / effect
        return candidate > 0 and lower_bound(candidate, baseline + candidate, 1 - level) > 0.5

    first = 1
    while not alarms(first):
        first *= 2
    return bisect.bisect_left(range(first), True, key=alarms)


@dataclass(frozen=True)
class SideCounts:
    """The runs of one side: numbers that certainly and that possibly broke the bound, the variances of the
    latter as windows show them, and activations. All have the shape (runs,).
    """

    certain: Doubles
    possible: Doubles
    variances: Doubles
    activations: Doubles

    def meets(self, allowed: float, confidence: float) -> bool:
        """Return whether each run, and the upper bound on the share of violations, is within `allowed`."""
        each = bool((self.possible <= allowed * self.activations).all())
        return each and self.share_at_most(confidence) <= allowed

    def share_at_most(self, confidence: float) -> float:
        """Return the upper bound (one-sided) on the share of violations, over the side's boots. The worst run
        counts twice, because a few boots hardly show how bad boots can be.
        """
        counted = np.append(self.possible, self.possible.max())
        every = np.append(self.activations, self.activations[self.possible.argmax()])
        effect = self._design_effect(self.possible, confidence)
        return upper_bound(float(counted.sum()) / effect, float(every.sum()) / effect, confidence)

    def share_at_least(self, confidence: float) -> float:
        """Return the lower bound (one-sided) on the share of violations, over the side's boots."""
        effect = self._design_effect(self.certain, confidence)
        return lower_bound(
            float(self.certain.sum()) / effect, float(self.activations.sum()) / effect, confidence
        )

    def _design_effect(self, violations: Doubles, confidence: float) -> float:
        """Return the divisor of the counts: the larger of the bursts within runs and the spread between runs,
        which is widened by Student's t because it is estimated.
        """
        from scipy.special import ndtri, stdtrit

        mean = float(violations.mean())
        if not mean:
            return 1.0
        widened = float(stdtrit(len(violations) - 1, confidence) / ndtri(confidence)) ** 2
        bursts = float(self.variances.sum()) / max(float(self.possible.sum()), 1.0)
        return max(1.0, bursts, float(violations.var(ddof=1)) / mean * widened)


def dispersion(counts: Doubles, level: float) -> float:
    """Return the divisor, at least 1, of the counts for a bound at this one-sided level. `counts`: (baseline,
    candidate) of each pair, shape (pairs, 2).
    """
    from scipy.special import ndtri, stdtrit

    pairs = len(counts)
    if pairs < 2 or not counts.any():
        return 1.0
    widened = float(stdtrit(pairs - 1, level) / ndtri(level))
    differences = counts[:, 1] - counts[:, 0]
    return max(1.0, float(differences.var(ddof=1)) / (float(counts.sum()) / pairs) * widened**2)


def _passes(events: Doubles, level: float, passing: float) -> bool:
    """Return whether the candidate's share of the violations is below `passing`. The pair with the most on
    the candidate's side counts twice, as in `gate.decide`.
    """
    if not events.any():
        return False
    worst = events[np.argmax(events[:, 1] - events[:, 0])]
    candidate, both = _worth(np.vstack([events, worst]), dispersion(events, level))
    return upper_bound(candidate, both, 1 - level) < passing


def _worth(events: Doubles, effect: float) -> tuple[float, float]:
    """Return the candidate's events and all events, divided by a design effect."""
    baseline, candidate = (events.sum(axis=0) / effect).tolist()
    return candidate, baseline + candidate


def _least_change(counts: Doubles, level: float) -> float:
    """Return the lower bound of the rate's relative change; half of the level is for ratios within pairs."""
    candidate, both = _worth(counts, dispersion(counts, level / 2))
    low = lower_bound(candidate, both, 1 - level / 2) if both else 0.0
    return max(low / (1 - low) - 1 if low < 1 else math.inf, _least_ratio(counts, level / 2) - 1)


def _least_ratio(counts: Doubles, level: float) -> float:
    """Return the lower bound of the ratio of the rates within pairs."""
    from scipy.special import stdtrit

    pairs = len(counts)
    if pairs < 2:
        return 0.0
    logs = np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5))
    error = _deviation(counts) / math.sqrt(pairs)
    return math.exp(float(logs.mean()) + float(stdtrit(pairs - 1, level)) * error)


def _deviation(counts: Doubles) -> float:
    """Return the standard deviation of the logarithms of the ratios within pairs. It is at least the value
    that chance alone gives, because small counts are often equal.
    """
    logs = np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5))
    return math.sqrt(max(float(logs.var(ddof=1)), float((1 / (counts + 0.5)).sum(axis=1).mean())))


def _interval(counts: Doubles, level: float) -> tuple[float, float]:
    """Return the interval of the relative change of the rate, with each end at this one-sided level."""
    candidate, both = _worth(counts, dispersion(counts, level))
    high = upper_bound(candidate, both, 1 - level)
    return _least_change(counts, level), high / (1 - high) - 1 if high < 1 else math.inf
