# SPDX-License-Identifier: MIT
from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge_ext.instrument.clock import ClockComparison

HZ = 125_000_000


@pytest.mark.parametrize("ppm", [-40.0, 0.0, 25.0])
def test_drift_is_found_under_late_messages(ppm):
    late = random.Random(3)
    clock = ClockComparison(HZ)
    for i in range(600):
        seconds = i / 10
        # Mostly some 100 us late, now and then 20 ms.
        delay_ns = late.expovariate(1 / 100_000) + (20_000_000 if late.random() < 0.05 else 0)
        clock.add(int(seconds * HZ), int(5_000_000_000 + seconds * 1e9 * (1 + ppm / 1e6) + delay_ns))
    drift = clock.drift()
    assert drift is not None
    assert drift.ppm == pytest.approx(ppm, abs=1.0)
    assert drift.low_ppm <= drift.ppm <= drift.high_ppm
    assert drift.low_ppm - 0.5 <= ppm <= drift.high_ppm + 0.5
    assert drift.seconds == pytest.approx(59.9)


def test_too_little_says_nothing():
    clock = ClockComparison(HZ)
    assert clock.drift() is None
    for _ in range(20):
        clock.add(5, 5)
    assert clock.drift() is None


@settings(max_examples=30, deadline=None)
@given(st.floats(-500, 500), st.integers(0, 2**32 - 1))
def test_the_drift_of_an_instruments_clock(ppm: float, seed: int):
    generator = np.random.default_rng(seed)
    clock = ClockComparison(1_000_000)
    for tick in range(200):
        clock.add(tick * 10_000, round(tick * 1e7 * (1 + ppm * 1e-6) + generator.exponential(50_000)))
    drift = clock.drift()
    assert drift is not None
    assert drift.low_ppm <= drift.ppm <= drift.high_ppm
