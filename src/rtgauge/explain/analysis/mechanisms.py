# SPDX-License-Identifier: MIT
"""Groups the culprits of latencies by mechanism: "timer late in X" and "timer late in Y" are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtgauge.explain.analysis.explanation import DEVICE, WIRE_OR_DEVICE, Kind, culprit_name, priority_words
from rtgauge.explain.analysis.ranking import RankedCulprit
from rtgauge.units import format_share

LEAST_SHARE = 0.05
"""A mechanism with a smaller share of the time is not a cause."""
MOST_NAMED = 3
HANDLERS = {Kind.IRQ, Kind.INTERRUPT, Kind.SOFTIRQ, Kind.NMI}
"""Kinds whose names say little without the kind."""

NAMED = HANDLERS | {Kind.SEND_QUEUE, Kind.POLL, Kind.POLL_KEPT}
"""Kinds whose words leave out what a culprit on a network path is."""

WORDS: dict[Kind, str] = {
    Kind.OWN_TIMER: "the program set its timer too late",
    Kind.TIMER_LATE: "the timer's interrupt came late",
    Kind.INTERRUPTS_OFF: "interrupts were off",
    Kind.NO_SOFTWARE: "no software ran on the CPU",
    Kind.STEAL: "the host took the CPU",
    Kind.IDLE_EXIT: "the CPU left an idle state",
    Kind.REMOTE_WAKEUP: "another CPU had to wake this one",
    Kind.IRQ: "interrupts ran",
    Kind.INTERRUPT: "interrupts ran",
    Kind.SOFTIRQ: "interrupts ran",
    Kind.NMI: "interrupts ran",
    Kind.TASK: "other tasks ran instead",
    Kind.PREEMPTION_OFF: "the kernel could not be preempted",
    Kind.THROTTLED: "it was throttled",
    Kind.QUOTA: "its CPU quota was used up",
    Kind.WAKER: "the thread that wakes it was late",
    Kind.WAKER_ASLEEP: "the thread that wakes it was late",
    Kind.WAKEUP: "waking it took a long time",
    Kind.SWITCH: "the context switch took a long time",
    Kind.PAGE_FAULT: "page faults",
    Kind.FAULT_OR_OWN: "page faults or its own work",
    Kind.BLOCKED: "it was blocked in a system call",
    Kind.STOPPED: "it was stopped",
    Kind.KERNEL_LOCK: "it waited for a lock in the kernel",
    Kind.LOCK_SPIN: "a lock was taken",
    Kind.LOCK_OWNER: "a lock was taken",
    Kind.OWNER_ASLEEP: "a lock was taken",
    Kind.OWN: "its own work",
    Kind.SEND_QUEUE: "its packet waited in the send queue",
    Kind.DRIVER: "the network driver took a long time",
    Kind.FAR_END: "the card, the wire or the device was slow",
    Kind.CARD_WAITED: "the network card held its interrupt back",
    Kind.POLL: "the answer waited to be polled",
    Kind.POLL_KEPT: "other tasks kept the answer from being polled",
    Kind.PROTOCOL: "the network protocol took a long time",
    Kind.EITHER: "another task or its own work",
    Kind.UNATTRIBUTED: "unknown",
}
"""What happened, by the kind of culprit. Kinds with equal words are one mechanism."""
FAR_WORDS = {DEVICE: "the device was slow", WIRE_OR_DEVICE: "the wire or the device was slow"}
"""What happened, by the side of a culprit (explanation.SIDES), if the card is ruled out."""


@dataclass(frozen=True)
class Mechanism:
    """One mechanism with its culprits, in the order of their rank."""

    words: str
    culprits: Sequence[RankedCulprit]

    @property
    def time_share(self) -> float:
        """The share of the time of all explained latencies."""
        return sum(known.time_share for known in self.culprits)

    @property
    def outlier_share(self) -> float:
        """The share of the explained latencies in which it took the most time."""
        return sum(known.outlier_share for known in self.culprits)

    @property
    def worst_ns(self) -> int:
        """The longest time of one of its culprits in one latency."""
        return max(known.worst_ns for known in self.culprits)

    @property
    def names(self) -> str:
        """The names of its costliest culprits: "python, tokio and 3 more"; empty if they have none."""
        culprits = [known.culprit for known in self.culprits if known.culprit.name or known.culprit.number]
        named = list(
            dict.fromkeys(
                culprit_name(culprit) if culprit.kind in HANDLERS else culprit.name for culprit in culprits
            )
        )
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        return ", ".join(named[:MOST_NAMED]) + more

    @property
    def title(self) -> str:
        """The name of its only culprit, or the mechanism with the names of its culprits."""
        if len(self.culprits) == 1:
            return culprit_name(self.culprits[0].culprit)
        return f"{self.words} ({self.names})" if self.names else self.words


def mechanisms(ranked: Sequence[RankedCulprit], *, virtual: bool) -> list[Mechanism]:
    """Group ranked culprits by mechanism, in the order of their first culprits. `virtual`: whether the
    machine is virtual, so that only its host can stop all software on a CPU.
    """
    groups: dict[str, list[RankedCulprit]] = {}
    for known in ranked:
        kind = known.culprit.kind
        kind = Kind.STEAL if virtual and kind is Kind.NO_SOFTWARE else kind
        owner = known.culprit.owner
        words = f"other tasks kept {owner} from running while it held a lock" if owner else WORDS[kind]
        if kind is Kind.FAR_END and known.culprit.side in FAR_WORDS:
            words = FAR_WORDS[known.culprit.side]
        groups.setdefault(words, []).append(known)
    return [Mechanism(words, group) for words, group in groups.items()]


def cause_words(ranked: Sequence[RankedCulprit], *, virtual: bool) -> str | None:
    """Return the cause of late activations, "logger (pid 7713) ran instead: 95.5 % of the late time", or
    several with their shares; None if no mechanism took enough.
    """
    every = mechanisms(ranked, virtual=virtual)
    large = [known for known in every if known.time_share >= LEAST_SHARE]
    large.sort(key=lambda known: -known.time_share)
    if not large:
        return None
    first = large[0]
    largest = max(first.culprits, key=lambda known: known.time_share)
    if first.words == WORDS[Kind.TASK] and largest.time_share >= (1 - LEAST_SHARE) * first.time_share:
        culprit = largest.culprit
        pid = "" if culprit.pid is None else f"pid {culprit.pid}"
        about = [pid, priority_words(culprit.priority), culprit.side]
        known = ", ".join(word for word in about if word)
        words = f"{culprit.name}{f' ({known})' if known else ''} ran instead"
        if len(large) == 1 or largest.time_share > 1 - LEAST_SHARE:
            return f"{words}: {format_share(largest.time_share)} of the late time"
        return ", ".join([f"{words} ({format_share(largest.time_share)})", *map(_with_share, large[1:])])
    return ", ".join(map(_with_share, large))


def _with_share(mechanism: Mechanism) -> str:
    by = mechanism.names if mechanism.words in {WORDS[Kind.LOCK_OWNER], WORDS[Kind.STOPPED]} else ""
    words = f"{mechanism.words} by {by}" if by else mechanism.words
    first = mechanism.culprits[0].culprit
    named = f": {culprit_name(first)}" if first.side and first.kind in NAMED else ""
    side = f"{first.side}{named}, " if first.side else ""
    return f"{words} ({side}{format_share(mechanism.time_share)})"
