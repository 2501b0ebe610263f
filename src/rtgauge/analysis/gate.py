# SPDX-License-Identifier: MIT
"""Decides from pairs of runs whether a candidate is worse than its baseline, by a group sequential t-test.

A pair is one run or boot of each side. The order within a pair is random and balanced over each BLOCK of
pairs. The gate decides after each block whether to continue, because fewer pairs cannot show a change at this
level. It tests the logarithm of the ratio of the two values: effects that both runs share cancel out, and
drift and slow boots widen the spread instead of shifting the mean. The error of the whole decision is spent
look by look (Lan and DeMets 1983, with the power family of Kim and DeMets 1987). Each look's normal bound
becomes a bound of Student's t at the same nominal level (Pocock 1977). `bench/gate_simulation.py` measures
the resulting error.
"""

from __future__ import annotations

import bisect
import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from rtgauge.analysis.newton import root
from rtgauge.errors import InputError
from rtgauge.record.alternation import BLOCK

Doubles = npt.NDArray[np.float64]

ALARM = 0.0015
"""The one-sided chance of a false alarm over all looks of a decision. Under drift, it is below 1 in 500."""
OVERLOOK = 0.01
"""The chance of overlooking a change that matters, over all looks of one decision (one-sided)."""
RESOLUTION = 0.01
"""Histogram bins are at most this wide, relative to their values. Runs that all fall into one bin show no
spread, but the change is known only to this width.
"""
LEAST_CHANGE = 2 * RESOLUTION
"""The smallest change of a quantile that a gate can show."""
MOST_PAIRS = 198
MOST_LOG_RATIO = 100.0
"""The limit for the ratio of one pair: no clock can measure a ratio of e^100."""


class Outcome(enum.StrEnum):
    """What the pairs show so far."""

    WORSE = "worse"
    PASS = "pass"  # noqa: S105 - no password
    GO_ON = "go on"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Decision:
    """A decision with its figures. Changes are relative: 0.1 is 10 % more than the baseline.

    `low`, `high`: the interval of the change at 95 % over all looks together; None for fewer than two pairs.
    `spread`: the relative standard deviation of the runs of one side, estimated from the pairs.
    """

    outcome: Outcome
    pairs: int
    change: float
    low: float | None
    high: float | None
    spread: float | None


def looks(max_pairs: int) -> tuple[int, ...]:
    """Return the numbers of pairs after which the gate looks at the result; the last is `max_pairs`.

    Raises InputError if `max_pairs` is below BLOCK, which is too few to show anything, or above MOST_PAIRS.
    """
    if not BLOCK <= max_pairs <= MOST_PAIRS:
        raise InputError(
            f"a gate must have {BLOCK} to {MOST_PAIRS} pairs, not {max_pairs}; with fewer than {BLOCK}, "
            f"more than one decision in 500 would be a false alarm"
        )
    return (*range(BLOCK, max_pairs, BLOCK), max_pairs)


@cache
def levels(max_pairs: int, error: float) -> tuple[float, ...]:
    """Return the nominal one-sided level of each look of a gate of `max_pairs` pairs. All looks together have
    this error.
    """
    from scipy.special import ndtr

    fractions = np.array(looks(max_pairs)) / max_pairs
    spent = np.diff(error * fractions, prepend=0.0)
    return tuple(ndtr(-_bounds(fractions, spent)).tolist())


def decide(
    log_ratios: Sequence[float], *, larger_than: float, max_pairs: int, error: float = ALARM
) -> Decision:
    """Decide from the pairs so far.

    `log_ratios`: ln(candidate / baseline) of each pair, in the order of measurement; only the first
    `max_pairs` count. `larger_than`: the change that matters, 0.1 for 10 %; a smaller change passes even if
    it is significant. `error`: the chance of a false alarm over all looks. Raises InputError for values that
    are not finite or beyond MOST_LOG_RATIO.
    """
    values = np.asarray(log_ratios, dtype=np.float64)
    if not (np.abs(values) <= MOST_LOG_RATIO).all() or not 0 < larger_than < math.inf:
        raise InputError(
            "a gate cannot judge these values: both sides must have positive finite values, and the change "
            "must be above 0"
        )
    wanted = math.log1p(larger_than)
    planned = looks(max_pairs)
    alarm, overlook = _critical(max_pairs, error), _critical(max_pairs, OVERLOOK)
    outcome, seen = Outcome.GO_ON, min(len(values), max_pairs)
    for look, pairs in enumerate(planned):
        if pairs > seen:
            break
        mean, standard_error = _mean_and_error(values[:pairs])
        if _beyond(wanted - mean, overlook[look] * standard_error):
            outcome, seen = Outcome.PASS, pairs
            break
        if _beyond(mean, alarm[look] * standard_error):
            outcome, seen = Outcome.WORSE, pairs
            break
        if pairs == planned[-1]:
            outcome = Outcome.CANNOT_TELL
    return _decision(outcome, values[:seen], max_pairs)


