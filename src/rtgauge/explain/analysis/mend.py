# SPDX-License-Identifier: MIT
"""What to change against a culprit: in the program, or at the task that is in its way; else the audit's rule
that the machine does not keep.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.explain.analysis.attribution import Kind
from rtgauge.explain.analysis.kernel_lock import MEMORY_LOCK
from rtgauge.system.audit import audit_summary_of
from rtgauge.system.rules import Rule, read_rules

if TYPE_CHECKING:
    from rtgauge.explain.analysis.culprits import RankedCulprit


KERNEL_THREADS = frozenset(
    {"irq", "ksoftirqd", "ktimers", "kworker", "migration", "rcub", "rcuc", "rcu_preempt"}
)
"""Threads of the kernel, without what follows the slash: their priorities are the kernel's own."""
FAIR = 100
"""Priorities from here on are nice values (include/linux/sched/prio.h)."""


@dataclass(frozen=True)
class Mend:
    """What to change, and the id of the audit's rule that has the reason and the commands; None where it is
    about the program, not the machine.
    """

    rule: str | None
    what: str

    @property
    def words(self) -> str:
        """With the rule's name."""
        return self.what if self.rule is None else f"{self.what} (rtgauge audit: {self.rule})"


@functools.cache
def _rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in read_rules()}


INHERIT = "give the lock priority inheritance (PTHREAD_PRIO_INHERIT), or do without the lock"
FAULTS = (
    "lock the program's memory (mlockall), touch all of it before the loop (prefault), and allocate "
    "none in it"
)
MAPPING = (
    "map, protect and free memory (mmap, mprotect, munmap) before the loop, in all threads of the program, "
    "or in another process"
)
OF_PROGRAM = {
    Kind.PAGE_FAULT: FAULTS,
    Kind.FAULT_OR_OWN: FAULTS,
    Kind.LOCK_OWNER: INHERIT,
    Kind.OWNER_ASLEEP: INHERIT,
    Kind.QUOTA: (
        "raise the quota (cpu.max, in version 1 cpu.cfs_quota_us), allow a burst (cpu.max.burst, "
        "cpu.cfs_burst_us), or move the thread to another control group"
    ),
    Kind.STOPPED: "find out who stops it: a shell, a debugger, a checkpoint",
}


def _of_program(ranked: RankedCulprit) -> str | None:
    """What no setting of the machine mends."""
    culprit = ranked.culprit
    if culprit.kind is Kind.KERNEL_LOCK:
        return MAPPING if culprit.name == MEMORY_LOCK else None
    if culprit.kind is Kind.BLOCKED and culprit.name:
        return f"call {culprit.name} in another thread"
    if culprit.kind is not Kind.TASK or culprit.priority is None or culprit.name in KERNEL_THREADS:
        return OF_PROGRAM.get(culprit.kind)
    if ranked.worst.moment.is_blocked:
        return INHERIT
    if culprit.priority >= FAIR:
        return (
            f"give {'the thread that wakes it' if ranked.worst.moment.is_wait else 'the thread'} a "
            "real-time priority (chrt -f)"
        )
    return f"give {culprit.name} a lower real-time priority than the thread that it delays, or another CPU"


def mend_of(ranked: RankedCulprit, facts: Mapping[str, Any]) -> Mend | None:
    """The mend for a culprit on the machine with these facts; None where no rule of the audit concerns it, or
    the machine keeps all that do.
    """
    of_program = _of_program(ranked)
    if of_program is not None:
        return Mend(None, of_program)
    known = [rule for name in ranked.rules if (rule := _rules().get(name)) is not None]
    summary = audit_summary_of(facts)
    if summary is not None:
        differs = {*summary.serious, *summary.moderate, *summary.minor}
        known = [rule for rule in known if rule.title in differs]
    if not known:
        return None
    number = ranked.culprit.number
    what = known[0].mend if number is None else known[0].mend.replace("/proc/irq/N/", f"/proc/irq/{number}/")
    return Mend(known[0].id, what)
