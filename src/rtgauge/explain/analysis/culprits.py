# SPDX-License-Identifier: MIT
"""Ranks the culprits of a step or a run by what they cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.attribution import Culprit, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rtgauge.explain.analysis.attribution import Explanation

MENDS: dict[Kind, tuple[str, ...]] = {
    Kind.IRQ: ("irqs-on-isolated", "isolated-cpus", "threaded-interrupts"),
    Kind.INTERRUPT: ("nohz-full", "isolated-cpus"),
    Kind.SOFTIRQ: ("irqs-on-isolated", "isolated-cpus", "preempt-rt-running"),
    Kind.NMI: ("nmi-watchdog",),
    Kind.TASK: ("isolated-cpus",),
    Kind.IDLE_EXIT: ("c-states",),
    Kind.TIMER_LATE: ("preempt-rt-running", "real-machine"),
    Kind.INTERRUPTS_OFF: ("preempt-rt-running",),
    Kind.PREEMPTION_OFF: ("preemptible-kernel", "preempt-rt-running"),
    Kind.NO_SOFTWARE: ("real-machine", "guest-dedicated-hint"),
    Kind.STEAL: ("real-machine", "guest-dedicated-hint"),
    Kind.THROTTLED: ("fair-server", "rt-throttling", "rt-group-throttling"),
    Kind.REMOTE_WAKEUP: ("guest-idle", "c-states"),
}
"""Kind -> ids of the audit's rules (system/rules.toml) that say what to change, the likeliest first."""


LEAST_SHARE = 0.05
"""Of the time: a culprit with less comes after the thread's own work."""


@dataclass(frozen=True)
class RankedCulprit:
    """What one culprit cost.

    `outliers`: latencies of which it took the most; `ns`: its time in all of them; `worst_ns`: in one;
    `worst`: that one.
    """

    culprit: Culprit
    outliers: int
    ns: int
    worst_ns: int
    worst: Explanation
    outlier_share: float
    time_share: float
    rules: tuple[str, ...]


def ranked_culprits(explanations: Iterable[Explanation]) -> list[RankedCulprit]:
    """The culprits of all latencies, that with the most time first, but the thread's own work last.

    Shares are of the latencies, and of all their time.
    """
    explained = list(explanations)
    total = sum(explanation.latency_ns for explanation in explained)
    led: dict[Culprit, int] = defaultdict(int)
    took: dict[Culprit, list[tuple[int, Explanation]]] = defaultdict(list)
    for explanation in explained:
        led[general(explanation.main.culprit)] += 1
        times: dict[Culprit, int] = defaultdict(int)
        for part in explanation.parts:
            times[general(part.culprit)] += part.ns
        for culprit, ns in times.items():
            took[culprit].append((ns, explanation))
    ranked = [
        RankedCulprit(
            culprit,
            led[culprit],
            sum(ns for ns, _ in costs),
            *max(costs, key=lambda cost: cost[0]),
            led[culprit] / len(explained),
            sum(ns for ns, _ in costs) / total if total > 0 else 0.0,
            rules_of(culprit),
        )
        for culprit, costs in took.items()
    ]
    return sorted(
        ranked, key=lambda known: (_place(known), -known.ns, known.culprit.kind, known.culprit.name)
    )


def _place(ranked: RankedCulprit) -> int:
    """What the thread itself had to do comes after what made it late, unless that is next to nothing."""
    if ranked.culprit.kind in {Kind.OWN, Kind.FAULT_OR_OWN}:
        return 1
    return 0 if ranked.time_share >= LEAST_SHARE else 2


def general(culprit: Culprit) -> Culprit:
    """The culprit as a run counts it: all throttling together, and one of a kernel thread's instances for the
    others (kworker/0:1 -> kworker).
    """
    if culprit.kind is Kind.THROTTLED:
        return Culprit(Kind.THROTTLED, mechanism=culprit.mechanism)
    thread, slash, _ = culprit.name.partition("/")
    return (
        replace(culprit, name=thread, pid=None)
        if slash and culprit.kind not in {Kind.IRQ, Kind.NMI} and thread
        else culprit
    )


def rules_of(culprit: Culprit) -> tuple[str, ...]:
    """The ids of the audit's rules that concern a culprit."""
    return MENDS.get(culprit.kind, ())
