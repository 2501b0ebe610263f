# SPDX-License-Identifier: MIT
"""The minimiser and the root finder behind the tails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.analysis.newton import minimise, root


def valley(q):
    """Rosenbrock's: curved, least at (1, 1)."""
    x, y = q
    return 100 * (y - x**2) ** 2 + (1 - x) ** 2, np.array(
        [-400 * x * (y - x**2) - 2 * (1 - x), 200 * (y - x**2)]
    )


def walled(q):
    """x - log x: infinite at 0 and below, least at 1."""
    (x,) = q
    return (x - math.log(x), np.array([1 - 1 / x])) if x > 0 else (math.inf, np.zeros(1))


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.0, 0.0), (5.0, -5.0)])
def test_it_follows_a_curved_valley(start):
    at, value = minimise(valley, np.array(start), tolerance=1e-10)
    assert at == pytest.approx([1, 1], abs=1e-4)
    assert value < 1e-9


@pytest.mark.parametrize("start", [1e-3, 0.5, 40.0])
def test_it_stays_inside_of_the_walls(start):
    at, value = minimise(walled, np.array([start]), tolerance=1e-10)
    assert at[0] == pytest.approx(1, abs=1e-4)
    assert value == pytest.approx(1, abs=1e-8)


def test_outside_it_says_so():
    assert minimise(walled, np.array([-1.0]), tolerance=1e-10)[1] == math.inf


@given(st.floats(-50, 50), st.floats(0.1, 5))
def test_a_root_is_found(place, bend):
    def function(x):
        return math.copysign(abs(x - place) ** bend, x - place)

    low, high = place - 3.0, place + 7.0
    result = root(function, (low, function(low)), (high, function(high)), tolerance=1e-6)
    assert low <= result <= high
    if 0.5 <= bend <= 2:
        assert result == pytest.approx(place, abs=0.01 * max(1.0, abs(place)))
