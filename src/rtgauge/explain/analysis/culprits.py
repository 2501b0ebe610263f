# SPDX-License-Identifier: MIT
"""Ranks the culprits of a step or a run by what they cost, and says what to change against each: in the
program, at the task that is in its way, or a rule of the audit that the machine does not keep.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.cpu_quota import FAIR
from rtgauge.explain.analysis.kernel_lock import MEMORY_LOCK
from rtgauge.explain.analysis.parts import OR, Culprit, Kind
from rtgauge.system.rules import Rule, read_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rtgauge.explain.analysis.parts import Explanation
    from rtgauge.record.facts import Facts

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
    if culprit.kind in {Kind.IRQ, Kind.NMI}:
        return culprit
    name = OR.join(one.partition("/")[0] or one for one in culprit.name.split(OR))
    return culprit if name == culprit.name else replace(culprit, name=name, pid=None)


def rules_of(culprit: Culprit) -> tuple[str, ...]:
    """The ids of the audit's rules that concern a culprit."""
    return MENDS.get(culprit.kind, ())


KERNEL_THREADS = frozenset(
    {"irq", "ksoftirqd", "ktimers", "kworker", "migration", "rcub", "rcuc", "rcu_preempt"}
)
"""Threads of the kernel, without what follows the slash: their priorities are the kernel's own."""


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
OWN_TIMER = "no setting removes it: this interrupt is the timer that wakes the thread"
TIMERS = frozenset({"local timer", "arch_timer"})
"""The interrupts of a CPU's own timer on x86 and on arm64, as the kernel calls them."""
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
    if culprit.name in TIMERS and _wakes(ranked):
        return OWN_TIMER
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


def _wakes(ranked: RankedCulprit) -> bool:
    """Whether the thread was woken within the culprit's longest time."""
    spans = [
        span for part in ranked.worst.parts if general(part.culprit) == ranked.culprit for span in part.spans
    ]
    wakers = [piece.woken_by for piece in ranked.worst.path.pieces if piece.woken_by is not None]
    return any(
        cpu == waker.cpu and start <= waker.time_ns <= end for start, end, cpu in spans for waker in wakers
    )


def mend_of(ranked: RankedCulprit, facts: Facts) -> Mend | None:
    """The mend for a culprit on the machine with these facts; None where no rule of the audit concerns it, or
    the machine keeps all that do.
    """
    of_program = _of_program(ranked)
    if of_program is not None:
        return Mend(None, of_program)
    known = [rule for name in ranked.rules if (rule := _rules().get(name)) is not None]
    summary = facts.audit
    if summary is not None:
        differs = {*summary.serious, *summary.moderate, *summary.minor}
        known = [rule for rule in known if rule.title in differs]
    if not known:
        return None
    number = ranked.culprit.number
    what = known[0].mend if number is None else known[0].mend.replace("/proc/irq/N/", f"/proc/irq/{number}/")
    return Mend(known[0].id, what)
