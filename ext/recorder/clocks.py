# SPDX-License-Identifier: MIT
"""The clocks by which the recorder counts hours, suspends and settings of the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from rtgauge.units import NS_PER_S

SUSPENDED_NS = NS_PER_S // 100
SET_NS = NS_PER_S // 10
"""A change of the wall clock counts as a setting from here on. NTP slews it by at most 30 ms a minute."""


class Times(NamedTuple):
    """One reading of each clock (ns). `boot_ns` also counts while the machine is suspended."""

    monotonic_ns: int
    boot_ns: int
    wall_ns: int


Clock = Callable[[], Times]


def clocks() -> Times:
    """Read this machine's clocks."""
    return Times(
        time.clock_gettime_ns(time.CLOCK_MONOTONIC),
        time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        time.clock_gettime_ns(time.CLOCK_REALTIME),
    )


class Jumps(NamedTuple):
    """What the clocks did between two readings (ns): how long the machine was suspended, and by how much the
    wall clock was set; 0 if neither happened.
    """

    suspended_ns: int
    set_ns: int


def jumps(before: Times, now: Times) -> Jumps:
    """Return what the clocks did between two readings."""
    suspended_ns = (now.boot_ns - before.boot_ns) - (now.monotonic_ns - before.monotonic_ns)
    set_ns = (now.wall_ns - before.wall_ns) - (now.boot_ns - before.boot_ns)
    return Jumps(suspended_ns if suspended_ns >= SUSPENDED_NS else 0, set_ns if abs(set_ns) >= SET_NS else 0)
