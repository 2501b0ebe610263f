# SPDX-License-Identifier: MIT
"""Reads what each CPU's counters say about a step: how fast it ran, and what slowed its work down.

The counters are the engine's results `frequency` (APERF, MPERF, TSC) and `instructions` (cycles,
instructions, last-level misses). Except TSC, they count only while the CPU is not idle (Intel SDM vol. 3B,
sec. 15.2 and ch. 21; Linux, arch/x86/kernel/cpu/aperfmperf.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


class CpuWork(NamedTuple):
    """What a CPU did in a step, all tasks together."""

    cycles: int
    instructions: int
    misses: int

    @property
    def cycles_each(self) -> float:
        """Cycles per instruction."""
        return self.cycles / self.instructions

    @property
    def misses_per_1000(self) -> float:
        """Last-level cache misses per 1,000 instructions."""
        return 1000 * self.misses / self.instructions


def _counts(results: Iterable[Result], name: str, keys: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
    """Return the counters of each CPU that has all of them; -1 for one that is damaged."""
    for result in results:
        cpu = result.labels.get("cpu")
        if result.name == name and isinstance(cpu, int):
            values = [result.values.get(key) for key in keys]
            yield cpu, [value if isinstance(value, int) else -1 for value in values]


def cpu_frequencies(results: Iterable[Result]) -> dict[int, CpuFrequency]:
    """Return the frequency of each CPU that counted its cycles. A CPU that was idle all the time has none."""
    frequencies: dict[int, CpuFrequency] = {}
    for cpu, counts in _counts(results, "frequency", ("aperf", "mperf", "tsc", "span_ns")):
        aperf, mperf, tsc, span_ns = counts
        if min(counts) > 0:
            nominal_khz = tsc * 10**6 / span_ns
            frequencies[cpu] = CpuFrequency(round(nominal_khz * aperf / mperf), round(nominal_khz))
    return frequencies


def cpu_work(results: Iterable[Result]) -> dict[int, CpuWork]:
    """Return what each CPU did, if it counted its instructions."""
    return {
        cpu: CpuWork(*counts)
        for cpu, counts in _counts(results, "instructions", ("cycles", "instructions", "llc_misses"))
        if min(counts[:2]) > 0 and counts[2] >= 0
    }


SLOWER = 1.1
"""From this factor on, an instruction took notably longer than in another step."""
MORE_MISSES = 1.5


def why_slower(
    now: CpuWork, before: CpuWork, frequency: CpuFrequency | None, frequency_before: CpuFrequency | None
) -> str | None:
    """Return what made an instruction of a CPU take longer than before; None if it did not. Both factors are
    named if both are notable, the larger one first.

    Time per instruction = cycles per instruction / frequency. Without the frequencies, only cycles count.
    """
    causes: list[tuple[float, str]] = []
    if frequency is not None and frequency_before is not None:
        khz, khz_before = frequency.mean_khz, frequency_before.mean_khz
        if khz_before >= SLOWER * khz:
            words = f"it ran at {khz / 1e6:.2f} instead of {khz_before / 1e6:.2f} GHz"
            causes.append((khz_before / khz, words))
    more_cycles = now.cycles_each / before.cycles_each
    if more_cycles >= SLOWER:
        words = f"an instruction took {more_cycles:.1f} times as many cycles, "
        if now.misses_per_1000 >= MORE_MISSES * max(before.misses_per_1000, 0.1):
            words += (
                f"with {before.misses_per_1000:.1f} → {now.misses_per_1000:.1f} last-level misses per 1,000: "
                "cache or memory bandwidth"
            )
        else:
            words += "without more last-level misses: other instructions, or a busy sibling (SMT)"
        causes.append((more_cycles, words))
    return "; ".join(words for _, words in sorted(causes, reverse=True)) or None


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
