# SPDX-License-Identifier: MIT
"""Draws random task sets, and computes the schedulable share at each utilisation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from rtgauge.analysis.confidence import lower_bound, upper_bound
from rtgauge.errors import InputError
from rtgauge.schedulability.analysis.rta import PARTS
from rtgauge.units import format_duration, parse_duration_ns

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
STEP = "0.05"
MAX_POINTS = 1_000


@dataclass(frozen=True)
class ManySets:
    """Many task sets of one size on one CPU, as arrays of shape (tasks, sets). The first task has the highest
    priority; deadlines are equal to periods.
    """

    period_ns: Ints
    execution_ns: Ints


def uunifast_discard(sets: int, tasks: int, utilisation: float, generator: np.random.Generator) -> Floats:
    """Return uniformly distributed utilisations, shape (tasks, sets), that add up to `utilisation`; each is
    at most 1.

    UUniFast: Bini and Buttazzo, Measuring the performance of schedulability tests, Real-Time Systems 30
    (2005); sets with a task above 1 are discarded: Davis and Burns, RTSS 2009. numpy's dirichlet has the same
    distribution, but draws other sets from the same seed. Raises ValueError unless 0 < `utilisation` <=
    max(1, `tasks` / 2); above this, nearly all sets would be discarded.
    """
    if not 0 < utilisation <= max(1.0, tasks / 2):
        raise ValueError(f"a utilisation of {utilisation} is not between 0 and {max(1.0, tasks / 2)}")
    accepted: list[Floats] = []
    missing = sets
    while missing > 0:
        rest = np.full(missing, utilisation)
        drawn = np.empty((tasks, missing))
        for i in range(tasks - 1):
            following = rest * generator.random(missing) ** (1 / (tasks - 1 - i))
            drawn[i] = rest - following
            rest = following
        drawn[tasks - 1] = rest
        fit = drawn[:, (drawn <= 1).all(axis=0)]
        accepted.append(fit)
        missing -= fit.shape[1]
    return np.concatenate(accepted, axis=1)


def random_sets(
    sets: int, tasks: int, utilisation: float, periods_ns: tuple[int, int], generator: np.random.Generator
) -> ManySets:
    """Draw rate-monotonic sets with log-uniform periods between `periods_ns` (Emberson, Stafford and Davis,
    WATERS 2010). Execution times are truncated to whole ns, at least 1.
    """
    shares = uunifast_discard(sets, tasks, utilisation, generator)
    low, high = np.log(periods_ns[0]), np.log(periods_ns[1])
    period = np.rint(np.exp(generator.uniform(low, high, (tasks, sets)))).astype(np.int64)
    order = np.argsort(period, axis=0, kind="stable")
    period = np.take_along_axis(period, order, axis=0)
    execution = np.maximum(1, np.floor(np.take_along_axis(shares, order, axis=0) * period).astype(np.int64))
    return ManySets(period, execution)


def parse_utilisations(text: str) -> list[float]:
    """Parse `LOW:HIGH:STEP`: "0.5:1.0" -> [0.5, 0.55, ... 1.0]. One number is one utilisation. Raises
    InputError for any other text.
    """
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", part.strip()) for part in parts):
        raise InputError(f"--utilisation {text}: give LOW:HIGH or LOW:HIGH:STEP, for example 0.5:1.0:0.05")
    low, high, step = (
        Decimal(parts[0]),
        Decimal(parts[1] if len(parts) > 1 else parts[0]),
        Decimal(parts[2] if len(parts) > 2 else STEP),
    )
    if not 0 < low <= high <= 1:
        raise InputError(f"--utilisation {text}: give values above 0 and at most 1, the lower one first")
    if step <= 0 or (high - low) / step >= MAX_POINTS:
        raise InputError(f"--utilisation {text}: give a STEP above 0 that makes at most {MAX_POINTS} points")
    return [float(low + i * step) for i in range(int((high - low) / step) + 1)]


def parse_periods(text: str, tasks: int) -> tuple[int, int]:
    """Parse `LOW:HIGH`: "10ms:1s" -> (10000000, 1000000000).

    More `tasks` need shorter periods. Raises InputError if the text or the range is invalid.
    """
    low, sign, high = text.partition(":")
    try:
        shortest_ns, longest_ns = parse_duration_ns(low), parse_duration_ns(high if sign else low)
    except ValueError as error:
        raise InputError(f"--periods {text}: {error}") from None
    largest_ns = (2**63 - 1) // (4 * PARTS * tasks)
    if not 1_000 <= shortest_ns <= longest_ns <= largest_ns:
        raise InputError(
            f"--periods {text}: give LOW:HIGH, with LOW at least 1us and HIGH, for {tasks} tasks, at most "
            f"{format_duration(largest_ns // 10**9 * 10**9)}"
        )
    return shortest_ns, longest_ns


Booleans = NDArray[np.bool_]
AT_ONCE = 1_000
"""How many sets are analysed together. Their numbers then stay in the processor's cache."""


