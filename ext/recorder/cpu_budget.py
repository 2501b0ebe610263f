# SPDX-License-Identifier: MIT
"""The share of a CPU that recording may take, and whether the recorder has to spare CPU time."""

from __future__ import annotations

from collections import Counter

from rtgauge.units import NS_PER_S, format_share, format_span

LOOK_NS = 600 * NS_PER_S
"""How long recording must have taken more than its share until it spares CPU time."""
SAVING_NS = 3600 * NS_PER_S
"""For how long it then does, before it is judged again."""


class CpuBudget:
    """Judges the share of the CPU in each stretch of watched time."""

    def __init__(self, share: float, counts: Counter[str]) -> None:
        """`share`: of one CPU (0 to 1). `counts`: of the folder up to now, with `cpu_ns` and `watched_ns`."""
        self._share = share
        self._cpu_ns, self._watched_ns = counts["cpu_ns"], counts["watched_ns"]
        self.spares = False
        """Whether the recorder spares CPU time."""

    def look(self, counts: Counter[str]) -> str | None:
        """Judge, if the stretch is over. Return what has changed, in words; None if nothing has."""
        watched_ns = counts["watched_ns"] - self._watched_ns
        if watched_ns < (SAVING_NS if self.spares else LOOK_NS):
            return None
        used = (counts["cpu_ns"] - self._cpu_ns) / watched_ns
        self._cpu_ns, self._watched_ns = counts["cpu_ns"], counts["watched_ns"]
        if (used > self._share) == self.spares:
            return None
        self.spares = not self.spares
        took = (
            f"recording took {format_share(used)} of a CPU in the last {format_span(watched_ns / NS_PER_S)}"
        )
        if not self.spares:
            return f"{took}, so the recorder records as usual again"
        return (
            f"{took}, more than --budget-cpu; until it takes less, moments that come close together get lost"
        )
