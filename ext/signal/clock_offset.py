# SPDX-License-Identifier: MIT
"""Compares the clocks of two machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class ClockOffset(NamedTuple):
    """The offset to add to times of another machine's CLOCK_MONOTONIC to get ours, and its uncertainty."""

    ns: int
    uncertainty_ns: int


def clock_offset(ours: Callable[[], int], theirs: Callable[[], int]) -> ClockOffset:
    """Return the offset from the clock that `theirs` reads to the clock that `ours` reads (both in ns).

    Our clock is read before and after the other one. Half the time between is the uncertainty.
    """
    before_ns, their_ns, after_ns = ours(), theirs(), ours()
    return ClockOffset((before_ns + after_ns) // 2 - their_ns, (after_ns - before_ns) // 2)
