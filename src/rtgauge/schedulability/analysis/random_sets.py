# SPDX-License-Identifier: MIT
"""Random task sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ManySets:
    """Many task sets of equal size: [task, set], on one CPU, the highest priority first; deadlines are the periods."""

    period_ns: Ints
    execution_ns: Ints


def uunifast_discard(sets: int, tasks: int, utilisation: float, generator: np.random.Generator) -> Floats:
    """[task, set]: utilisations that add up to `utilisation`, evenly spread over all such, none above 1.

    UUniFast: Bini and Buttazzo, Measuring the performance of schedulability tests, Real-Time Systems 30 (2005); sets with a task above 1 are
    thrown away: Davis and Burns, RTSS 2009. Raises ValueError where nearly all would be thrown away.
    """
    if not 0 < utilisation <= max(1.0, tasks / 2):
        raise ValueError(f"a utilisation of {utilisation} is not in 0 ... {max(1.0, tasks / 2)}")
    kept: list[Floats] = []
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
        kept.append(fit)
        missing -= fit.shape[1]
    return np.concatenate(kept, axis=1)


def random_sets(sets: int, tasks: int, utilisation: float, periods_ns: tuple[int, int], generator: np.random.Generator) -> ManySets:
    """Periods log-uniform between `periods_ns` (Emberson, Stafford and Davis, WATERS 2010), rate-monotonic; execution times cut to whole ns, at least 1."""
    shares = uunifast_discard(sets, tasks, utilisation, generator)
    low, high = np.log(periods_ns[0]), np.log(periods_ns[1])
    period = np.rint(np.exp(generator.uniform(low, high, (tasks, sets)))).astype(np.int64)
    order = np.argsort(period, axis=0, kind="stable")
    period = np.take_along_axis(period, order, axis=0)
    execution = np.maximum(1, np.floor(np.take_along_axis(shares, order, axis=0) * period).astype(np.int64))
    return ManySets(period, execution)
