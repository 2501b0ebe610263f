# SPDX-License-Identifier: MIT
"""Finds intervals in which no software ran on several CPUs, because firmware, a bus or the hypervisor had the
machine.

One silent CPU proves nothing, because a computing program causes no events. Late timers prove a stall, if one
CPU's trace shows them or the timers of several CPUs came late together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rtgauge.explain.analysis.explanation import Culprit, Explanation, Kind, Part
from rtgauge.explain.trace.contexts import CpuTimeline
from rtgauge.explain.trace.moment import EventTable

LEAST_STALL_NS = 50_000
"""Shorter silence on several CPUs may be chance. In a virtual machine, each timer is 10 to 30 us late."""
LONGEST_IDLE_EXIT_NS = 1_000_000
"""No processor takes longer to leave an idle state. The deepest ACPI states take a few hundred us."""

LONGEST_TICK_NS = 10_000_000
"""A busy CPU has at least one timer interrupt in this time, even at the lowest tick rate, CONFIG_HZ=100.

Only CPUs in nohz_full have none.
"""


@dataclass(frozen=True)
class LateTimers:
    """CPU -> (due, came) of each timer whose start and end the trace shows, ordered by `came`."""

    of_cpu: Mapping[int, list[tuple[int, int]]]

    @classmethod
    def of(cls, table: EventTable) -> LateTimers:
        """Collect all high-resolution timers in a table of events."""
        due: dict[int, int] = {}
        came: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for event in table.events:
            timer = event.number("hrtimer")
            match event.name:
                case "hrtimer_start":
                    due[timer] = event.number("expires")
                case "hrtimer_cancel":
                    due.pop(timer, None)
                case "hrtimer_expire_entry" if timer in due:
                    came[event.cpu].append((due.pop(timer), event.time_ns))
                case _:
                    pass
        return cls(came)

    def waited(self, cpu: int, start_ns: int, end_ns: int) -> int:
        """Return the longest time (ns) in an interval in which a timer of the CPU was due but did not
        come.
        """
        return max(
            (min(came, end_ns) - max(due, start_ns) for due, came in self.of_cpu.get(cpu, [])), default=0
        )


@dataclass(frozen=True)
class Stall:
    """An interval in which no software ran, and the CPUs known to have stood still."""

    start_ns: int
    end_ns: int
    cpus: frozenset[int]


def stood_still(
    lines: Mapping[int, CpuTimeline], timers: LateTimers, cpu: int, start_ns: int, end_ns: int, *, due: bool
) -> Stall | None:
    """Return the stall in a silent interval of `cpu`, or None. `due`: whether its timer was due all the time.

    A stall is the longest interval without events on any CPU, if another CPU confirms it: a timer of that CPU
    was due for most of the interval, or that CPU was busy and missed its tick. If all these CPUs were idle,
    the interval is a stall only if `due`, and if it is longer than any exit from an idle state.
    """
    times = {start_ns, end_ns}
    for line in lines.values():
        at = line.times_ns
        times.update(at[bisect_right(at, start_ns) : bisect_left(at, end_ns)])
    start, end = max(pairwise(sorted(times)), key=lambda pair: pair[1] - pair[0])
    length = end - start
    if length < LEAST_STALL_NS:
        return None
    witnesses = {other for other in lines if other != cpu and timers.waited(other, start, end) > length // 2}
    if due and length > LONGEST_TICK_NS:
        busy = {other for other, line in lines.items() if line.times_ns and not _idle(line, start)}
        witnesses |= busy - {cpu}
    idle = all(_idle(lines[known], start) for known in (cpu, *witnesses) if known in lines)
    stands = due and length > LONGEST_IDLE_EXIT_NS if idle else bool(witnesses)
    return Stall(start, end, frozenset({cpu, *witnesses})) if stands else None


def _idle(line: CpuTimeline, time_ns: int) -> bool:
    context = line.at(time_ns)
    return context.task is not None and context.task.idle and not context.frames


_SILENT = (Kind.TIMER_LATE, Kind.IDLE_EXIT)
_ACTIVE = (
    *(Kind.OWN, Kind.TASK, Kind.IRQ, Kind.INTERRUPT, Kind.SOFTIRQ, Kind.SWITCH),
    *(Kind.WAKEUP, Kind.REMOTE_WAKEUP, Kind.PREEMPTION_OFF, Kind.PAGE_FAULT),
)
"""Kinds of activity in which a stopped CPU has no event, not even a tick."""


@dataclass(frozen=True)
class _Silence:
    """An interval without events on a CPU whose timer was due. `active`: the CPU was busy and had no known
    timer.
    """

    start_ns: int
    end_ns: int
    cpu: int
    idle: bool
    active: bool = False


def with_joint_stalls(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Attribute the time that several CPUs of a step waited together to `no software ran`."""
    silences = [
        silence
        for explanation in explanations
        for part in explanation.parts
        for span in part.spans
        if (silence := _silence(part.culprit.kind, *span)) is not None and not silence.active
    ]
    return [_joined(explanation, silences) for explanation in explanations]


