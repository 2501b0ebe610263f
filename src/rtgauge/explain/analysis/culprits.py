# SPDX-License-Identifier: MIT
"""Ranks the culprits that took the time of a record's explained latencies, and says what to change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from rtgauge.explain.analysis.attribution import DEBUGGER, DOUBT_SHARE, FROM, LEAST_DOUBT_NS, explain
from rtgauge.explain.analysis.calls import TIMER_CALLS
from rtgauge.explain.analysis.explanation import (
    CARD,
    COPY_ON_WRITE,
    SELF,
    UNTIMED,
    Culprit,
    Explanation,
    Kind,
    Part,
    culprit_name,
)
from rtgauge.explain.analysis.host_time import host_doubts
from rtgauge.explain.analysis.machine_stall import with_joint_stalls
from rtgauge.explain.analysis.mechanisms import cause_words
from rtgauge.explain.analysis.ranking import RankedCulprit, general, ranked_culprits
from rtgauge.explain.analysis.waits import FAIR, MEMORY_LOCK
from rtgauge.explain.trace.formats import Symbols, TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge.extension import imported
from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.facts import Facts
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Step
from rtgauge.record.moments import MOMENTS, MomentFile
from rtgauge.record.reader import Record
from rtgauge.record.watched_loop import loops_of
from rtgauge.system.deployment.extension_auditor import audit_rules
from rtgauge.system.scheduling import mechanisms
from rtgauge.verdict.loops import chosen_loops
from rtgauge.verdict.next_step import Blame
from rtgauge.verdict.requirement import Requirement


@dataclass(frozen=True)
class ExplainedStep:
    """A step with its explained latencies, in the order of measurement. Only the worst keeps its events.

    There are no explanations if no latency was frozen. `blocked`, for a user's program, holds sleeps that
    another thread ended: sleeps for locks of owners with a lower priority, and the longest other sleeps.
    `triggered` holds the times before the triggers of a recorder.
    """

    step: Step
    explanations: Sequence[Explanation]
    symbols: Symbols
    blocked: Sequence[Explanation] = ()
    triggered: Sequence[Explanation] = ()

    @property
    def culprits(self) -> list[RankedCulprit]:
        """The culprits, ranked by the time that they took."""
        return ranked_culprits(self.all)

    @property
    def all(self) -> list[Explanation]:
        """The explained activations, then the sleeps."""
        return [*self.activations, *self.blocked]

    @property
    def activations(self) -> list[Explanation]:
        """Each explained activation once."""
        return self.once(self.explanations)

    def once(self, explanations: Sequence[Explanation]) -> list[Explanation]:
        """Leave out the latencies whose responses, which contain them, are among the explanations."""
        responses = {
            (known.moment.thread, known.moment.release_ns)
            for known in explanations
            if self.metric(known) == "response"
        }
        return [
            known
            for known in explanations
            if (known.moment.thread, known.moment.release_ns) not in responses
            or self.metric(known) == "response"
        ]

    def metric(self, explanation: Explanation) -> str:
        """Return which quantity was explained, such as "response"."""
        metrics = {summary.series: summary.metric for summary in self.step.series}
        return metrics.get(explanation.moment.series, "latency")

    @property
    def worst(self) -> Explanation | None:
        """The explanation of the largest latency."""
        return max(self.explanations, key=lambda explanation: explanation.latency_ns, default=None)


def explained_steps(record: Record, steps: Sequence[Step] | None = None) -> list[ExplainedStep]:
    """Return the steps with explanations. Raises RecordError for a damaged record."""
    explained: list[ExplainedStep] = []
    for step in record.steps if steps is None else steps:
        file = record.moments(step)
        if file is not None:
            explanations, symbols = _explanations(file, probe_of(step).divides)
            facts, watched = record.system(step.key.targets.get("self", "local")), probe_of(step).watches
            host = host_may_have_run(step, facts)
            named = [with_names(known, facts, watched=watched, host=host) for known in explanations]
            triggered = [known for known in named if known.moment.is_triggered]
            latencies = [
                known for known in named if not known.moment.is_wait and not known.moment.is_triggered
            ]
            blocked = [known for known in named if known.moment.is_wait and known.latency_ns > 0]
            explained.append(ExplainedStep(step, latencies, symbols, blocked, triggered))
    return explained


def host_may_have_run(step: Step, facts: Facts) -> bool:
    """Return whether a virtual machine's host may have taken time during the step.

    It did not if the guest's kernel has counted steal before but none in this step, or if the guest's clock
    counts the instructions of its only CPU: the clock then stands still while the host runs.
    """
    counts = bool(facts.steal_ns_since_boot) and not any(mark.kind is MarkKind.STEAL for mark in step.marks)
    stands_still = bool(facts.machine.instruction_ns) and facts.cpu.online_count == 1
    return facts.machine.virtual is True and not counts and not stands_still


def with_names(
    explanation: Explanation, facts: Facts, *, watched: bool = False, host: bool = False
) -> Explanation:
    """Add what the trace lacks: the watched program's thread, the throttling mechanism if this machine has
    only one that can give the CPU to a lower task, whether the network card held its interrupt back, and a
    doubt if a virtual machine's `host` may have run.
    """
    facts_known = {"scheduling", "kernel"} <= facts.model_fields_set
    possible = [limit.name for limit in mechanisms(facts)] if facts_known else []

    def named(culprit: Culprit) -> Culprit:
        if culprit.kind is Kind.OWN and watched:
            return replace(culprit, name=explanation.path.name)
        if culprit.kind is Kind.THROTTLED and not culprit.mechanism and len(possible) == 1:
            return replace(culprit, mechanism=possible[0])
        return culprit

    def by_card(part: Part) -> list[Part]:
        if part.culprit.kind is not Kind.FAR_END or not interrupted_at_once(part, facts):
            return [part]
        held_ns = min(part.ns, part.since_interrupt_ns or 0)
        ((start, end, cpu),) = part.spans
        held = replace(part.culprit, kind=Kind.CARD_WAITED, side=CARD)
        before = replace(part, ns=part.ns - held_ns, spans=[(start, end - held_ns, cpu)])
        return [
            *([before] if before.ns else []),
            replace(part, culprit=held, ns=held_ns, spans=[(end - held_ns, end, cpu)]),
        ]

    tolerance_ns = round(max(LEAST_DOUBT_NS, DOUBT_SHARE * explanation.latency_ns))
    exclude = facts.kernel.steal_excluded is True
    return replace(
        explanation,
        parts=[
            piece
            for part in explanation.parts
            for piece in by_card(replace(part, culprit=named(part.culprit)))
        ],
        doubts=[
            *explanation.doubts,
            *(host_doubts(explanation, tolerance_ns, counts_exclude_steal=exclude) if host else []),
        ],
    )


INTERRUPTS_APART, ENTRY_NS = 0.1, 20_000
"""By which share of the coalescing time, and by how much more, two interrupts may be further apart."""


def interrupted_at_once(part: Part, facts: Facts) -> bool:
    """Return whether the interrupt that ended a part came when the network card's coalescing time since its
    previous interrupt was over. The card then had something to report before, which coalescing kept back.
    """
    rx_us = facts.network.coalescing.rx_us
    if part.since_interrupt_ns is None or not isinstance(rx_us, int) or rx_us <= 0:
        return False
    late_ns = part.since_interrupt_ns - rx_us * 1_000
    return abs(late_ns) <= INTERRUPTS_APART * rx_us * 1_000 + ENTRY_NS


Divided = Callable[[Explanation, Symbols], Explanation]
"""Divides the parts of an explanation further. The sum must stay."""


@lru_cache(maxsize=16)
def _explanations(file: MomentFile, divides: str) -> tuple[tuple[Explanation, ...], Symbols]:
    """Explain each moment of a file. `divides`: the probe's (probe/descriptor.py). The result is cached,
    because a step is shown several times.
    """
    divided = cast("Divided", imported(divides)) if divides else None
    formats = TraceFormats.read(file.formats)
    explanations: list[Explanation] = []
    for document in file.moments():
        explanation = explain(read_moment(formats, document), formats.symbols)
        explanations.append(explanation if divided is None else divided(explanation, formats.symbols))
        worst = max(
            explanations,
            key=lambda known: (not known.moment.is_wait and not known.moment.is_triggered, known.latency_ns),
        )
        # A moment's events take megabytes, and the figure needs only the events of the worst moment.
        explanations = [known if known is worst else known.without_events() for known in explanations]
    return tuple(with_joint_stalls(explanations)), formats.symbols


KERNEL_THREADS = frozenset(
    {"irq", "ksoftirqd", "ktimers", "kworker", "migration", "rcub", "rcuc", "rcu_preempt"}
)
"""Names of kernel threads up to the slash. The kernel itself sets their priorities."""


@dataclass(frozen=True)
class Remedy:
    """A change to make. `rule`: the audit rule with reason and commands; None if the program must change."""

    rule: str | None
    what: str

    @property
    def words(self) -> str:
        """The change and the rule's name."""
        return self.what if self.rule is None else f"{self.what} (rtgauge audit: {self.rule})"


