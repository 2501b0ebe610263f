# SPDX-License-Identifier: MIT
"""The interval of the median of boots contains it as often as it says, however they depend on each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from bench.drawn_systems import KINDS, boots

from rtgauge.analysis.median_of_runs import LEAST_RUNS, median_interval

DRAWS = 300
LEAST = 0.91
"""A coverage of 0.95 is below this share of 300 draws in 1 of 300 cases; the seeds are fixed."""


Draw = Callable[[int, np.random.Generator], tuple[npt.NDArray[np.float64], float]]
"""Draws the levels of this many boots. Returns them with their median in the long run."""


def two_states(number: int, generator: np.random.Generator) -> tuple[npt.NDArray[np.float64], float]:
    """Slow by half are 35 % of the boots, and 65 % are not."""
    median = 0.04 * 0.7363  # the normal quantile of 0.5 / 0.65
    return generator.normal(0, 0.04, number) + 0.4 * (generator.random(number) < 0.35), median


def skewed(number: int, generator: np.random.Generator) -> tuple[npt.NDArray[np.float64], float]:
    return generator.lognormal(0, 1, number), 1.0


DRAWN: dict[str, Draw] = {kind: partial(boots, kind) for kind in KINDS} | {
    "two states": two_states,
    "skewed": skewed,
}


@pytest.mark.parametrize("number", [3, 6, 12, 20, 40])
def test_the_median_lies_in_its_interval(number: int) -> None:
    held: dict[str, float] = {}
    for name, draw in DRAWN.items():
        generator = np.random.default_rng(number)
        inside = 0
        for _ in range(DRAWS):
            levels, median = draw(number, generator)
            interval = median_interval(levels.tolist())
            assert interval is not None
            inside += interval[0] <= median <= interval[1]
        held[name] = inside / DRAWS
    assert min(held.values()) >= LEAST, held


def test_too_few_runs_have_no_interval() -> None:
    assert LEAST_RUNS == 3
    assert median_interval([1.0, 2.0]) is None
    low, high = median_interval([1.0, 1.1, 1.2]) or (math.nan, math.nan)
    assert low < 1.0
    assert high > 1.2


def test_equal_runs_have_an_interval_of_no_width() -> None:
    assert median_interval([3.0] * 7) == (3.0, 3.0)
    assert median_interval([3.0] * 29 + [3.04]) == (3.0, 3.0)
