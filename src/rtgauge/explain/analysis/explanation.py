# SPDX-License-Identifier: MIT
"""Defines culprits and their parts of an explained latency, and puts both into words."""

from __future__ import annotations

from collections.abc import Callable
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


def _if(value: object, words: str) -> str:
    """Insert the value into the words at `{}`. Return an empty string if there is no value."""
    return words.format(value) if value else ""


def _steered(culprit: Culprit) -> str:
    return _if(culprit.mechanism, ", steered by {}")


def _queue_name(culprit: Culprit) -> str:
    return f"{culprit.kind} of {culprit.name}{_if(culprit.until, ' {}')}{_if(culprit.mechanism, ' ({})')}"


_UNKNOWN_THROTTLING = "real-time throttling, or a server for lower-priority tasks"
_NAMES: dict[Kind, Callable[[Culprit], str]] = {
    Kind.IRQ: lambda c: f"irq {c.number}{_if(c.name, ' ({})')}",
    Kind.INTERRUPT: lambda c: f"{c.name} interrupt",
    Kind.SOFTIRQ: lambda c: f"softirq {c.name}{_if(c.until, f' (packets of {{}}{_steered(c)})')}",
    Kind.TASK: lambda c: f"task {c.name}",
    Kind.IDLE_EXIT: lambda c: f"exit of idle {c.name}" if c.name else "idle exit",
    Kind.TIMER_LATE: lambda c: f"timer {_if(c.mechanism, 'programmed ')}late in {c.name}",
    Kind.INTERRUPTS_OFF: lambda c: f"{c.kind} in {c.name}",
    Kind.PREEMPTION_OFF: lambda c: f"{c.kind} in {c.name}",
    Kind.THROTTLED: lambda c: f"{c.mechanism or _UNKNOWN_THROTTLING}{_if(c.user, ', budget used by {}')}",
    Kind.QUOTA: lambda c: f"CPU quota of {c.name}",
    Kind.WAKER: lambda c: f"waker {c.name}",
    Kind.WAKER_ASLEEP: lambda c: f"waker {c.name} asleep{_if(c.call, ' in {}')}",
    Kind.OWN: lambda c: f"thread {c.name} itself" if c.name else "the measured thread itself",
    Kind.LOCK_OWNER: lambda c: f"{c.name} with the lock",
    Kind.LOCK_SPIN: lambda c: f"spin for a lock{_if(c.name, ' of {}')}",
    Kind.OWNER_ASLEEP: lambda c: f"{c.name} asleep{_if(c.call, ' in {}')} with the lock",
    Kind.STOPPED: lambda c: f"stopped by {c.name}",
    Kind.BLOCKED: lambda c: f"blocked{_if(c.name, ' in {}')}{_if(c.until, ' until {} woke it')}",
    Kind.KERNEL_LOCK: lambda c: f"kernel lock {c.name}{_if(c.until, ' of {}')}",
    Kind.STEAL: lambda _: "steal (hypervisor)",
    Kind.SWITCH: lambda _: "context switch",
    Kind.SEND_QUEUE: _queue_name,
    Kind.POLL: _queue_name,
    Kind.DRIVER: lambda c: f"{c.kind} of {c.name}",
    Kind.PROTOCOL: lambda c: f"{c.kind} of {c.name}",
    Kind.FAR_END: lambda c: f"{c.kind} of {c.name}",
    Kind.CARD_WAITED: lambda c: f"{c.kind} of {c.name}",
    Kind.POLL_KEPT: lambda c: f"{c.name} before {c.until}{_steered(c)}",
    Kind.EITHER: lambda c: f"{c.name} (switch not traced)",
    Kind.NMI: lambda c: f"{c.kind}{_if(c.name, ' ({})')}",
    Kind.PAGE_FAULT: lambda c: f"{c.kind}{_if(c.name, ' ({})')}",
    Kind.FAULT_OR_OWN: lambda c: f"{c.kind}{_if(c.name, ' ({})')}",
}
"""How lists name the culprits of a kind. The others have the name of their kind."""


def culprit_name(culprit: Culprit) -> str:
    """Name a culprit briefly, for a list: "irq 31 (virtio-net)", "task hog"."""
    return _NAMES[culprit.kind](culprit) if culprit.kind in _NAMES else str(culprit.kind)


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