INHERIT = "give the lock of {} priority inheritance (PTHREAD_PRIO_INHERIT), or avoid the lock"
LOWEST = 99
"""The number in the kernel of real-time priority 0, which no task has."""
LOWER = "give {} a lower real-time priority than the thread that it delays, or move it to another CPU"
FAULTS = (
    "lock the program's memory (mlockall), write to all of it before the loop (prefault), and do not "
    "allocate memory in the loop"
)
COPIES = (
    "write to all memory before the loop, and do not fork during the loop: use posix_spawn, which does not "
    "copy memory, or hide the memory of the loop from the child (madvise with MADV_DONTFORK)"
)
MAPPING = (
    "do not map, protect or free memory (mmap, mprotect, munmap) in any thread of the program during the "
    "loop; do it before the loop or in another process"
)
OWN_TIMER = "no setting removes this interrupt, because it is the timer that wakes the thread"
TIMERS = frozenset({"local timer", "arch_timer"})
"""The kernel's names for the interrupts of a CPU's own timer on x86 and arm64."""
OF_PROGRAM = {
    Kind.OWN_TIMER: "set each timer for the next point of the grid (TIMER_ABSTIME), even after a late cycle",
    Kind.PAGE_FAULT: FAULTS,
    Kind.FAULT_OR_OWN: FAULTS,
    Kind.QUOTA: (
        "raise the CPU quota of the control group (cpu.max, or cpu.cfs_quota_us in cgroup version 1), "
        "allow it a burst (cpu.max.burst or cpu.cfs_burst_us), or move the thread to another group"
    ),
}
JAVA_COLLECTS = "VM Thread"
"""The thread of Java that ends the wait of the others when it has collected memory."""


