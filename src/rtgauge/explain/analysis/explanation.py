# SPDX-License-Identifier: MIT
"""Defines culprits and their parts of an explained latency, and puts both into words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from rtgauge.explain.analysis.thread_path import ThreadPath
from rtgauge.explain.analysis.wait_chain import WaitLink, chain_words
from rtgauge.explain.trace.missed_switches import MissedSwitch
from rtgauge.explain.trace.moment import EventTable, Moment
from rtgauge.units import name_cpus, plural

OR = " or "
"""Joins the names of two tasks, either of which may have run."""


SELF, CARD, DEVICE, WIRE_OR_DEVICE = "self", "card", "device", "wire or device"
NOT_SELF = "card, wire or device"
SIDES = (SELF, CARD, DEVICE, WIRE_OR_DEVICE, NOT_SELF)
"""Where a part of a path through a network was spent. `self` is this machine without its network card. The
last two say what cannot be told apart.
"""
COPY_ON_WRITE = "copy on write"
"""The name of page faults in which the kernel copies a page."""


class Kind(StrEnum):
    """The kind of cause of a part of a latency."""

    OWN_TIMER = "timer set after the release"
    TIMER_LATE = "timer late"
    INTERRUPTS_OFF = "interrupts off"
    NO_SOFTWARE = "no software ran"
    STEAL = "steal"
    IDLE_EXIT = "idle exit"
    IRQ = "irq"
    INTERRUPT = "interrupt"
    SOFTIRQ = "softirq"
    NMI = "NMI"
    TASK = "task"
    PREEMPTION_OFF = "preemption off"
    THROTTLED = "throttling"
    QUOTA = "CPU quota"
    WAKER = "waker"
    WAKEUP = "wake-up"
    REMOTE_WAKEUP = "wake-up on another CPU"
    SWITCH = "switch"
    PAGE_FAULT = "page fault"
    FAULT_OR_OWN = "page fault or own work"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    KERNEL_LOCK = "kernel lock"
    LOCK_SPIN = "lock spin"
    LOCK_OWNER = "lock owner"
    OWNER_ASLEEP = "lock owner asleep"
    WAKER_ASLEEP = "waker asleep"
    OWN = "own work"
    SEND_QUEUE = "send queue"
    DRIVER = "network driver"
    FAR_END = "wire and device"
    CARD_WAITED = "interrupt throttling"
    POLL = "packet poll"
    POLL_KEPT = "packet poll kept waiting"
    PROTOCOL = "network protocol"
    EITHER = "one or the other"
    UNATTRIBUTED = "unattributed"


UNTIMED = "without a time-out"
"""The mechanism of a wait for a futex without a time-out. Python waits for its interpreter lock with one."""


@dataclass(frozen=True)
class Culprit:
    """A cause with its kind and name, equal in every latency that it lengthens.

    `number`: the IRQ's. `priority`: the task's, in the kernel's numbers. `mechanism`: the throttling
    mechanism, if it is known, RPS, the event that shows that a timer was programmed late, or UNTIMED.
    `until`: the task that ended a sleep, or held the kernel's lock; for packets, how they waited, or what
    should have polled them; for the softirq that receives packets, their interface. `call`: the system call
    in which a lock's owner, or the task that ended the sleep, slept. `owner`: the lock's owner that a task
    delayed; empty if the task delayed the thread itself. `user`: the task that used up the budget of
    real-time tasks. `side`: for a path through a network, one of SIDES; otherwise empty.
    """

    kind: Kind
    name: str = ""
    number: int | None = None
    mechanism: str = ""
    until: str = ""
    call: str = ""
    owner: str = ""
    user: str = ""
    side: str = ""
    priority: int | None = field(default=None, compare=False)
    pid: int | None = field(default=None, compare=False)


@dataclass
class Part:
    """The time that one culprit took of one latency.

    `spans`: (start, end, CPU) of each piece. `where`: the functions that the trace names.
    """

    culprit: Culprit
    ns: int = 0
    spans: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    where: set[str] = field(default_factory=set[str])
    cpus: set[int] = field(default_factory=set[int])
    """The CPUs on which nothing ran, for `no software ran`."""
    uncertain_ns: int = 0
    """By how much the time may be wrong; the difference is the thread's own work."""
    among_faults_ns: int = 0
    """How much of the thread's own work was between page faults."""
    since_interrupt_ns: int | None = None
    """If an interrupt of the network card ended the part: the time since its previous one."""

    @property
    def longest_ns(self) -> int:
        """The part's longest piece; 0 if there is none."""
        return max((end - start for start, end, _ in self.spans), default=0)

    @property
    def begin_ns(self) -> int:
        """The beginning of the part's first piece; 0 if there is none."""
        return min((start for start, _, _ in self.spans), default=0)


