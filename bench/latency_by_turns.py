# SPDX-License-Identifier: MIT
"""Latency of the tools one after the other on the same CPU: a short slice of each makes a round, in an order
that changes.

Ratios are taken within a round, whose slices saw nearly the same machine; the figure is the median over all
rounds. cyclictest runs twice
a round: rtgauge is held against the geometric mean of both, and one over the other shows how far a ratio
strays when nothing differs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from figures import Figure, Findings, Repeated
from programs import say
from tools import AGAIN, CYCLICTEST, LIMIT, available, ordered, slice_of

if TYPE_CHECKING:
    from tools import Slice

INTERVALS_US = (203, 997)
"""Neither divides the period of a tick (1, 3.3, 4 or 10 ms): a slice at 1 ms would keep one random distance
to it, and that would decide.
"""


def measure(cpu: int, rounds: int, seconds: float) -> Findings:
    """`rounds` rounds an interval, with slices of `seconds`."""
    findings = Findings()
    names = [*available(findings), AGAIN]
    for interval_us in INTERVALS_US:
        repeat = Repeated(rounds // 4)
        found: dict[str, list[Slice]] = {name: [] for name in names}
        for number in range(rounds):
            order = ordered(names, number)
            now = repeat(
                lambda order=order, us=interval_us: {
                    name: slice_of(CYCLICTEST if name == AGAIN else name, cpu, us, seconds) for name in order
                }
            )
            for name in names:
                found[name].append(now[name])
            say(
                f"  {interval_us} us, round {number + 1} of {rounds}: "
                + ", ".join(f"{name} {now[name].median / 1000:.2f} us" for name in names)
            )
        findings.notes += repeat.note(f"rounds at {interval_us} us")
        for what in ("median", "mean"):
            of = {name: [float(getattr(one, what)) for one in slices] for name, slices in found.items()}
            findings.figures += figures(f"{what} latency, {interval_us} us: ", of)
    return findings


def figures(head: str, of: dict[str, list[float]]) -> list[Figure]:
    """Ratios and the latencies (ns) of each tool, from one value a round and tool."""

    def ratio(over: str, under: str) -> list[float]:
        return [a / b for a, b in zip(of[over], of[under], strict=True)]

    against_both = [
        one / math.sqrt(a * b) for one, a, b in zip(of["rtgauge"], of[CYCLICTEST], of[AGAIN], strict=True)
    ]
    others = [name for name in of if name not in ("rtgauge", CYCLICTEST, AGAIN)]
    return [
        Figure(head + "rtgauge / cyclictest", against_both, at_most=LIMIT),
        Figure(head + "cyclictest / cyclictest", ratio(AGAIN, CYCLICTEST), note="noise"),
        *[Figure(head + f"rtgauge / {name}", ratio("rtgauge", name)) for name in others],
        *[Figure(head + name, values, "ns") for name, values in of.items() if name != AGAIN],
    ]