_WORDS: dict[Kind, Callable[[Culprit, str], str]] = {
    Kind.OWN_TIMER: lambda _c, _t: "the program had set its timer for later than the release",
    Kind.IDLE_EXIT: lambda c, _: f"the CPU left idle {c.name}" if c.name else "the CPU left its idle loop",
    Kind.IRQ: lambda c, _: f"handler of {culprit_name(c)}",
    Kind.INTERRUPT: lambda c, _: f"handler of {culprit_name(c)}",
    Kind.NMI: lambda c, _: f"handler of {culprit_name(c)}",
    Kind.TASK: lambda c, task: f"task {task} ran{_if(c.owner, ' before {} with the lock')}",
    Kind.THROTTLED: lambda c, task: (
        f"{f'{task} ran' if c.name else 'the CPU was idle'} while the thread was ready: "
        f"{c.mechanism or _UNKNOWN_THROTTLING}"
        f"{_if(c.user, '; before that, {} had used the most CPU time')}"
    ),
    Kind.QUOTA: lambda c, _: f"the CPU quota of its control group {c.name} was used up",
    Kind.FAULT_OR_OWN: lambda _c, _t: (
        "the thread handled a page fault and ran on: the kernel does not trace the end of the fault"
    ),
    Kind.LOCK_OWNER: lambda _, task: f"{task} ran with the lock",
    Kind.LOCK_SPIN: lambda c, task: (
        "the thread spun in the kernel, waiting for a lock with priority inheritance, while "
        f"{f'{task} held the lock and' if c.name else 'its owner'} ran on another CPU"
    ),
    Kind.OWNER_ASLEEP: lambda c, task: f"{task} slept{_if(c.call, ' in {}')} with the lock",
    Kind.WAKER: lambda _, task: f"its waker {task} ran",
    Kind.WAKER_ASLEEP: lambda c, task: f"its waker {task} slept{_if(c.call, ' in {}')}",
    Kind.WAKEUP: lambda _c, _t: "the wake-up itself",
    Kind.PAGE_FAULT: lambda c, _: f"its own {culprit_name(c)}",
    Kind.BLOCKED: lambda c, _: f"it was {culprit_name(c)}",
    Kind.STOPPED: lambda c, _: f"it was {culprit_name(c)}{_if(c.until, ', until {} continued it')}",
    Kind.KERNEL_LOCK: lambda c, _: f"it waited for the kernel lock {c.name}{_if(c.until, ', which {} held')}",
    Kind.SEND_QUEUE: lambda c, _: f"its packet waited in the send queue of {c.name} {c.until}".rstrip(),
    Kind.DRIVER: lambda c, _: f"the driver of {c.name} took the packet",
    Kind.FAR_END: lambda c, _: (
        f"the device behind {c.name} had the packet"
        if c.side == DEVICE
        else f"the packet and its answer were on the wire of {c.name}"
        f"{', in the card' if c.side == NOT_SELF else ''} or in the device"
    ),
    Kind.CARD_WAITED: lambda c, _: (
        f"the card of {c.name} interrupted when its coalescing time was over; the answer came to the card at "
        "an unknown time before that"
    ),
    Kind.POLL: lambda c, _: (
        f"the answer on {c.name} waited to be polled"
        f"{_if(c.mechanism, ' on the CPU to which RPS steers it')} {c.until}".rstrip()
    ),
    Kind.POLL_KEPT: lambda c, task: (
        f"task {task} ran before {c.until}{_if(c.mechanism, ', to which RPS steers the answer,')} could poll "
        "the answer"
    ),
    Kind.PROTOCOL: lambda _c, _t: "the protocol handled the answer",
    Kind.EITHER: lambda c, _: f"{c.name} ran: the kernel did not trace the switch between these tasks",
    Kind.OWN: lambda c, _: (
        f"{c.name} itself ran" if c.name else "the thread itself ran until it read the clock"
    ),
}
"""What took the time of a kind's parts, from the culprit and the words for its task."""


def part_words(part: Part) -> str:
    """Return a clause that says what took the part's time, without the time."""
    culprit, task = part.culprit, _task_words(part.culprit)
    where = f" in {', '.join(sorted(part.where))}" if part.where else ""
    match culprit.kind:
        case Kind.TIMER_LATE if culprit.mechanism:
            return f"the kernel programmed the thread's timer late, after its release, while {task} ran"
        case Kind.TIMER_LATE:
            return (
                f"the thread's timer interrupt was delayed while {task} ran, because interrupts were off or "
                f"the CPU stood still{where}"
            )
        case Kind.INTERRUPTS_OFF:
            return f"interrupts were off{where} while {task} ran"
        case Kind.PREEMPTION_OFF:
            return f"{task} could not be preempted{where}"
        case Kind.NO_SOFTWARE:
            return (
                f"no software ran{_on(part)}: the kernel recorded neither events nor interrupts, although "
                "timers were due; the firmware, the bus or the hypervisor stopped the CPU"
            )
        case Kind.STEAL:
            return f"the hypervisor did not run the CPU: the guest's kernel counted steal time{_on(part)}"
        case _:
            words = _WORDS.get(culprit.kind)
            return culprit_name(culprit) if words is None else words(culprit, task)


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
