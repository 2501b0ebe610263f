# SPDX-License-Identifier: MIT
"""Latencies of several CPUs whose timers came late in the same interval: no software ran there, which one
CPU's trace alone does not show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.explain.analysis.attribution import Culprit, Explanation, Kind, Part
from rtgauge.explain.analysis.stall import LEAST_STALL_NS, LONGEST_IDLE_EXIT_NS, LONGEST_TICK_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

_SILENT = (Kind.TIMER_LATE, Kind.IDLE_EXIT)
_ACTIVE = (
    Kind.OWN,
    Kind.TASK,
    Kind.IRQ,
    Kind.INTERRUPT,
    Kind.SOFTIRQ,
    Kind.SWITCH,
    Kind.WAKEUP,
    Kind.REMOTE_WAKEUP,
    Kind.PREEMPTION_OFF,
    Kind.PAGE_FAULT,
)
"""What a CPU may be in the middle of when it is stopped: without any event, a tick too, for so long as other
CPUs' timers do not come either.
"""


@dataclass(frozen=True)
class _Silence:
    """An interval in which a CPU's timer was due and the CPU had no event; `active`: it was in the middle of
    something, and no timer of it is known.
    """

    start_ns: int
    end_ns: int
    cpu: int
    idle: bool
    active: bool = False


def with_joint_stalls(explanations: Sequence[Explanation]) -> list[Explanation]:
    """The explanations of one step, in which what several CPUs waited for at once is `no software ran`."""
    silences = [
        silence for explanation in explanations for silence in _silences(explanation) if not silence.active
    ]
    return [_joined(explanation, silences) for explanation in explanations]


def _silences(explanation: Explanation) -> list[_Silence]:
    return [
        silence
        for part in explanation.parts
        for span in part.spans
        if (silence := _silence(part.culprit.kind, *span)) is not None
    ]


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
            kept.spans += _rest(start, end, cpu, stalls)
        if kept.ns:
            parts.append(kept)
    if not still.ns:
        return replace(explanation, parts=parts)
    known = next((part for part in parts if part.culprit == still.culprit), None)
    if known is not None:
        parts.remove(known)
        still = Part(
            still.culprit,
            still.ns + known.ns,
            known.spans + still.spans,
            known.where,
            known.cpus | still.cpus,
        )
    return replace(explanation, parts=sorted([*parts, still], key=_begin))


def _others_that_stood(part: Part, silences: list[_Silence]) -> set[int]:
    """The CPUs of which other latencies tell that no software ran there in the same interval."""
    spans = [
        _Silence(start, end, cpu, idle=False)
        for start, end, cpu in part.spans
        if end - start >= LEAST_STALL_NS
    ]
    return {cpu for span in spans for _, _, cpus in _stall(span, silences) for cpu in cpus}


def _begin(part: Part) -> int:
    return min((start for start, _, _ in part.spans), default=0)


def _rest(
    start: int, end: int, cpu: int, stalls: list[tuple[int, int, set[int]]]
) -> list[tuple[int, int, int]]:
    edges = [start, *(edge for begin, stop, _ in stalls for edge in (begin, stop)), end]
    return [(begin, stop, cpu) for begin, stop in zip(edges[::2], edges[1::2], strict=True) if stop > begin]


def _stall(silence: _Silence, silences: list[_Silence]) -> list[tuple[int, int, set[int]]]:
    """The interval that most of a silence shares with one of another CPU, and the CPUs: one or none."""
    shared = [
        (min(silence.end_ns, other.end_ns) - max(silence.start_ns, other.start_ns), other)
        for other in silences
        if other.cpu != silence.cpu
        and not (silence.idle and other.idle and silence.end_ns - silence.start_ns <= LONGEST_IDLE_EXIT_NS)
    ]
    enough = [
        (length, other)
        for length, other in shared
        if length >= LEAST_STALL_NS and 2 * length >= silence.end_ns - silence.start_ns
    ]
    if not enough:
        return []
    _, widest = max(enough, key=lambda pair: pair[0])
    begin, stop = max(silence.start_ns, widest.start_ns), min(silence.end_ns, widest.end_ns)
    return [(begin, stop, {silence.cpu, *(other.cpu for _, other in enough)})]
