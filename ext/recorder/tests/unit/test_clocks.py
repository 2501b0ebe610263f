# SPDX-License-Identifier: MIT
"""The clocks are read together, although something else may have the CPU between two readings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ext.recorder.tests.driven import SECOND
from rtgauge_ext.recorder.clocks import Times, clocks, jumps

if TYPE_CHECKING:
    import pytest


def test_a_pause_between_two_readings_is_no_suspend(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 1000 * SECOND
    readings = 0

    def read(_clock: int) -> int:
        nonlocal now_ns, readings
        readings += 1
        now_ns += 50_000_000 if readings in {2, 7} else 1_000
        return now_ns

    monkeypatch.setattr(time, "clock_gettime_ns", read)
    before = Times(now_ns, now_ns, now_ns)
    assert jumps(before, clocks()) == (0, 0)
    assert readings == 12, "the readings that a pause has parted are tried again"


def test_readings_that_are_always_apart_are_the_closest(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 1000 * SECOND
    step_ns = 30_000_000

    def read(_clock: int) -> int:
        nonlocal now_ns, step_ns
        step_ns = max(2_000_000, step_ns - 1_000_000)
        now_ns += step_ns
        return now_ns

    monkeypatch.setattr(time, "clock_gettime_ns", read)
    read_now = clocks()
    assert read_now.boot_ns - read_now.monotonic_ns == 2_000_000
