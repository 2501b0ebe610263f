# SPDX-License-Identifier: MIT
"""A moment: one latency, and the events of all CPUs before it, frozen when it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from rtgauge.errors import RecordError
from rtgauge.explain.trace.events import raw_pages, read_pages

if TYPE_CHECKING:
    from rtgauge.explain.trace.events import EventTable
    from rtgauge.explain.trace.formats import TraceFormats

LONGEST_NS = 10**12
_NUMBERS = ("number", "cpu", "release_ns", "end_ns", "latency_ns", "series", "thread")


@dataclass(frozen=True)
class Throttled:
    """What the kernel counted of a control group that had used up its CPU quota: in how many periods, and for
    how long. It ended after `after_ns` and until `until_ns`.
    """

    group: str
    times: int
    ns: int
    after_ns: int
    until_ns: int


@dataclass(frozen=True)
class Moment:
    """One latency of the thread `thread` (its tid): released at `release_ns`, measured at `end_ns` on `cpu`;
    times by the events' clock, CLOCK_MONOTONIC.
    """

    number: int
    cpu: int
    release_ns: int
    end_ns: int
    latency_ns: int
    kind: str
    series: int
    thread: int
    table: EventTable
    left_out: tuple[int, ...] = ()
    """CPUs whose events had no room."""
    stolen_ns: Mapping[int, int] = field(default_factory=dict[int, int])
    """CPU -> what the hypervisor took of it about that time, by the guest's kernel, which counts in ticks of
    10 ms.
    """

    held: tuple[tuple[int, str], ...] = ()
    """(since when, system call) of the thread's sleeps within it that no other thread's doing ends; the call
    is empty if it was in none.
    """
    throttled: tuple[Throttled, ...] = ()
    """The thread's control groups that had used up their CPU quota since a little before the release, in the
    order of time.
    """

    @property
    def is_blocked(self) -> bool:
        """Whether it is no latency but a sleep for a lock, from `release_ns` to `end_ns`, when the lock's
        owner gave it back.
        """
        return self.kind == "blocked"

    @property
    def is_wait(self) -> bool:
        """Whether it is no latency but a sleep, from `release_ns` to `end_ns`, when another thread woke it:
        by a lock that it gave back, or otherwise.
        """
        return self.kind in {"blocked", "waited"}


def read_moment(formats: TraceFormats, document: Mapping[str, object]) -> Moment:
    """`moment` of a stream with its pages. Raises RecordError."""
    numbers = [document.get(name) for name in _NUMBERS]
    kind = document.get("kind")
    if any(type(number) is not int for number in numbers) or not isinstance(kind, str):
        raise RecordError("a moment of the trace is damaged")
    number, cpu, release_ns, end_ns, latency_ns, series, thread = (int(str(value)) for value in numbers)
    if not 0 <= end_ns - release_ns <= LONGEST_NS or not 0 <= cpu < 65536:
        raise RecordError(
            f"moment {number} of the trace has no time: its release is at {release_ns} ns and its "
            f"end at {end_ns} ns"
        )
    table = read_pages(formats, raw_pages(document.get("pages")))
    left_out, stolen = _left_out(document.get("left_out")), _stolen(document.get("steal_ms"))
    return Moment(
        number,
        cpu,
        release_ns,
        end_ns,
        latency_ns,
        kind,
        series,
        thread,
        table,
        left_out,
        stolen,
        _held(document.get("held")),
        _throttled(document.get("throttled")),
    )


def _held(document: object) -> tuple[tuple[int, str], ...]:
    listed = cast("list[object]", document) if isinstance(document, list) else []
    entries = [cast("dict[str, object]", entry) for entry in listed if isinstance(entry, dict)]
    pairs = [(entry.get("since_ns"), entry.get("call")) for entry in entries]
    return tuple((since, call) for since, call in pairs if isinstance(since, int) and isinstance(call, str))


def _throttled(document: object) -> tuple[Throttled, ...]:
    listed = cast("list[object]", document) if isinstance(document, list) else []
    entries = [cast("dict[str, object]", entry) for entry in listed if isinstance(entry, dict)]
    known = [
        [entry.get(name) for name in ("group", "times", "ns", "after_ns", "until_ns")] for entry in entries
    ]
    return tuple(
        Throttled(group, times, ns, after_ns, until_ns)
        for group, times, ns, after_ns, until_ns in known
        if isinstance(group, str)
        and type(times) is int
        and type(ns) is int
        and type(after_ns) is int
        and type(until_ns) is int
        and times > 0
        and 0 < ns < LONGEST_NS
    )


def _left_out(cpus: object) -> tuple[int, ...]:
    listed = cast("list[object]", cpus) if isinstance(cpus, list) else []
    return tuple(cpu for cpu in listed if isinstance(cpu, int))


def _stolen(document: object) -> dict[int, int]:
    listed = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    ticks = {int(cpu): ms for cpu, ms in listed.items() if cpu.isdecimal() and len(cpu) < 6}
    return {cpu: ms * 1_000_000 for cpu, ms in ticks.items() if type(ms) is int and 0 < ms < LONGEST_NS}
