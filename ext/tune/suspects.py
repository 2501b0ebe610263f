# SPDX-License-Identifier: MIT
"""Finds the settings that may remove a cause of lateness: remedies of a run's culprits, the worst culprit
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.explain.analysis.explanation import COPY_ON_WRITE, Kind
from rtgauge.explain.analysis.ranking import RankedCulprit
from rtgauge.explain.analysis.waits import FAIR
from rtgauge.record.model import Step
from rtgauge.record.reader import Record

LEAST_SHARE = 0.05
"""A culprit with a smaller share of the explained time does not count as a cause."""
DEFERRED_WORK = "kworker"
CALLBACKS = "rcuc"
NETWORK = ("NET_RX", "NET_TX")
"""Softirqs of the network (include/linux/interrupt.h)."""
MEMORY = ("compact-unevictable", "compaction-proactiveness", "numa-balancing", "thp", "ksm")


def culprits_of(record: Record, steps: Sequence[Step]) -> list[RankedCulprit]:
    """Return the culprits of explained steps, the most time first. Raises RecordError."""
    ranked = [known for explained in explained_steps(record, steps) for known in explained.culprits]
    return sorted(
        (known for known in ranked if known.time_share >= LEAST_SHARE and known.culprit.kind is not Kind.OWN),
        key=lambda known: -known.ns,
    )


def suspects(culprits: Sequence[RankedCulprit], known: AbstractSet[str]) -> list[str]:
    """Return the ids of the culprits' remedies among the rules `known`."""
    rules = [rule for culprit in culprits for rule in _remedies(culprit)]
    return [rule for rule in dict.fromkeys(rules) if rule in known]


def _remedies(known: RankedCulprit) -> Sequence[str]:
    culprit = known.culprit
    if culprit.kind in {Kind.PAGE_FAULT, Kind.FAULT_OR_OWN}:
        return () if culprit.name == COPY_ON_WRITE else MEMORY
    if culprit.kind is Kind.SOFTIRQ and culprit.name in NETWORK:
        return ("rps", "rfs", *known.rules, "threaded-napi", "network-interrupts-rarely")
    if culprit.kind is Kind.IDLE_EXIT:
        return (*known.rules, "guest-idle")
    if culprit.kind is Kind.TASK and culprit.name.startswith(DEFERRED_WORK):
        return ("workqueues", *known.rules)
    if culprit.kind is Kind.TASK and culprit.name.partition("/")[0] == CALLBACKS:
        return ("rcu-callback-threads", *known.rules)
    if culprit.kind is Kind.TASK and culprit.priority is not None and culprit.priority < FAIR:
        return ("rt-tasks-elsewhere", *known.rules)
    return known.rules
