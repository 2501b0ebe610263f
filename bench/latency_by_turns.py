# SPDX-License-Identifier: MIT
"""Latency of the tools one after the other on the same CPU: a short slice of each makes a round, in an order that changes.

Ratios are taken within a round, whose slices saw nearly the same machine; the figure is the median over all rounds. cyclictest runs twice
a round: its second slice over its first shows how far a ratio strays when nothing differs. Disturbances only ever add, so the
quietest slice of each tool is where the machine interfered least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from figures import CannotMeasure, Figure, Findings
from programs import say
from tools import AGAIN, CYCLICTEST, LIMIT, available, ordered, slice_of

if TYPE_CHECKING:
    from tools import Slice

INTERVALS_US = (203, 997)
"""Neither divides the period of a tick (1, 3.3, 4 or 10 ms): a slice at 1 ms would keep one random distance to it, and that would decide."""


def measure(cpu: int, rounds: int, seconds: float) -> Findings:
    """`rounds` rounds an interval, with slices of `seconds`."""
    findings = Findings()
    names = [*available(findings), AGAIN]
    for interval_us in INTERVALS_US:
        failed: list[str] = []
        found: dict[str, list[Slice]] = {name: [] for name in names}
        for number in range(rounds):
            try:
                now = {name: slice_of(CYCLICTEST if name == AGAIN else name, cpu, interval_us, seconds) for name in ordered(names, number)}
            except CannotMeasure as error:
                failed.append(str(error))
                continue
            for name in names:
                found[name].append(now[name])
            say(f"  {interval_us} us, round {number + 1} of {rounds}: " + ", ".join(f"{name} {now[name].median / 1000:.2f} us" for name in names))
        findings.failed(f"rounds at {interval_us} us", failed, rounds)
        for what in ("median", "mean"):
            of = {name: [float(getattr(one, what)) for one in slices] for name, slices in found.items()}
            findings.figures += figures(f"{what} latency, {interval_us} us: ", of)
    return findings


def figures(head: str, of: dict[str, list[float]]) -> list[Figure]:
    """Ratios and the latencies (ns) of each tool, from one value a round and tool."""

    def ratio(over: str, under: str) -> list[float]:
        return [a / b for a, b in zip(of[over], of[under], strict=True)]

    others = [name for name in of if name not in ("rtgauge", CYCLICTEST, AGAIN)]
    return [
        Figure(head + "rtgauge / cyclictest", ratio("rtgauge", CYCLICTEST), at_most=LIMIT),
        Figure(head + "cyclictest / cyclictest", ratio(AGAIN, CYCLICTEST), note="noise"),
        *[Figure(head + f"rtgauge / {name}", ratio("rtgauge", name)) for name in others],
        Figure(head + "quietest slices, rtgauge / cyclictest", [min(of["rtgauge"]) / min(of[CYCLICTEST] + of[AGAIN])]),
        *[Figure(head + name, values, "ns") for name, values in of.items() if name != AGAIN],
    ]
