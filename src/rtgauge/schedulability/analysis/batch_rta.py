# SPDX-License-Identifier: MIT
"""The exact analysis of many task sets at once, in int64, all sets side by side; the same answers as `rta`
and `sensitivity`.

Deadlines are the periods; no jitter, blocking or offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rtgauge.schedulability.analysis.sensitivity import PARTS

if TYPE_CHECKING:
    from rtgauge.schedulability.analysis.random_sets import Floats, Ints, ManySets

Booleans = NDArray[np.bool_]
AT_ONCE = 1_000
"""Sets that are analysed together: their numbers stay in the processor's cache."""


def _check_range(period: Ints, execution: Ints, scale: int) -> None:
    """A window w is at most the longest period T, and no C is above its T: so no demand is above the sum of w
    + Tj.

    Raises OverflowError.
    """
    if (execution > period).any() or (execution < 1).any():
        raise ValueError("an execution time is not within 1 ns ... its period")
    longest_ns = (2**63 - 1) // (4 * scale * len(period))
    if int(period.max(initial=0)) > longest_ns:
        raise OverflowError(
            f"periods of more than {longest_ns} ns are too long for this analysis of sets of "
            f"{len(period)} tasks"
        )


def _meets(period: Ints, execution: Ints) -> Booleans:
    """(tasks, sets) -> (sets,): whether each set meets every deadline.

    A task's window grows until it converges or passes the deadline.
    """
    good = np.ones(period.shape[1], dtype=bool)
    alive = np.arange(period.shape[1], dtype=np.int64)
    response = np.zeros(period.shape[1], dtype=np.int64)
    for rank in range(len(period)):
        # Until all higher priorities have been served once, a task gets nothing: its response is at least
        # theirs plus its own execution time.
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
    """Whether each set meets every deadline, by exact response-time analysis.

    Raises OverflowError for periods that int64 cannot hold.
    """
    _check_range(sets.period_ns, sets.execution_ns, 1)
    count = sets.period_ns.shape[1]
    parts = [
        _meets(sets.period_ns[:, i : i + AT_ONCE], sets.execution_ns[:, i : i + AT_ONCE])
        for i in range(0, count, AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.ones(0, dtype=bool)


def largest_growth(sets: ManySets) -> Ints:
    """The largest factor, in millionths, by which the execution times of each set could grow: bisection,
    exact from below, as in `sensitivity`.
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
    # The hyperbolic bound and a utilisation of 1 hold the answer between them; the edges give way to
    # rounding.
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
    """The factor f with product of (1 + f U_i) = 2, by Newton's method from below, so that the hyperbolic
    bound still holds.
    """
    factor = np.log(2) / shares.sum(axis=0)  # e^(f U) >= the product: the factor is at least this
    for _ in range(6):
        grown = 1 + factor * shares
        factor += (np.log(2) - np.log(grown).sum(axis=0)) / (shares / grown).sum(axis=0)
    return factor


def within_bounds(sets: ManySets) -> tuple[Booleans, Booleans]:
    """(Liu-Layland, hyperbolic) of each set, in double precision."""
    shares = sets.execution_ns / sets.period_ns
    count = len(shares)
    return shares.sum(axis=0) <= count * np.expm1(np.log(2) / count), np.log1p(shares).sum(axis=0) <= np.log(
        2
    )