PYTHON_SWITCHES_NS = 10_000_000
"""A thread that runs Python code gives up the interpreter lock 5 ms after another asks for it
(sys.getswitchinterval). It keeps the lock for longer in a call of C code that does not release it.
"""
PYTHON_SWITCHES = (
    "let the program's threads take turns with Python's interpreter lock more often than every 5 ms "
    "(sys.setswitchinterval), or compute in another process (multiprocessing)"
)
PYTHON_HOLDS = (
    "find the long call during which another thread of the program keeps Python's interpreter lock, and "
    "split it, or make it in another process (multiprocessing)"
)


def _for_stopped(culprit: Culprit) -> str:
    """Return the change against a task that stopped the thread."""
    signal, _, sender = culprit.name.partition(FROM)
    if sender:
        return f"find out why {sender} sends {signal} to the program"
    if culprit.name == DEBUGGER:
        return f"detach the debugger{f' {culprit.until}' if culprit.until else ''}"
    if culprit.until:
        return f"find out why {culprit.until} stops the thread"
    return "find out what stops the thread, such as a shell, a debugger or a checkpoint"


def _for_blocked(ranked: RankedCulprit) -> str | None:
    """Return the change against a sleep of the thread in the middle of its cycle."""
    culprit = ranked.culprit
    if culprit.name in TIMER_CALLS:
        return _for_stopped(culprit)
    if culprit.name == "futex" and culprit.until == JAVA_COLLECTS:
        return (
            "allocate less memory in the program, or let Java collect it in shorter pauses (-XX:+UseZGC or "
            "-XX:+UseShenandoahGC)"
        )
    may_interpret = culprit.until.startswith("python") and culprit.mechanism != UNTIMED
    if culprit.name == "futex" and may_interpret:
        return PYTHON_SWITCHES if ranked.worst_ns < PYTHON_SWITCHES_NS else PYTHON_HOLDS
    if culprit.name == "futex":
        return f"shorten what {culprit.until} does before it wakes the thread" if culprit.until else None
    if culprit.name:
        return f"call {culprit.name} in another thread"
    return f"find out why {culprit.until} let the thread sleep until then" if culprit.until else None


