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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from rtgauge.errors import InputError
from rtgauge.record.alternation import BLOCK, DEFAULT_PAIRS, MOST_PAIRS, most_measured

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
PASS_FROM = DEFAULT_PAIRS
"""A gate that may measure this many pairs does not pass with fewer, because a few boots say little about how
bad boots can be.
"""
TRIED = 3
"""Measuring stops if none of the first pairs counts, up to this many."""
MISSED = 0.01
"""The chance that no boot of a side shows a state that is called shown."""
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

    `low`, `high`: the interval of the change, by default at 95 % over all looks together; None for fewer than
    two pairs.
    `spread`: the relative standard deviation of the runs of one side, estimated from the pairs.
    """

    outcome: Outcome
    pairs: int
    change: float
    low: float | None
    high: float | None
    spread: float | None


def looks(max_pairs: int, before: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the numbers of pairs after which the gate looks at the result; the last is `max_pairs`.

    `before`: the smaller maxima of a gate that was given more pairs later. Raises InputError if `max_pairs`
    is below BLOCK, which is too few to show anything, or above MOST_PAIRS.
    """
    if not BLOCK <= max_pairs <= MOST_PAIRS:
        raise InputError(
            f"a gate must have {BLOCK} to {MOST_PAIRS} pairs, not {max_pairs}; with fewer than {BLOCK}, "
            f"more than one decision in 500 would be a false alarm"
        )
    return tuple(sorted({*range(BLOCK, max_pairs, BLOCK), *before, max_pairs}))


def pairs_to_measure(counted: int, measured: int, max_pairs: int, before: tuple[int, ...] = ()) -> int:
    """Return how many more pairs to measure before the next look; 0 if too many pairs do not count.

    `counted`: how many of the `measured` pairs count, fewer than `max_pairs`. `before`: as in `looks`.
    """
    look = next(pairs for pairs in looks(max_pairs, before) if pairs > counted)
    limit = most_measured(max_pairs) if counted else TRIED
    return max(0, min(look - counted, limit - measured))


def boots_to_show(rare: float) -> int:
    """Return how many boots show a state that this share of boots has, with a chance of 1 - MISSED.

    Raises InputError if a gate cannot measure so many, or if `rare` is not a share.
    """
    boots = math.ceil(math.log(MISSED) / math.log1p(-rare)) if 0 < rare < 1 else 0
    if not 0 < boots <= MOST_PAIRS:
        raise InputError(
            f"--rare {rare * 100:.6g}%: give at least {rarest_shown(MOST_PAIRS):.1%} and less than 100%; a "
            f"gate has at most {MOST_PAIRS} pairs"
        )
    return boots


def rarest_shown(boots: int) -> float:
    """Return the share of boots that must have a state so that one of `boots` boots shows it, with a chance
    of 1 - MISSED.
    """
    return -math.expm1(math.log(MISSED) / boots)


def first_pass(max_pairs: int, rare: float | None, before: tuple[int, ...] = ()) -> int:
    """Return the pairs of the first look that can pass. `rare`: the share of boots of the rarest state that
    must have shown; None: PASS_FROM pairs are enough. `before`: as in `looks`.
    """
    least = PASS_FROM if rare is None else boots_to_show(rare)
    return next((pairs for pairs in looks(max_pairs, before) if pairs >= least), max_pairs)


@cache
def levels(max_pairs: int, error: float, first: int = 0, before: tuple[int, ...] = ()) -> tuple[float, ...]:
    """Return the nominal one-sided level of each look of a gate of `max_pairs` pairs. All looks from `first`
    pairs on have this error together. Earlier looks have the level of the first of these.

    `before`: as in `looks`. Each time that a gate is given more pairs, the new looks share a quarter of the
    error before, so that all looks together have at most 4/3 of the error.
    """
    from scipy.special import ndtr

    planned = looks(max_pairs, before)
    used = [pairs for pairs in planned if pairs >= first]
    ends = (0, *before, max_pairs)
    so_far = np.cumsum([0.0, *(error / 4**times for times in range(len(ends) - 1))])
    spent = np.diff(np.interp(used, ends, so_far), prepend=0.0)
    fractions = np.array(used) / max_pairs
    error_levels: list[float] = ndtr(-_bounds(fractions, spent)).tolist()
    return (*error_levels[:1] * (len(planned) - len(used)), *error_levels)


