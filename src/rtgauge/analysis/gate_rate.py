# SPDX-License-Identifier: MIT
"""Decides from pairs of runs whether a candidate exceeds a bound more often than its baseline.

This suits events that are too rare for a quantile. An event is a stretch of time in which the bound was
exceeded, so a burst counts once. If both sides have the same rate, each event is the candidate's with chance
1/2 (Przyborowski and Wilenski, Homogeneity of results in testing samples from Poisson series, Biometrika 31,
1940). If runs differ by more than chance, fewer events are independent: counts are divided by the dispersion
of the pairs' differences (McCullagh and Nelder, Generalized Linear Models, 1989, sec. 6.2), which is widened
because it is estimated (Korn and Graubard 1998). If boots differ much, a few boots have most of the events,
and the ratios within pairs show more than the counts. So half of the error goes to Student's t on the
logarithms of these ratios, with half an event added to each count (Haldane 1956). Looks and error are as in
`analysis.gate`. `bench/gate_simulation.py --rate` measures the resulting error.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.confidence import lower_bound, upper_bound
from rtgauge.analysis.gate import ALARM, OVERLOOK, Decision, Outcome, levels, looks

LEAST_EVENTS = 5
"""The spread of the rates needs at least this many events per run, on average."""
OF_RATIOS = ALARM / 2
"""The share of the chance of a false alarm for the ratios within pairs; the rest is for the counts."""


def decide_rate(events: Sequence[tuple[int, int]], *, larger_than: float, max_pairs: int) -> Decision:
    """Decide from the numbers of events (baseline, candidate) of each pair so far. All runs are equally long.

    Changes are relative changes of the rate: 1 is twice as many events. A change is infinite if the baseline
    has no events. `larger_than`: the change that a pass rules out. `spread` in the result is the relative
    standard deviation of one side's rates; None if a side has fewer than LEAST_EVENTS events per run. Raises
    InputError as `gate.looks` does.
    """
    planned = looks(max_pairs)
    alarms, overlooks = levels(max_pairs, ALARM), levels(max_pairs, OVERLOOK)
    passing = (1 + larger_than) / (2 + larger_than)
    outcome, seen = Outcome.GO_ON, min(len(events), max_pairs)
    for look, pairs in enumerate(planned):
        if pairs > seen:
            break
        counts = np.asarray(events[:pairs], dtype=np.float64)
        candidate, both = counts[:, 1].sum(), counts.sum()
        overlook = dispersion(counts, overlooks[look])
        if both and upper_bound(candidate / overlook, both / overlook, 1 - overlooks[look]) < passing:
            outcome, seen = Outcome.PASS, pairs
            break
        if _least_change(counts, alarms[look]) > 0:
            outcome, seen = Outcome.WORSE, pairs
            break
        if pairs == planned[-1]:
            outcome = Outcome.CANNOT_TELL
    counts = np.asarray(events[:seen], dtype=np.float64).reshape(-1, 2)
    baseline, candidate = counts.sum(axis=0).tolist()
    if not baseline + candidate:
        return Decision(outcome, seen, 0.0, None, None, None)
    low, high = _interval(counts, 0.025 / len(planned))
    change = candidate / baseline - 1 if baseline else math.inf
    enough = seen > 1 and min(baseline, candidate) >= LEAST_EVENTS * seen
    spread = _deviation(counts) / math.sqrt(2) if enough else None
    return Decision(outcome, seen, change, low, high, spread)


def least_alarm(events: Sequence[tuple[int, int]], *, max_pairs: int) -> int:
    """Return the smallest number of candidate events that shows the candidate to be worse at the last look,
    given the baseline's events and the dispersion of these pairs.
    """
    counts = np.asarray(events, dtype=np.float64)
    level = levels(max_pairs, ALARM)[-1] / 2
    effect, baseline = dispersion(counts, level), float(counts[:, 0].sum())

    def alarms(candidate: int) -> bool:
        both = baseline + candidate
        return candidate > 0 and lower_bound(candidate / effect, both / effect, 1 - level) > 0.5

    first = 1
    while not alarms(first):
        first *= 2
    return bisect.bisect_left(range(first), True, key=alarms)


def dispersion(counts: npt.NDArray[np.float64], level: float) -> float:
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


def _least_change(counts: npt.NDArray[np.float64], level: float) -> float:
    """Return the lower bound of the rate's relative change; half of the level is for ratios within pairs."""
    effect = dispersion(counts, level / 2)
    candidate, both = float(counts[:, 1].sum()) / effect, float(counts.sum()) / effect
    low = lower_bound(candidate, both, 1 - level / 2) if both else 0.0
    return max(low / (1 - low) - 1 if low < 1 else math.inf, _least_ratio(counts, level / 2) - 1)


def _least_ratio(counts: npt.NDArray[np.float64], level: float) -> float:
    """Return the lower bound of the ratio of the rates within pairs."""
    from scipy.special import stdtrit

    pairs = len(counts)
    if pairs < 2:
        return 0.0
    logs = np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5))
    error = _deviation(counts) / math.sqrt(pairs)
    return math.exp(float(logs.mean()) + float(stdtrit(pairs - 1, level)) * error)


def _deviation(counts: npt.NDArray[np.float64]) -> float:
    """Return the standard deviation of the logarithms of the ratios within pairs. It is at least the value
    that chance alone gives, because small counts are often equal.
    """
    logs = np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5))
    return math.sqrt(max(float(logs.var(ddof=1)), float((1 / (counts + 0.5)).sum(axis=1).mean())))


def _interval(counts: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the interval of the relative change of the rate, with each end at this one-sided level."""
    effect = dispersion(counts, level)
    candidate, both = float(counts[:, 1].sum()) / effect, float(counts.sum()) / effect
    high = upper_bound(candidate, both, 1 - level)
    return _least_change(counts, level), high / (1 - high) - 1 if high < 1 else math.inf