def _of_program(ranked: RankedCulprit, threads: Collection[str]) -> str | None:
    """Return the change to make in the program, if no setting of the machine helps. `threads`: the watched
    program's threads, whose numbers are others when it runs again.
    """
    culprit = ranked.culprit
    if culprit.kind is Kind.KERNEL_LOCK:
        return MAPPING if culprit.name == MEMORY_LOCK else None
    if culprit.name in TIMERS and _wakes(ranked):
        return OWN_TIMER
    if culprit.kind is Kind.BLOCKED:
        return _for_blocked(ranked)
    if culprit.kind is Kind.STOPPED:
        return _for_stopped(culprit)
    if culprit.kind is Kind.SEND_QUEUE and culprit.until:
        return (
            f"send the packets of the loop with a higher SO_PRIORITY, through a queueing discipline of "
            f"{culprit.name} that respects it (tc qdisc replace dev {culprit.name} root pfifo_fast)"
        )
    if culprit.kind is Kind.SOFTIRQ and culprit.until and not culprit.mechanism:
        return (
            f"let another CPU handle the interrupts of {culprit.until} (/proc/irq/N/smp_affinity_list), or "
            "give the loop another CPU (--cpu)"
        )
    if culprit.kind is Kind.IRQ and culprit.side == SELF:
        return (
            f"write other CPUs to /proc/irq/{culprit.number}/smp_affinity_list, or give the loop another CPU "
            "(--cpu)"
        )
    if culprit.kind is Kind.POLL_KEPT and not culprit.mechanism and culprit.until.startswith("napi/"):
        return (
            f"give the thread {culprit.until} a higher real-time priority than {culprit.name} (chrt -f -p), "
            "or another CPU (taskset -p)"
        )
    if culprit.kind in {Kind.PAGE_FAULT, Kind.FAULT_OR_OWN} and culprit.name == COPY_ON_WRITE:
        return COPIES
    sleeps = f"calls {culprit.call}" if culprit.call else "sleeps"
    if culprit.kind is Kind.OWNER_ASLEEP:
        return f"release the lock before {_other(ranked)} {sleeps}"
    if culprit.kind is Kind.WAKER_ASLEEP:
        return (
            f"let {_other(ranked)} wake the thread, or release the lock that the thread waits for, before it "
            f"{sleeps}"
        )
    if culprit.kind in {Kind.LOCK_OWNER, Kind.LOCK_SPIN}:
        return f"let {_other(ranked)} hold the lock for a shorter time, or avoid the lock"
    if culprit.kind is not Kind.TASK or culprit.priority is None or culprit.name in KERNEL_THREADS:
        return OF_PROGRAM.get(culprit.kind)
    if culprit.owner:
        return _for_owner(ranked)
    if culprit.priority >= FAIR:
        return f"give {_ordinary(ranked)} a real-time priority (chrt -f)"
    waiter = ranked.worst.path.priority
    if culprit.pid is None or culprit.name in threads or waiter is None or not 0 <= waiter < LOWEST - 1:
        return LOWER.format(culprit.name)
    return f"run chrt -f -p {LOWEST - 1 - waiter} {culprit.pid}, or give {culprit.name} another CPU"


def _other(ranked: RankedCulprit) -> str:
    """Return the name of the thread for which the measured one waits. All threads of a Python program may
    have one name.
    """
    name = ranked.culprit.name
    return f"the other thread {name}" if name == ranked.worst.path.name else name or "the owner"


def _for_owner(ranked: RankedCulprit) -> str:
    """Return the change against a task that delayed a lock's owner. If the owner also sleeps with the lock,
    it holds the lock for long only because of that. Inheritance helps only against tasks below the waiting
    thread.
    """
    culprit, worst = ranked.culprit, ranked.worst
    sleeps = [part.culprit for part in worst.parts if part.culprit.kind is Kind.OWNER_ASLEEP]
    call = next((known.call for known in sleeps if known.name == culprit.owner and known.call), None)
    if call is not None:
        return f"release the lock before {culprit.owner} calls {call}"
    waiter, task = worst.path.priority, culprit.priority
    if waiter is not None and task is not None and min(waiter, task) >= FAIR:
        return f"give {_ordinary(ranked)} a real-time priority (chrt -f)"
    if not worst.lock_inherits and (waiter is None or task is None or task > waiter):
        return INHERIT.format(culprit.owner)
    return LOWER.format(culprit.name)