@dataclass(frozen=True)
class RunTime:
    """A stretch in which one task had a CPU, and how much of it the kernel did not count for the task
    (`lost_ns`).
    """

    cpu: int
    start_ns: int
    end_ns: int
    lost_ns: int


LEAST_CAUSE_NS = 100_000
"""A shorter stretch in the 100 ms before a trigger is nothing unusual."""


def _of_itself(culprit: Culprit) -> bool:
    """Return whether the thread ran, or slept until a time, a device or for ever."""
    is_sleep = culprit.kind is Kind.BLOCKED and not culprit.until
    return is_sleep or culprit.kind in {Kind.OWN, Kind.UNATTRIBUTED, Kind.EITHER}


@dataclass(frozen=True)
class Explanation:
    """One latency and its parts in the order of time. The parts add up to `latency_ns`.

    `doubts`: why the latency is only partly explained; empty if it is fully explained.
    """

    moment: Moment
    path: ThreadPath
    parts: list[Part]
    doubts: list[str]
    owners: tuple[str, ...] = ()
    """The names of the threads that a sleep waited for; for a lock, its chain of owners. The last name is the
    owner of the lock that the thread waited for, and each earlier name is the owner of the lock that the next
    one waited for.
    """
    lent: str = ""
    """The priority that the kernel lent the lock's owner during the sleep."""
    missed: tuple[MissedSwitch, ...] = ()
    """The moment's switches that the kernel did not trace."""
    lock_inherits: bool = False
    """Whether the lock that the thread slept for has priority inheritance."""
    run_times: tuple[RunTime, ...] = ()
    """The stretches of the moment for which the kernel counted the tasks' times."""
    chain: tuple[WaitLink, ...] = ()
    """The threads that the longest sleep waited for, one after another; the last one is the origin."""

    @property
    def latency_ns(self) -> int:
        """The explained latency (ns)."""
        return self.moment.latency_ns

    def without_events(self) -> Explanation:
        """Return this explanation without the events of its moment."""
        return (
            self
            if not self.moment.table.events
            else replace(self, moment=replace(self.moment, table=EventTable([], ())))
        )

    @property
    def main(self) -> Part:
        """The part that took the most time."""
        return max(self.parts, key=lambda part: part.ns, default=Part(Culprit(Kind.UNATTRIBUTED)))

    @property
    def trigger_cause(self) -> Part | None:
        """The part before a trigger with the longest stretch in which the thread neither ran nor slept of
        itself; None if no stretch was as long as LEAST_CAUSE_NS.
        """
        causes = [
            part for part in self.parts if part.longest_ns >= LEAST_CAUSE_NS and not _of_itself(part.culprit)
        ]
        return max(causes, key=lambda part: part.longest_ns, default=None)

    @property
    def trigger_words(self) -> str:
        """The cause before a trigger in words."""
        cause = self.trigger_cause
        return "nothing unusual" if cause is None else culprit_name(cause.culprit)

    @property
    def unattributed_ns(self) -> int:
        """The time (ns) that no part explains, or that may belong to either of two tasks."""
        return sum(part.ns for part in self.parts if part.culprit.kind in {Kind.UNATTRIBUTED, Kind.EITHER})


