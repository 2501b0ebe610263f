# SPDX-License-Identifier: MIT
"""Ranks the culprits of explained latencies by the time that they took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rtgauge.explain.analysis.explanation import OR, Culprit, Explanation, Kind

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
    Kind.SEND_QUEUE: ("network-shaper",),
    Kind.CARD_WAITED: ("network-interrupts-at-once",),
    Kind.FAR_END: ("network-interrupts-at-once", "energy-efficient-ethernet"),
    Kind.POLL: ("network-polls-at-once", "threaded-napi"),
    Kind.POLL_KEPT: ("napi-thread-priority", "threaded-napi"),
}
"""Kind -> ids of the audit rules (ext/audit/rules.toml) that say what to change, the most likely first."""


LEAST_SHARE = 0.05
"""A culprit with a smaller share of the time than this comes after the thread's own work."""


@dataclass(frozen=True)
class RankedCulprit:
    """One culprit with its cost.

    `outliers`: the number of latencies in which it took the most time. `ns`: its total time. `worst_ns`: its
    time in `worst`. `outlier_share` and `time_share`: `outliers` and `ns` as shares (0 to 1) of all latencies
    and of their total time.
    """

    culprit: Culprit
    outliers: int
    ns: int
    worst_ns: int
    worst: Explanation
    outlier_share: float
    time_share: float

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the audit rules that concern the culprit."""
        steered = ("rps",) if self.culprit.mechanism == "RPS" else ()
        return (*steered, *MENDS.get(self.culprit.kind, ()))


def ranked_culprits(explanations: Iterable[Explanation]) -> list[RankedCulprit]:
    """Rank the culprits of all latencies by their time. The thread's own work, and what no event explains,
    come after the causes with at least LEAST_SHARE of the time, and before all other causes. Page faults rank
    with own work if it took more time between them than they did.
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
        )
        for culprit, costs in took.items()
    ]
    faults_ns = sum(known.ns for known in ranked if known.culprit.kind is Kind.PAGE_FAULT)
    among_ns = sum(part.among_faults_ns for explanation in explained for part in explanation.parts)
    own = OWN | {Kind.PAGE_FAULT} if among_ns > faults_ns else OWN
    return sorted(
        ranked, key=lambda known: (_place(known, own), -known.ns, known.culprit.kind, known.culprit.name)
    )


OWN = frozenset({Kind.OWN, Kind.FAULT_OR_OWN, Kind.UNATTRIBUTED})


def _place(ranked: RankedCulprit, own: frozenset[Kind]) -> int:
    """Return the rank: 0 for a cause, 1 for the thread's own work and what no event explains, 2 for a cause
    below LEAST_SHARE.
    """
    if ranked.time_share < LEAST_SHARE and ranked.culprit.kind not in OWN:
        return 2
    return 1 if ranked.culprit.kind in own else 0


def general(culprit: Culprit) -> Culprit:
    """Return the culprit as a run counts it: all throttling as one culprit, and all instances of a kernel
    thread as one.
    """
    if culprit.kind is Kind.THROTTLED:
        return Culprit(Kind.THROTTLED, mechanism=culprit.mechanism, user=culprit.user)
    if culprit.kind in {Kind.IRQ, Kind.NMI}:
        return culprit
    name = OR.join(task.partition("/")[0] or task for task in culprit.name.split(OR))
    return culprit if name == culprit.name else replace(culprit, name=name, pid=None)