def detectable(spread: float, pairs: int, error: float = ALARM) -> float:
    """Return the smallest relative change that a gate of `pairs` pairs detects with 90 % probability, at
    least LEAST_CHANGE. `spread`: the relative standard deviation of the runs of one side; `error`: as in
    `decide`.
    """

    def short_of_power(ratio: float) -> float:
        return _power(ratio, pairs, error) - 0.9

    highest = 4 * _critical(pairs, error)[-1]
    low, high = ((ratio, short_of_power(ratio)) for ratio in (0.0, highest))
    ratio = root(short_of_power, low, high, tolerance=1e-6)
    return max(math.expm1(ratio * math.sqrt(2 / pairs) * spread), LEAST_CHANGE)


def pairs_needed(spread: float, larger_than: float, error: float = ALARM) -> int | None:
    """Return the number of pairs, in whole blocks, needed to detect a change of this size with 90 %
    probability; None if MOST_PAIRS are not enough, or the change is below LEAST_CHANGE.
    """

    if larger_than < LEAST_CHANGE:
        return None

    def found(pairs: int) -> bool:
        of_mean = math.sqrt(2 / pairs) * spread
        return of_mean == 0 or _power(math.log1p(larger_than) / of_mean, pairs, error) >= 0.9

    counts = range(BLOCK, MOST_PAIRS + 1, BLOCK)
    first = bisect.bisect_left(counts, True, key=found)
    return counts[first] if first < len(counts) else None


def _power(ratio: float, pairs: int, error: float) -> float:
    """Return the chance that the last look detects a mean of `ratio` standard errors. Earlier looks only
    increase it.
    """
    from scipy.special import nctdtr

    critical = _critical(pairs, error)[-1]
    # SciPy 1.17 gives no number beyond nine times the bound, at which detection is almost certain.
    return 1 - float(nctdtr(pairs - 1, min(ratio, 8 * critical), critical))


@cache
def _critical(max_pairs: int, error: float) -> tuple[float, ...]:
    """Return the bound for Student's t at each look."""
    from scipy.special import stdtrit

    numbers = zip(levels(max_pairs, error), looks(max_pairs), strict=True)
    return tuple(-float(stdtrit(pairs - 1, level)) for level, pairs in numbers)


def _relative(log_ratio: float) -> float:
    return math.expm1(log_ratio) if log_ratio < 700 else math.inf


def _beyond(mean: float, bound: float) -> bool:
    return mean > max(bound, RESOLUTION)


def _mean_and_error(values: Doubles) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _decision(outcome: Outcome, values: Doubles, max_pairs: int) -> Decision:
    if len(values) < 2:
        change = _relative(float(values[0])) if len(values) else 0.0
        return Decision(outcome, len(values), change, None, None, None)
    from scipy.special import stdtrit

    mean, error = _mean_and_error(values)
    # Each look takes its share of the 5 %, so that the interval holds no matter which look decides.
    half = max(-error * float(stdtrit(len(values) - 1, 0.025 / len(looks(max_pairs)))), RESOLUTION)
    spread = float(values.std(ddof=1) / math.sqrt(2))
    change, low, high = map(_relative, (mean, mean - half, mean + half))
    return Decision(outcome, len(values), change, low, high, spread)


GRID = 601
"""The number of points of the density. Simpson's rule requires an odd number."""


def _bounds(fractions: Doubles, spent: Doubles) -> Doubles:
    """Return the bounds that a standardised Brownian motion first exceeds at these times with these chances.

    They follow from the density of paths that exceeded no bound yet (Armitage, McPherson and Rowe 1969).
    """
    from scipy.special import ndtr

    bounds: list[float] = []
    points, mass, before = np.zeros(1), np.ones(1), 0.0
    for time, chance in zip(fractions.tolist(), spent.tolist(), strict=True):
        step, widest = math.sqrt(time - before), 9 * math.sqrt(time)

        def left_over(
            bound: float,
            step: float = step,
            points: Doubles = points,
            mass: Doubles = mass,
            chance: float = chance,
        ) -> float:
            return float(mass @ ndtr((points - bound) / step)) - chance

        bound = root(left_over, (0.0, left_over(0.0)), (widest, -chance), tolerance=1e-9)
        after = np.linspace(-widest, bound, GRID)
        kernel = np.exp(-0.5 * ((after[:, None] - points) / step) ** 2)
        density = kernel @ mass / (step * math.sqrt(2 * math.pi))
        simpson = np.where(np.arange(GRID) % 2, 4.0, 2.0)
        simpson[[0, -1]] = 1.0
        points, mass, before = after, density * simpson * (after[1] - after[0]) / 3, time
        bounds.append(bound / math.sqrt(time))
    return np.array(bounds)
