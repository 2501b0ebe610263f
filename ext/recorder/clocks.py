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


TOGETHER_NS, TRIES = NS_PER_S // 1000, 20
"""Readings of the clocks that are further apart are tried again: something else had the CPU in between, which
would look like a suspend.
"""


def clocks() -> Times:
    """Read this machine's clocks, all at the same time as far as possible."""
    found: list[tuple[int, Times]] = []
    for _ in range(TRIES):
        monotonic_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        wall_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        took_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - monotonic_ns
        found.append((took_ns, Times(monotonic_ns, boot_ns, wall_ns)))
        if took_ns < TOGETHER_NS:
            break
    return min(found)[1]


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