MOST_IN_SENTENCE = 4
SMALL_SHARE = 0.02
"""Parts with a smaller share of the latency appear in the sum but not in the sentence."""


def us(ns: int) -> str:
    """Format a time in us, exact to the ns, so that printed parts add up: 2392723 -> "2,392.723"."""
    return f"{ns / 1_000:,.3f}"


def priority_words(priority: int | None) -> str:
    """Name a priority as users set it: "real-time priority 90", "nice 5", "deadline"; empty if unknown."""
    if priority is None:
        return ""
    if priority < 0:
        return "deadline"
    return f"real-time priority {99 - priority}" if priority < 100 else f"nice {priority - 120}"


def culprit_name(culprit: Culprit) -> str:
    """Name a culprit briefly, for a list: "irq 31 (virtio-net)", "task hog"."""
    name = culprit.name
    match culprit.kind:
        case Kind.IRQ:
            return f"irq {culprit.number} ({name})" if name else f"irq {culprit.number}"
        case Kind.INTERRUPT:
            return f"{name} interrupt"
        case Kind.SOFTIRQ:
            steered = f", steered by {culprit.mechanism}" if culprit.mechanism else ""
            return f"softirq {name}{f' (packets of {culprit.until}{steered})' if culprit.until else ''}"
        case Kind.TASK:
            return f"task {name}"
        case Kind.IDLE_EXIT:
            return f"exit of idle {name}" if name else "idle exit"
        case Kind.TIMER_LATE:
            return f"timer {'programmed ' if culprit.mechanism else ''}late in {name}"
        case Kind.INTERRUPTS_OFF | Kind.PREEMPTION_OFF:
            return f"{culprit.kind} in {name}"
        case Kind.THROTTLED:
            used = f", budget used by {culprit.user}" if culprit.user else ""
            return (culprit.mechanism or "real-time throttling, or a server for lower-priority tasks") + used
        case Kind.QUOTA:
            return f"CPU quota of {name}"
        case Kind.WAKER:
            return f"waker {name}"
        case Kind.WAKER_ASLEEP:
            return f"waker {name} asleep{f' in {culprit.call}' if culprit.call else ''}"
        case Kind.OWN:
            return f"thread {name} itself" if name else "the measured thread itself"
        case Kind.LOCK_OWNER:
            return f"{name} with the lock"
        case Kind.LOCK_SPIN:
            return f"spin for a lock{f' of {name}' if name else ''}"
        case Kind.OWNER_ASLEEP:
            return f"{name} asleep{f' in {culprit.call}' if culprit.call else ''} with the lock"
        case Kind.STOPPED:
            return f"stopped by {name}"
        case Kind.BLOCKED:
            place = f" in {name}" if name else ""
            return f"blocked{place}{f' until {culprit.until} woke it' if culprit.until else ''}"
        case Kind.KERNEL_LOCK:
            return f"kernel lock {name}{f' of {culprit.until}' if culprit.until else ''}"
        case Kind.STEAL:
            return "steal (hypervisor)"
        case Kind.SWITCH:
            return "context switch"
        case Kind.SEND_QUEUE | Kind.POLL:
            how = f" {culprit.until}" if culprit.until else ""
            return f"{culprit.kind} of {name}{how}{f' ({culprit.mechanism})' if culprit.mechanism else ''}"
        case Kind.DRIVER | Kind.PROTOCOL | Kind.FAR_END | Kind.CARD_WAITED:
            return f"{culprit.kind} of {name}"
        case Kind.POLL_KEPT:
            steered = f", steered by {culprit.mechanism}" if culprit.mechanism else ""
            return f"{name} before {culprit.until}{steered}"
        case Kind.EITHER:
            return f"{name} (switch not traced)"
        case Kind.NMI | Kind.PAGE_FAULT | Kind.FAULT_OR_OWN:
            return f"{culprit.kind} ({name})" if name else str(culprit.kind)
        case _:
            return str(culprit.kind)