def _silence(kind: Kind, start: int, end: int, cpu: int) -> _Silence | None:
    active = kind in _ACTIVE
    if end - start < (LONGEST_TICK_NS if active else LEAST_STALL_NS) or not (
        active or kind in _SILENT or kind is Kind.NO_SOFTWARE
    ):
        return None
    return _Silence(start, end, cpu, kind is Kind.IDLE_EXIT, active)


def _joined(explanation: Explanation, silences: list[_Silence]) -> Explanation:
    parts: list[Part] = []
    still = Part(Culprit(Kind.NO_SOFTWARE))
    for part in explanation.parts:
        if part.culprit.kind is Kind.NO_SOFTWARE:
            parts.append(replace(part, cpus=part.cpus | _others_that_stood(part, silences)))
            continue
        if part.culprit.kind not in _SILENT and part.culprit.kind not in _ACTIVE:
            parts.append(part)
            continue
        kept = replace(part, ns=0, spans=[])
        for start, end, cpu in part.spans:
            silence = _silence(part.culprit.kind, start, end, cpu)
            stalls = [] if silence is None else _stall(silence, silences)
            for begin, stop, cpus in stalls:
                still.ns += stop - begin
                still.spans.append((begin, stop, cpu))
                still.cpus |= cpus
            kept.ns += (end - start) - sum(stop - begin for begin, stop, _ in stalls)
            edges = [start, *(edge for begin, stop, _ in stalls for edge in (begin, stop)), end]
            rest = zip(edges[::2], edges[1::2], strict=True)
            kept.spans += [(begin, stop, cpu) for begin, stop in rest if stop > begin]
        if kept.ns:
            parts.append(kept)
    if not still.ns:
        return replace(explanation, parts=parts)
    known = next((part for part in parts if part.culprit == still.culprit), None)
    if known is not None:
        parts.remove(known)
        cpus = known.cpus | still.cpus
        still = Part(still.culprit, still.ns + known.ns, known.spans + still.spans, known.where, cpus)
    return replace(explanation, parts=sorted([*parts, still], key=lambda part: part.begin_ns))


def _others_that_stood(part: Part, silences: list[_Silence]) -> set[int]:
    """Return the other CPUs whose latencies show that no software ran there in the same interval."""
    spans = [
        _Silence(start, end, cpu, idle=False)
        for start, end, cpu in part.spans
        if end - start >= LEAST_STALL_NS
    ]
    return {cpu for span in spans for _, _, cpus in _stall(span, silences) for cpu in cpus}


def _stall(silence: _Silence, silences: list[_Silence]) -> list[tuple[int, int, set[int]]]:
    """Return [(start, end, CPUs)]: the longest interval that a silence shares with another CPU, at least half
    of it, and all CPUs that share so much. The list is empty if there is no such interval.
    """
    length = silence.end_ns - silence.start_ns
    enough: list[tuple[int, int, int]] = []
    for other in silences:
        begin, stop = max(silence.start_ns, other.start_ns), min(silence.end_ns, other.end_ns)
        long = stop - begin >= LEAST_STALL_NS and 2 * (stop - begin) >= length
        woke = silence.idle and other.idle and length <= LONGEST_IDLE_EXIT_NS
        if other.cpu != silence.cpu and long and not woke:
            enough.append((begin, stop, other.cpu))
    if not enough:
        return []
    begin, stop, _ = max(enough, key=lambda shared: shared[1] - shared[0])
    return [(begin, stop, {silence.cpu, *(cpu for _, _, cpu in enough)})]