def _check_range(period: Ints, execution: Ints, scale: int) -> None:
    """Raise OverflowError if a demand could exceed int64, and ValueError if an execution time is not between
    1 ns and its period. A window w is at most the longest period T, and no C exceeds its T, so a demand is at
    most the sum of w + Tj.
    """
    if (execution > period).any() or (execution < 1).any():
        raise ValueError("an execution time is not between 1 ns and its period")
    longest_ns = (2**63 - 1) // (4 * scale * len(period))
    if int(period.max(initial=0)) > longest_ns:
        raise OverflowError(
            f"periods of more than {longest_ns} ns are too long for this analysis of sets of "
            f"{len(period)} tasks"
        )


def _meets(period: Ints, execution: Ints) -> Booleans:
    """Return, for arrays of shape (tasks, sets), whether each set meets every deadline.

    A task's window grows until it converges or exceeds the deadline.
    """
    good = np.ones(period.shape[1], dtype=bool)
    alive = np.arange(period.shape[1], dtype=np.int64)
    response = np.zeros(period.shape[1], dtype=np.int64)
    for rank in range(len(period)):
        # A task gets nothing until all higher priorities have run once: its response is at least theirs plus
        # its own execution time.
        window = response + execution[rank]
        pending = np.arange(len(alive))
        high_period, high_execution, own, limit = (
            period[:rank],
            execution[:rank],
            execution[rank],
            period[rank],
        )
        late = np.zeros(len(alive), dtype=bool)
        grown = window.copy()
        while len(pending):
            demand = own + ((grown + (high_period - 1)) // high_period * high_execution).sum(axis=0)
            window[pending] = demand
            over = demand > limit
            late[pending[over]] = True
            grows = np.flatnonzero((demand > grown) & ~over)
            pending, grown = pending[grows], demand[grows]
            high_period, high_execution = high_period.take(grows, axis=1), high_execution.take(grows, axis=1)
            own, limit = own[grows], limit[grows]
        good[alive[late]] = False
        keep = np.flatnonzero(~late)
        alive, response = alive[keep], window[keep]
        if len(keep) < len(late):
            period, execution = period.take(keep, axis=1), execution.take(keep, axis=1)
    return good


def schedulable(sets: ManySets) -> Booleans:
    """Return whether each set meets every deadline, shape (sets,), by exact response-time analysis.

    Raises OverflowError for periods too long for int64.
    """
    _check_range(sets.period_ns, sets.execution_ns, 1)
    count = sets.period_ns.shape[1]
    parts = [
        _meets(sets.period_ns[:, i : i + AT_ONCE], sets.execution_ns[:, i : i + AT_ONCE])
        for i in range(0, count, AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.ones(0, dtype=bool)


def largest_growth(sets: ManySets) -> Ints:
    """Return the largest factor, in millionths, by which each set's execution times can grow, shape (sets,).
    It is found by bisection, exact from below, as in `rta.largest_growth`.
    """
    _check_range(sets.period_ns, sets.execution_ns, PARTS)
    count = sets.period_ns.shape[1]
    parts = [
        _growth(sets.period_ns[:, i : i + AT_ONCE], sets.execution_ns[:, i : i + AT_ONCE])
        for i in range(0, count, AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.ones(0, dtype=np.int64)


def _growth(period: Ints, execution: Ints) -> Ints:
    scaled = period * PARTS
    share = (execution / period).sum(axis=0)
    # The answer is between the hyperbolic bound and a utilisation of 1, with margins for rounding.
    low = np.floor(_hyperbolic_growth(execution / period) * PARTS).astype(np.int64) - 2
    high = np.ceil(PARTS / share).astype(np.int64) + 2
    low = np.maximum(low, 0)
    while (open_sets := np.flatnonzero(high - low > 1)).size:
        middle = (low[open_sets] + high[open_sets]) // 2
        good = _meets(scaled[:, open_sets], execution[:, open_sets] * middle)
        low[open_sets[good]] = middle[good]
        high[open_sets[~good]] = middle[~good]
    return low


def _hyperbolic_growth(shares: Floats) -> Floats:
    """Return the factor f with product of (1 + f U_i) = 2. Newton's method finds it from below, so the result
    stays within the hyperbolic bound.
    """
    factor = np.log(2) / shares.sum(axis=0)  # e^(f U) >= the product, so the factor is at least this
    for _ in range(6):
        grown = 1 + factor * shares
        factor += (np.log(2) - np.log(grown).sum(axis=0)) / (shares / grown).sum(axis=0)
    return factor


def within_bounds(sets: ManySets) -> tuple[Booleans, Booleans]:
    """Return (Liu-Layland, hyperbolic): whether each set is within the bound, both of shape (sets,), in
    double precision.
    """
    shares = sets.execution_ns / sets.period_ns
    count = len(shares)
    return shares.sum(axis=0) <= count * np.expm1(np.log(2) / count), np.log1p(shares).sum(axis=0) <= np.log(
        2
    )


CHUNK = 2_000
"""How many sets are drawn from one stream of random numbers. Another value gives a seed other sets."""


class RatioPoint(BaseModel):
    """How many sets pass each test at one utilisation."""

    utilisation: float
    sets: int
    exact: int = Field(description="number of sets that exact response-time analysis finds schedulable")
    exact_low: float = Field(
        description="95 % confidence interval of the schedulable share (Clopper-Pearson)"
    )
    exact_high: float
    hyperbolic: int
    liu_layland: int
    growth_median: float | None = Field(
        description="median of the largest factors for the execution times; None: not calculated"
    )


class RatioResult(BaseModel):
    """The document of `rtgauge sched --random --json`."""

    sets: int = Field(description="number of sets at each utilisation")
    tasks: int
    periods_ns: tuple[int, int]
    seed: int
    points: list[RatioPoint]


def schedulability_ratio(
    sets: int,
    tasks: int,
    utilisations: list[float],
    *,
    periods_ns: tuple[int, int],
    seed: int,
    growth: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> RatioResult:
    """Draw `sets` sets of `tasks` tasks at each utilisation and test them. Call `progress(n)` after n more
    sets.
    """
    points: list[RatioPoint] = []
    for number, share in enumerate(utilisations):
        exact = hyperbolic = liu_layland = 0
        factors: list[np.ndarray] = []
        for chunk, begin in enumerate(range(0, sets, CHUNK)):
            size = min(CHUNK, sets - begin)
            task_sets = random_sets(
                size, tasks, share, periods_ns, np.random.default_rng([seed, number, chunk])
            )
            within_ll, within_product = within_bounds(task_sets)
            exact += int(schedulable(task_sets).sum())
            liu_layland += int(within_ll.sum())
            hyperbolic += int(within_product.sum())
            if growth:
                factors.append(largest_growth(task_sets))
            progress(size)
        points.append(
            RatioPoint(
                utilisation=share,
                sets=sets,
                exact=exact,
                exact_low=lower_bound(exact, sets, 0.975),
                exact_high=upper_bound(exact, sets, 0.975),
                hyperbolic=hyperbolic,
                liu_layland=liu_layland,
                growth_median=float(np.median(np.concatenate(factors))) / PARTS if factors else None,
            )
        )
    return RatioResult(sets=sets, tasks=tasks, periods_ns=periods_ns, seed=seed, points=points)