def _task_words(culprit: Culprit) -> str:
    about = ", ".join(
        word
        for word in (priority_words(culprit.priority), "" if culprit.pid is None else f"pid {culprit.pid}")
        if word
    )
    return f"{culprit.name} ({about})" if about else culprit.name


def _on(part: Part) -> str:
    cpus = sorted(part.cpus)
    return f" on {name_cpus(cpus)}" if cpus else ""


def part_words(part: Part) -> str:
    """Return a clause that says what took the part's time, without the time."""
    culprit, task = part.culprit, _task_words(part.culprit)
    where = f" in {', '.join(sorted(part.where))}" if part.where else ""
    match culprit.kind:
        case Kind.OWN_TIMER:
            return "the program had set its timer for later than the release"
        case Kind.TIMER_LATE if culprit.mechanism:
            return f"the kernel programmed the thread's timer late, after its release, while {task} ran"
        case Kind.TIMER_LATE:
            return (
                f"the thread's timer interrupt was delayed while {task} ran, because interrupts were off or "
                f"the CPU stood still{where}"
            )
        case Kind.INTERRUPTS_OFF:
            return f"interrupts were off{where} while {task} ran"
        case Kind.NO_SOFTWARE:
            return (
                f"no software ran{_on(part)}: the kernel recorded neither events nor interrupts, although "
                "timers were due; the firmware, the bus or the hypervisor stopped the CPU"
            )
        case Kind.IDLE_EXIT:
            return f"the CPU left idle {culprit.name}" if culprit.name else "the CPU left its idle loop"
        case Kind.IRQ | Kind.INTERRUPT | Kind.NMI:
            return f"handler of {culprit_name(culprit)}"
        case Kind.TASK:
            return f"task {task} ran{f' before {culprit.owner} with the lock' if culprit.owner else ''}"
        case Kind.PREEMPTION_OFF:
            return f"{task} could not be preempted{where}"
        case Kind.THROTTLED:
            who = f"{task} ran" if culprit.name else "the CPU was idle"
            return (
                f"{who} while the thread was ready: "
                f"{culprit.mechanism or 'real-time throttling, or a server for lower-priority tasks'}"
                f"{f'; before that, {culprit.user} had used the most CPU time' if culprit.user else ''}"
            )
        case Kind.QUOTA:
            return f"the CPU quota of its control group {culprit.name} was used up"
        case Kind.STEAL:
            return f"the hypervisor did not run the CPU: the guest's kernel counted steal time{_on(part)}"
        case Kind.FAULT_OR_OWN:
            return (
                "the thread handled a page fault and ran on: the kernel does not trace the end of the fault"
            )
        case Kind.LOCK_OWNER:
            return f"{task} ran with the lock"
        case Kind.LOCK_SPIN:
            owner = (
                f"{task} held the lock and ran on another CPU"
                if culprit.name
                else "its owner ran on another CPU"
            )
            return (
                f"the thread spun in the kernel, waiting for a lock with priority inheritance, while {owner}"
            )
        case Kind.OWNER_ASLEEP:
            return f"{task} slept{f' in {culprit.call}' if culprit.call else ''} with the lock"
        case Kind.WAKER:
            return f"its waker {task} ran"
        case Kind.WAKER_ASLEEP:
            return f"its waker {task} slept{f' in {culprit.call}' if culprit.call else ''}"
        case Kind.WAKEUP:
            return "the wake-up itself"
        case Kind.PAGE_FAULT:
            return f"its own {culprit_name(culprit)}"
        case Kind.BLOCKED:
            return f"it was {culprit_name(culprit)}"
        case Kind.STOPPED:
            return (
                "it was "
                f"{culprit_name(culprit)}{f', until {culprit.until} continued it' if culprit.until else ''}"
            )
        case Kind.KERNEL_LOCK:
            owner = f", which {culprit.until} held" if culprit.until else ""
            return f"it waited for the kernel lock {culprit.name}{owner}"
        case Kind.SEND_QUEUE:
            return f"its packet waited in the send queue of {culprit.name} {culprit.until}".rstrip()
        case Kind.DRIVER:
            return f"the driver of {culprit.name} took the packet"
        case Kind.FAR_END if culprit.side == DEVICE:
            return f"the device behind {culprit.name} had the packet"
        case Kind.FAR_END:
            card = ", in the card" if culprit.side == NOT_SELF else ""
            return f"the packet and its answer were on the wire of {culprit.name}{card} or in the device"
        case Kind.CARD_WAITED:
            return (
                f"the card of {culprit.name} interrupted when its coalescing time was over; the answer came "
                "to the card at an unknown time before that"
            )
        case Kind.POLL:
            steered = " on the CPU to which RPS steers it" if culprit.mechanism else ""
            return f"the answer on {culprit.name} waited to be polled{steered} {culprit.until}".rstrip()
        case Kind.POLL_KEPT:
            steered = ", to which RPS steers the answer," if culprit.mechanism else ""
            return f"task {task} ran before {culprit.until}{steered} could poll the answer"
        case Kind.PROTOCOL:
            return "the protocol handled the answer"
        case Kind.EITHER:
            return f"{culprit.name} ran: the kernel did not trace the switch between these tasks"
        case Kind.OWN:
            return (
                f"{culprit.name} itself ran"
                if culprit.name
                else ("the thread itself ran until it read the clock")
            )
        case _:
            return culprit_name(culprit)


