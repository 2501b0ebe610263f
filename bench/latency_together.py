# SPDX-License-Identifier: MIT
"""Latency of two tools that measure the same CPU at the same time.

A machine's latency drifts by tens of per cent within seconds, above all in a virtual machine, and buries a
difference of 3 %. Two tools
that run at once see the same drift. Their intervals differ by about 1 %, so that each meets the other at
every distance in time, and are
exchanged from round to round; so is who starts first. What they do to each other is the same both ways, as
cyclictest beside a second
cyclictest shows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from figures import Figure, Findings, Repeated
from programs import say
from tools import CYCLICTEST, LIMIT, available, ordered, slice_of

if TYPE_CHECKING:
    from tools import Slice

INTERVALS_US = ((203, 211), (997, 1009))
"""None divides the period of a tick (1, 3.3, 4 or 10 ms), so that no slice keeps one distance to it."""


def pair(first: tuple[str, int], second: tuple[str, int], cpu: int, seconds: float) -> tuple[Slice, Slice]:
    """Slices of two tools, each with its interval in us, that run at the same time."""
    with ThreadPoolExecutor(2) as pool:
        waiting = [
            pool.submit(slice_of, name, cpu, interval_us, seconds) for name, interval_us in (first, second)
        ]
        return waiting[0].result(), waiting[1].result()


def measure(cpu: int, rounds: int, seconds: float) -> Findings:
    """`rounds` rounds of `seconds` for each pair of tools and each interval."""
    findings = Findings()
    names = available(findings)
    pairs = [
        ("rtgauge", CYCLICTEST),
        (CYCLICTEST, CYCLICTEST),
        *[("rtgauge", name) for name in names if name not in ("rtgauge", CYCLICTEST)],
    ]
    for lengths in INTERVALS_US:
        repeat = Repeated(rounds // 4)
        found: dict[tuple[str, str], list[tuple[Slice, Slice]]] = {names: [] for names in pairs}
        for number in range(rounds):
            intervals = lengths if number % 2 else (lengths[1], lengths[0])
            for over, under in ordered(pairs, number):
                both = (over, intervals[0]), (under, intervals[1])
                if number // 2 % 2:
                    one, other = repeat(lambda both=both: pair(both[0], both[1], cpu, seconds))
                else:
                    other, one = repeat(lambda both=both: pair(both[1], both[0], cpu, seconds))
                found[over, under].append((one, other))
            now = ", ".join(
                f"{over} / {under} {a.median / b.median:.3f}" for (over, under), [*_, (a, b)] in found.items()
            )
            say(f"  {lengths[0]} us, round {number + 1} of {rounds}: {now}")
        findings.notes += repeat.note(f"pairs of slices at {lengths[0]} us")
        for what in ("median", "mean"):
            for (over, under), slices in found.items():
                ratios = [getattr(a, what) / getattr(b, what) for a, b in slices]
                limit = LIMIT if (over, under) == ("rtgauge", CYCLICTEST) else None
                note = "noise" if over == under else ""
                findings.figures.append(
                    Figure(
                        f"{what} latency, {lengths[0]} us: {over} / {under}", ratios, at_most=limit, note=note
                    )
                )
    return findings
