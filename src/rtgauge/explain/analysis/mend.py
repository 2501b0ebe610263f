# SPDX-License-Identifier: MIT
"""What to change against a culprit: the priority or the CPU of a real-time task; else the audit's rule that the machine does not keep."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.explain.analysis.attribution import Kind
from rtgauge.system.audit import audit_summary_of
from rtgauge.system.rules import Rule, read_rules

if TYPE_CHECKING:
    from rtgauge.explain.analysis.culprits import RankedCulprit


KERNEL_THREADS = frozenset({"irq", "ksoftirqd", "ktimers", "kworker", "migration", "rcub", "rcuc", "rcu_preempt"})
"""Threads of the kernel, without what follows the slash: their priorities are the kernel's own."""
FAIR = 100
"""Priorities from here on are nice values (include/linux/sched/prio.h)."""


@dataclass(frozen=True)
class Mend:
    """What to change, and the id of the audit's rule that has the reason and the commands; None where it is about the program, not the machine."""

    rule: str | None
    what: str

    @property
    def words(self) -> str:
        """With the rule's name."""
        return self.what if self.rule is None else f"{self.what} (rtgauge audit: {self.rule})"


@functools.cache
def _rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in read_rules()}


def mend_of(ranked: RankedCulprit, facts: Mapping[str, Any]) -> Mend | None:
    """The mend for a culprit on the machine with these facts; None where no rule of the audit concerns it, or the machine keeps all that do."""
    culprit = ranked.culprit
    if culprit.kind is Kind.TASK and culprit.priority is not None and culprit.priority < FAIR and culprit.name not in KERNEL_THREADS:
        return Mend(None, f"give {culprit.name} a lower real-time priority than the thread that it delays, or another CPU")
    known = [rule for name in ranked.rules if (rule := _rules().get(name)) is not None]
    summary = audit_summary_of(facts)
    if summary is not None:
        differs = {*summary.serious, *summary.moderate, *summary.minor}
        known = [rule for rule in known if rule.title in differs]
    if not known:
        return None
    number = culprit.number
    what = known[0].mend if number is None else known[0].mend.replace("/proc/irq/N/", f"/proc/irq/{number}/")
    return Mend(known[0].id, what)