def sentence(explanation: Explanation) -> str:
    """Return a sentence with the latency, its CPU and its largest parts, the largest first."""
    total = explanation.latency_ns
    ranked = sorted(explanation.parts, key=lambda part: -part.ns)
    shown = [part for part in ranked if part.ns >= SMALL_SHARE * total][:MOST_IN_SENTENCE] or ranked[:1]
    words = "; ".join(f"{us(part.ns)} us {part_words(part)}" for part in shown)
    rest = len(ranked) - len(shown)
    smaller = (
        f"; {us(sum(part.ns for part in ranked) - sum(part.ns for part in shown))} us in "
        f"{plural(rest, 'smaller part')}"
        if rest > 0
        else ""
    )
    return f"{us(total)} us {_where(explanation)}: {words}{smaller}{_remarks(explanation)}"


def headline(explanation: Explanation) -> str:
    """Return "2,444.631 us on CPU 1; only partly explained: ...": the sentence without the parts."""
    return f"{us(explanation.latency_ns)} us {_where(explanation)}{_remarks(explanation)}"


def _remarks(explanation: Explanation) -> str:
    moved = "".join(f"; it moved from CPU {old} to CPU {new}" for _, old, new in explanation.path.moves[:2])
    partly = f"; only partly explained: {', '.join(explanation.doubts)}" if explanation.doubts else ""
    chain = chain_words(explanation.chain)
    return f"{moved}{f'; {chain}' if chain else ''}{partly}"


def _where(explanation: Explanation) -> str:
    """Return the place of a latency, "on CPU 1", or for a sleep "blocked on a lock of logger, lent real-time
    priority 80".
    """
    if not explanation.moment.is_wait:
        *others, first = explanation.owners or ("",)
        chain = "".join(f", which waited for {other}" for other in reversed(others))
        lock = f", blocked on a lock of {first}{chain}" if first else ""
        return f"on CPU {explanation.moment.cpu}{lock}"
    *others, first = explanation.owners or ("a task that is not in the trace",)
    thread = explanation.path.name
    chain = "".join(f", which waited for {other}" for other in reversed(others))
    if not explanation.moment.is_blocked:
        return (
            f"{f'that {thread} waited' if thread else 'of waiting'} for {first}{chain.replace(' one of', '')}"
        )
    lent = f", lent {explanation.lent} meanwhile" if explanation.lent else ""
    return f"{f'that {thread} was ' if thread else ''}blocked on a lock of {first}{chain}{lent}"


def sum_words(explanation: Explanation) -> str:
    """Return the parts in order of time: "24.787 timer late in hog + 2,419.844 task hog"."""
    return " + ".join(f"{us(part.ns)} {culprit_name(part.culprit)}" for part in explanation.parts)
