# SPDX-License-Identifier: MIT
"""Reads a moment, which is one latency and the events of all CPUs before it, from pages of the kernel's trace
ring (include/linux/ring_buffer.h, Documentation/trace/ring-buffer-design.rst).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.explain.trace.formats import Field, PageLayout, TraceFormats, Value
from rtgauge.record.stream import MomentLine, ThrottledGroup

MISSED_EVENTS = 1 << 31
MISSED_STORED = 1 << 30
_LENGTH_BITS = 27
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_STAMP_BITS = 59
"""The number of bits in an absolute time stamp. The upper 5 bits come from the page's time stamp."""
_WORD, _TIME = struct.Struct("<I"), struct.Struct("<Q")


@dataclass(frozen=True)
class Page:
    """One page. `missed`: the number of events lost before it; 0 if unknown, None if none was lost."""

    time_ns: int
    data: bytes
    missed: int | None


def open_page(raw: bytes, layout: PageLayout) -> Page:
    """Read a page. Raises RecordError if it is shorter than its header says."""
    if len(raw) < layout.data_offset:
        raise RecordError(
            f"a page of the trace is damaged: it has {len(raw)} bytes, fewer than a header needs"
        )
    commit = int(layout.commit.unpack_from(raw, layout.commit_offset)[0]) & 0xFFFF_FFFF
    length = commit & ~(MISSED_EVENTS | MISSED_STORED) & 0xFFFFF
    end = layout.data_offset + length
    if end > len(raw):
        raise RecordError(
            f"a page of the trace is damaged: it should have {length} bytes of events, but has "
            f"{len(raw) - layout.data_offset}"
        )
    missed: int | None = None
    if commit & MISSED_EVENTS:
        stored = commit & MISSED_STORED and end + 8 <= len(raw)
        missed = int(_TIME.unpack_from(raw, end)[0]) if stored else 0
    return Page(int(_TIME.unpack_from(raw)[0]), raw[layout.data_offset : end], missed)


def records(page: Page) -> Iterator[tuple[int, bytes]]:
    """Yield (time in ns, bytes) of a page's events, in order. Raises RecordError if the page is damaged.

    Each round consumes at least 4 bytes, so the loop ends.
    """
    data, end, at, time_ns = page.data, len(page.data), 0, page.time_ns
    while at + 4 <= end:
        head = int(_WORD.unpack_from(data, at)[0])
        kind, delta = head & 0x1F, head >> 5
        at += 4
        if kind == _PADDING and delta == 0:
            return
        if 1 <= kind < _PADDING:
            length = kind * 4
        elif at + 4 > end:
            raise RecordError("a page of the trace is damaged: it ends within an event")
        else:
            word = int(_WORD.unpack_from(data, at)[0])
            if kind == _TIME_EXTEND:
                time_ns += (word << _LENGTH_BITS) + delta
                at += 4
                continue
            if kind == _TIME_STAMP:
                time_ns = ((word << _LENGTH_BITS) + delta) | (page.time_ns >> _STAMP_BITS << _STAMP_BITS)
                at += 4
                continue
            if kind == _PADDING:
                time_ns += delta
                at += max(word, 4)
                continue
            length = word - 4
            at += 4
        time_ns += delta
        if length < 0 or at + length > end:
            raise RecordError("a page of the trace is damaged: it ends within an event")
        yield time_ns, data[at : at + length]
        at += length


MOST_PAGES, MOST_CPUS = 16_384, 65_536
MOST_EVENTS = 2_000_000

NEED_RESCHED = 0x04
"""TRACE_FLAG_NEED_RESCHED (include/linux/trace_events.h): the CPU must call the scheduler."""


