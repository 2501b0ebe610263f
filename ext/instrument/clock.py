# SPDX-License-Identifier: MIT
"""Estimates how fast the instrument's clock runs relative to the host's. The drift is shown, never subtracted
silently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The smallest offset of each window counts: USB and the host may delay a message, but never make it early.
WINDOWS = 32
MIN_WINDOWS = 4


@dataclass(frozen=True)
class ClockDrift:
    """The drift in parts per million. If it is above 0, the host's clock runs faster.

    `low_ppm` to `high_ppm` is the 95 % interval over `seconds`.
    """

    ppm: float
    low_ppm: float
    high_ppm: float
    seconds: float


class ClockComparison:
    """Collects pairs of the instrument's and the host's time."""

    def __init__(self, ticks_per_second: int) -> None:
        self._tick_ns = 1e9 / ticks_per_second
        self._instrument_ns: list[float] = []
        self._offset_ns: list[float] = []
        self._first_host_ns: int | None = None

    def add(self, ticks: int, host_ns: int) -> None:
        """Add a pair: `ticks`, and the time `host_ns` (CLOCK_MONOTONIC) at which the host received them."""
        if self._first_host_ns is None:
            self._first_host_ns = host_ns
        instrument_ns = ticks * self._tick_ns
        self._instrument_ns.append(instrument_ns)
        self._offset_ns.append(host_ns - self._first_host_ns - instrument_ns)

    def drift(self) -> ClockDrift | None:
        """Return Theil and Sen's slope through the smallest offsets of equal windows; None if there are too
        few windows.
        """
        if len(self._instrument_ns) < 2 * MIN_WINDOWS:
            return None
        times = np.asarray(self._instrument_ns)
        offsets = np.asarray(self._offset_ns)
        span = times[-1] - times[0]
        if not span > 0:
            return None
        windows = min(WINDOWS, len(times) // 2)
        window = np.minimum(((times - times[0]) / span * windows).astype(int), windows - 1)
        least = [
            int(members[np.argmin(offsets[members])])
            for w in range(windows)
            if len(members := np.flatnonzero(window == w))
        ]
        if len(least) < MIN_WINDOWS:
            return None
        from scipy import stats  # the import takes 65 MiB and a second in every process that measures

        line = stats.theilslopes(offsets[least], times[least], 0.95)  # pyright: ignore[reportUnknownMemberType]
        slope, _, low, high = (float(value) * 1e6 for value in np.asarray(line, dtype=float))
        return ClockDrift(ppm=slope, low_ppm=low, high_ppm=high, seconds=float(span) / 1e9)
