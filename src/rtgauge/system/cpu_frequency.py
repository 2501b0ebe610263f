# SPDX-License-Identifier: MIT
"""Reads how fast CPUs ran during a step from their counters (APERF, MPERF, TSC), and derives marks.

The counters are the engine's results `frequency`. APERF and MPERF count only while the CPU is not idle (Intel
SDM vol. 3B, sec. 15.2; Linux, arch/x86/kernel/cpu/aperfmperf.c).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Result
from rtgauge.units import format_share, plural

SLOW = 0.9
"""A CPU whose frequency was below this share of its nominal one has a mark."""
MOST_NAMED = 4


class CpuFrequency(NamedTuple):
    """A CPU's mean frequency while it was not idle, and its nominal frequency, in kHz."""

    mean_khz: int
    nominal_khz: int

    @property
    def share(self) -> float:
        """The share of the nominal frequency."""
        return self.mean_khz / self.nominal_khz

    def __str__(self) -> str:
        """Return both in words."""
        return f"{self.mean_khz / 1e6:.2f} of {self.nominal_khz / 1e6:.2f} GHz"


def cpu_frequencies(results: Iterable[Result]) -> dict[int, CpuFrequency]:
    """Return the frequency of each CPU that counted its cycles. A CPU that was idle all the time has none."""
    found: dict[int, CpuFrequency] = {}
    for result in results:
        cpu = result.labels.get("cpu")
        if result.name != "frequency" or not isinstance(cpu, int):
            continue
        counts = [result.values.get(name) for name in ("aperf", "mperf", "tsc", "span_ns")]
        aperf, mperf, tsc, span_ns = (count if isinstance(count, int) else 0 for count in counts)
        if min(aperf, mperf, tsc, span_ns) > 0:
            nominal_khz = tsc * 10**6 / span_ns
            found[cpu] = CpuFrequency(round(nominal_khz * aperf / mperf), round(nominal_khz))
    return found


def frequency_marks(results: Iterable[Result]) -> list[Mark]:
    """Return the mark `slow-cpu` if measured CPUs ran below their nominal frequency."""
    slow = {cpu: each for cpu, each in cpu_frequencies(results).items() if each.share < SLOW}
    if not slow:
        return []
    named = [
        f"CPU {cpu}: {each} ({format_share(each.share)})" for cpu, each in list(slow.items())[:MOST_NAMED]
    ]
    more = f" and {plural(len(slow) - MOST_NAMED, 'more CPU')}" if len(slow) > MOST_NAMED else ""
    detail = f"CPUs ran below their nominal frequency while they were not idle ({'; '.join(named)}{more})"
    return [MarkKind.SLOW_CPU.mark(detail)]