def decide(
    log_ratios: Sequence[float],
    *,
    larger_than: float,
    max_pairs: int,
    error: float = ALARM,
    rare: float | None = None,
    before: tuple[int, ...] = (),
    same_error: bool = False,
) -> Decision:
    """Decide from the pairs so far.

    `log_ratios`: ln(candidate / baseline) of each pair, in the order of measurement; only the first
    `max_pairs` count. `larger_than`: the change that matters, 0.1 for 10 %; a smaller change passes even if
    it is significant. `error`: the chance of a false alarm over all looks. `rare`,
    `before`: as in `first_pass`. `same_error`: each end of the interval has the error of the decision instead
    of 2.5 %, so that both agree. Raises InputError for values that are not finite or beyond MOST_LOG_RATIO.

    To pass, the worst pair counts twice: if one side is worse only in some boots, the ratios are skewed, and
    Student's t passes too often.
    """
    values = np.asarray(log_ratios, dtype=np.float64)
    if not (np.abs(values) <= MOST_LOG_RATIO).all() or not 0 < larger_than < math.inf:
        raise InputError("a gate can judge only positive finite values, and only a change above 0")
    log_change = math.log1p(larger_than)
    planned = looks(max_pairs, before)
    passing = first_pass(max_pairs, rare, before)
    alarm = _critical(max_pairs, error, before=before)
    overlook = _critical(max_pairs, OVERLOOK, passing, before)
    outcome, used_pairs = Outcome.GO_ON, min(len(values), max_pairs)
    for look, pairs in enumerate(planned):
        if pairs > used_pairs:
            break
        mean, standard_error = _mean_and_error(values[:pairs])
        if _beyond(*_short_of(log_change, values[:pairs], overlook[look])):
            if pairs < passing:
                continue
            outcome, used_pairs = Outcome.PASS, pairs
            break
        if _beyond(mean, alarm[look] * standard_error):
            outcome, used_pairs = Outcome.WORSE, pairs
            break
        if pairs == planned[-1]:
            outcome = Outcome.CANNOT_TELL
    # Each look takes its share of the 5 %, so that the interval holds no matter which look decides.
    level = 0.025 / len(planned)
    if same_error:
        look = max(bisect.bisect_right(planned, used_pairs) - 1, 0)
        level = levels(max_pairs, error, before=before)[look]
    return _decision(outcome, values[:used_pairs], level)


def _root(function: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Return a root between `low` and `high`, to `tolerance` (relative). The values there differ in sign."""
    from scipy import optimize

    return float(cast("Any", optimize).brentq(function, low, high, rtol=tolerance))


def detectable(spread: float, pairs: int, error: float = ALARM) -> float:
    """Return the smallest relative change that a gate of `pairs` pairs detects with 90 % probability, at
    least LEAST_CHANGE. `spread`: the relative standard deviation of the runs of one side; `error`: as in
    `decide`.
    """

    def short_of_power(ratio: float) -> float:
        return _power(ratio, pairs, error) - 0.9

    highest = 4 * _critical(pairs, error)[-1]
    ratio = _root(short_of_power, 0.0, highest, tolerance=1e-6)
    return max(math.expm1(ratio * math.sqrt(2 / pairs) * spread), LEAST_CHANGE)


def pairs_needed(spread: float, larger_than: float, error: float = ALARM) -> int | None:
    """Return the number of pairs, in whole blocks, needed to detect a change of this size with 90 %
    probability; None if MOST_PAIRS are not enough, or the change is below LEAST_CHANGE.
    """

    if larger_than < LEAST_CHANGE:
        return None

    def detects(pairs: int) -> bool:
        of_mean = math.sqrt(2 / pairs) * spread
        return of_mean == 0 or _power(math.log1p(larger_than) / of_mean, pairs, error) >= 0.9

    counts = range(BLOCK, MOST_PAIRS + 1, BLOCK)
    first = bisect.bisect_left(counts, True, key=detects)
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
def _critical(
    max_pairs: int, error: float, first: int = 0, before: tuple[int, ...] = ()
) -> tuple[float, ...]:
    """Return the bound for Student's t at each look; `first`, `before`: as in `levels`."""
    from scipy.special import stdtrit

    numbers = zip(levels(max_pairs, error, first, before), looks(max_pairs, before), strict=True)
    return tuple(-float(stdtrit(pairs - 1, level)) for level, pairs in numbers)


def _relative(log_ratio: float) -> float:
    return math.expm1(log_ratio) if log_ratio < 700 else math.inf


def _beyond(mean: float, bound: float) -> bool:
    return mean > bound and mean > RESOLUTION


def _short_of(target_mean: float, values: Doubles, critical: float) -> tuple[float, float]:
    """Return how far the mean is below `target_mean`, and its bound; the largest value counts twice."""
    cautious = np.append(values, values.max())
    return target_mean - float(cautious.mean()), critical * float(cautious.std(ddof=1)) / math.sqrt(
        len(values)
    )


def _mean_and_error(values: Doubles) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _decision(outcome: Outcome, values: Doubles, level: float) -> Decision:
    if len(values) < 2:
        change = _relative(float(values[0])) if len(values) else 0.0
        return Decision(outcome, len(values), change, None, None, None)
    from scipy.special import stdtrit

    mean, error = _mean_and_error(values)
    half = max(-error * float(stdtrit(len(values) - 1, level)), RESOLUTION)
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
    points: Doubles = np.zeros(1)
    mass: Doubles = np.ones(1)
    before = 0.0
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

        bound: float = _root(left_over, 0.0, widest, tolerance=1e-9)
        after = np.linspace(-widest, bound, GRID)
        kernel = np.exp(-0.5 * ((after[:, None] - points) / step) ** 2)
        density = kernel @ mass / (step * math.sqrt(2 * math.pi))
        simpson = np.where(np.arange(GRID) % 2, 4.0, 2.0)
        simpson[[0, -1]] = 1.0
        points, mass, before = after, density * simpson * (after[1] - after[0]) / 3, time
        bounds.append(bound / math.sqrt(time))
    return np.array(bounds)