def _ordinary(ranked: RankedCulprit) -> str:
    """Return which thread was kept from running by a task without a real-time priority: the measured thread
    if it has none itself, otherwise the one that should have woken it.
    """
    worst = ranked.worst
    priority = worst.path.priority
    if not worst.moment.is_wait or (priority is not None and priority >= FAIR):
        return "the thread"
    wakers = (part.culprit.name for part in worst.parts if part.culprit.kind is Kind.WAKER)
    return next(wakers, "the thread that wakes it")


def _wakes(ranked: RankedCulprit) -> bool:
    """Return whether the thread was woken during the culprit's time in the worst latency."""
    own = [part for part in ranked.worst.parts if general(part.culprit) == ranked.culprit]
    wakers = [piece.woken_by for piece in ranked.worst.path.pieces if piece.woken_by is not None]
    return any(
        cpu == waker.cpu and start <= waker.time_ns <= end
        for part in own
        for start, end, cpu in part.spans
        for waker in wakers
    )


def remedy_of(ranked: RankedCulprit, facts: Facts, threads: Collection[str] = ()) -> Remedy | None:
    """Return the remedy for a culprit on this machine; None if no rule concerns it, or the machine meets them
    all. `threads`: the names of the watched program's threads.
    """
    of_program = _of_program(ranked, threads)
    if of_program is not None:
        return Remedy(None, of_program)
    known = audit_rules()
    rules = {name: known[name] for name in ranked.rules if name in known}
    summary = facts.audit
    if summary is not None:
        differs = {*summary.serious, *summary.moderate, *summary.minor}
        rules = {name: rule for name, rule in rules.items() if rule.title in differs}
    if not rules:
        return None
    name, rule = next(iter(rules.items()))
    number = ranked.culprit.number
    remedy = rule.remedy if number is None else rule.remedy.replace("/proc/irq/N/", f"/proc/irq/{number}/")
    return Remedy(name, remedy)


def blame_of(record: Record, step: Step, requirement: Requirement, task: str | None = None) -> Blame | None:
    """Return the culprit that took the most time of the explained latencies above the requirement's bound, or
    of all if none is above; None if none was explained. Of a watched program, only the thread `task` counts,
    or, if it is None, the threads that the requirement is about.

    Raises RecordError for a damaged record.
    """
    if MOMENTS not in step.checksums:
        return None
    (each,) = explained_steps(record, [step])
    loops = loops_of(step)
    judged = {
        series
        for loop in chosen_loops(requirement, step, loops)
        if task in {None, loop.task}
        for series in loop.series.values()
    }
    explanations, blocked = (
        [known for known in explained if not loops or known.moment.series in judged]
        for explained in (each.explanations, each.blocked)
    )
    bounds = {bound.metric: bound.bound_ns for bound in requirement.each}
    bounded = [known for known in explanations if each.metric(known) in bounds]
    with_blocked = "response" in bounds or not bounded
    explained = [*(bounded or explanations), *(blocked if with_blocked else [])]
    late = [
        known
        for known in explained
        if known.latency_ns
        > bounds.get("response" if known.moment.is_wait else each.metric(known), requirement.bound_ns)
    ]
    ranked = ranked_culprits(each.once(late or explained))
    if not ranked:
        return None
    first = ranked[0]
    facts = record.system(step.key.targets.get("self", ""))
    remedy = remedy_of(first, facts, {loop.task for loop in loops})
    if remedy is not None and remedy.what == OWN_TIMER:
        remedy = None  # nothing can be changed about it
    return Blame(
        culprit_name(first.culprit),
        first.time_share,
        first.worst_ns,
        first.culprit.kind is Kind.OWN,
        None if remedy is None else remedy.words,
        cause_words(ranked, virtual=facts.machine.virtual is True),
    )
