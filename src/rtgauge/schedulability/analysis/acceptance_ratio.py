# SPDX-License-Identifier: MIT
"""The acceptance ratio: the share of random task sets that is schedulable, over the utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, Field

from rtgauge.analysis.confidence import lower_bound, upper_bound
from rtgauge.schedulability.analysis.batch_rta import largest_growth, schedulable, within_bounds
from rtgauge.schedulability.analysis.random_sets import random_sets
from rtgauge.schedulability.analysis.sensitivity import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 2_000
"""Sets drawn from one stream of random numbers; changing it changes what a seed gives."""


class RatioPoint(BaseModel):
    """At one utilisation: how many of the sets pass each test."""

    utilisation: float
    sets: int
    exact: int = Field(description="schedulable by exact response-time analysis")
    exact_low: float = Field(description="95 % confidence interval of the share (Clopper-Pearson)")
    exact_high: float
    hyperbolic: int
    liu_layland: int
    growth_median: float | None = Field(
        description="median of the largest factor for the execution times; None: not calculated"
    )


class RatioResult(BaseModel):
    """The document of `rtgauge sched --random --json`."""

    sets: int = Field(description="at each utilisation")
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
    """Draw `sets` sets of `tasks` tasks at each utilisation and test them.

    `progress(n)`: n more sets are done.
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