class Event(NamedTuple):
    """One event of the kernel.

    `pid`: the task that the CPU ran. `flags`, `preempt_count`: the context; 0 if the kernel does not give it.
    """

    time_ns: int
    cpu: int
    name: str
    pid: int
    flags: int
    preempt_count: int
    values: dict[str, Value]

    def number(self, name: str, other: int = 0) -> int:
        """Return the value with this name if it is a number, otherwise `other`."""
        value = self.values.get(name)
        return value if isinstance(value, int) else other

    def text(self, name: str) -> str:
        """Return the value with this name if it is a text, otherwise ""."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Lost:
    """Events that the ring lost on one CPU, between the last event before the loss and the first after it.

    `count`: the number of lost events; 0 if unknown.
    """

    cpu: int
    after_ns: int | None
    until_ns: int
    count: int


@dataclass(frozen=True)
class EventTable:
    """The events of all CPUs in order of time. `cpus`: the recorded CPUs."""

    events: list[Event]
    cpus: tuple[int, ...]
    lost: list[Lost] = field(default_factory=list[Lost])

    def of_cpu(self, cpu: int) -> list[Event]:
        """Return the events of one CPU."""
        return [event for event in self.events if event.cpu == cpu]


def moment_line(document: Mapping[str, object]) -> MomentLine:
    """Read the line `moment` of a stream. Raises RecordError if it is damaged."""
    try:
        return MomentLine.model_validate(document, strict=True)
    except ValidationError:
        raise RecordError("the events recorded around a latency are damaged") from None


def raw_pages(line: MomentLine) -> dict[int, list[bytes]]:
    """Return CPU -> the bytes of each of its pages. Raises RecordError if pages are damaged or too many."""
    if sum(map(len, line.pages.values())) > MOST_PAGES:
        raise RecordError(f"the events recorded around a latency fill more than {MOST_PAGES} pages")
    try:
        pages = {
            int(cpu): [base64.b64decode(text, validate=True) for text in texts]
            for cpu, texts in line.pages.items()
        }
    except ValueError:
        raise RecordError("the pages of events recorded around a latency are damaged") from None
    if not all(0 <= cpu < MOST_CPUS for cpu in pages):
        raise RecordError("the pages of events recorded around a latency are damaged")
    return pages


def read_pages(formats: TraceFormats, pages: Mapping[int, Sequence[bytes]]) -> EventTable:
    """Read the events in all pages, by CPU. Events that the formats do not describe are left out.

    Raises RecordError if a page is damaged or there are too many events.
    """
    events: list[Event] = []
    lost: list[Lost] = []
    for cpu, raws in pages.items():
        before: int | None = None
        for raw in raws:
            page = open_page(raw, formats.page)
            if page.missed is not None:
                lost.append(Lost(cpu, before, page.time_ns, page.missed))
            of_page = _events(formats, page, cpu)
            before = max([before or 0, page.time_ns, *(event.time_ns for event in of_page[-1:])])
            events += of_page
            if len(events) > MOST_EVENTS:
                raise RecordError(f"more than {MOST_EVENTS} events were recorded around a latency")
    events.sort(key=lambda event: event.time_ns)
    return EventTable(events, tuple(sorted(pages)), lost)


def _events(formats: TraceFormats, page: Page, cpu: int) -> list[Event]:
    common, events = formats.common, list[Event]()
    for time_ns, record in records(page):
        kind = common.type.value(record)
        known = formats.events.get(kind) if isinstance(kind, int) else None
        if known is None:
            continue
        pid, flags, depth = (
            _number(place, record) for place in (common.pid, common.flags, common.preempt_count)
        )
        events.append(Event(time_ns, cpu, known.name, pid, flags, depth, known.values(record)))
    return events


def _number(field: Field | None, record: bytes) -> int:
    value = None if field is None else field.value(record)
    return value if isinstance(value, int) else 0


def _before_first_page(
    formats: TraceFormats, pages: Mapping[int, Sequence[bytes]], release_ns: int
) -> list[Lost]:
    """Return the time after the release of which a CPU has no page, because the moment is too long for the
    ring.
    """
    first = {cpu: open_page(raws[0], formats.page).time_ns for cpu, raws in pages.items() if raws}
    return [Lost(cpu, None, time_ns, 0) for cpu, time_ns in first.items() if time_ns > release_ns]


LONGEST_NS = 10**12


@dataclass(frozen=True)
class Moment:
    """One latency of `thread` (a tid), released at `release_ns` and measured at `end_ns` on `cpu`. Times are
    in the events' clock, CLOCK_MONOTONIC.
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
    """The CPUs whose events did not fit."""
    stolen_ns: Mapping[int, int] = field(default_factory=dict[int, int])
    """CPU -> the time that the hypervisor took from it around the moment, counted in ticks of 10 ms."""

    held: tuple[tuple[int, str], ...] = ()
    """(start, system call or empty) of each sleep in the moment that no other thread ended."""
    throttled: tuple[ThrottledGroup, ...] = ()
    """The thread's control groups that recently used up their CPU quota, in order of time."""
    has_quota_timers: bool = False
    """Whether the timers that end throttling are among the events."""
    process: int = 0
    """The thread's process, which a signal for the whole program names; 0 if unknown."""
    timer_ns: int = 0
    """When the program's timer expired, if it was set for later than the release; otherwise 0."""
    trigger: str = ""
    """What the recorder knows about its trigger; empty if it is none, or if nothing is known."""

    @property
    def is_triggered(self) -> bool:
        """Whether this is the time before a trigger, and not a latency."""
        return self.kind == "triggered"

    @property
    def is_blocked(self) -> bool:
        """Whether this is a sleep from `release_ns` until the lock's owner released the lock at `end_ns`."""
        return self.kind == "blocked"

    @property
    def is_locked(self) -> bool:
        """Whether the threads that the moment leads to are owners of locks. Only a plain wait has none."""
        return self.kind != "waited"

    @property
    def is_wait(self) -> bool:
        """Whether this is a sleep from `release_ns` until another thread woke the thread at `end_ns`."""
        return self.kind in {"blocked", "waited"}


def read_moment(formats: TraceFormats, document: Mapping[str, object]) -> Moment:
    """Read the line `moment` of a stream with its pages. Raises RecordError if it is damaged."""
    line = moment_line(document)
    if not 0 <= line.end_ns - line.release_ns <= LONGEST_NS or line.cpu >= MOST_CPUS:
        raise RecordError(
            f"latency {line.number} in the trace is damaged: its release is at {line.release_ns} ns and its "
            f"end at {line.end_ns} ns"
        )
    pages = raw_pages(line)
    table = read_pages(formats, pages)
    table.lost.extend(_before_first_page(formats, pages, line.release_ns))
    return Moment(
        line.number,
        line.cpu,
        line.release_ns,
        line.end_ns,
        line.latency_ns,
        line.kind,
        line.series,
        line.thread,
        table,
        tuple(line.left_out),
        {int(cpu): ms * 1_000_000 for cpu, ms in line.steal_ms.items() if cpu.isdecimal() and ms > 0},
        tuple((sleep.since_ns, sleep.call) for sleep in line.held),
        tuple(group for group in line.throttled if group.times > 0 and 0 < group.ns < LONGEST_NS),
        line.quota_timers,
        line.process,
        line.timer_ns,
        line.trigger,
    )
