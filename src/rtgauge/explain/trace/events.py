# SPDX-License-Identifier: MIT
"""The events of one moment: what the pages of all CPUs say, in the order of time."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from rtgauge.errors import RecordError
from rtgauge.explain.trace.pages import Page, open_page, records

if TYPE_CHECKING:
    from rtgauge.explain.trace.formats import Field, TraceFormats, Value

MOST_PAGES = 16_384
MOST_EVENTS = 2_000_000

NEED_RESCHED = 0x04
"""Of an event's `flags` (TRACE_FLAG_* of include/linux/trace_events.h): the scheduler is to be called on this
CPU.
"""


class Event(NamedTuple):
    """One event.

    `pid`: of the task that the CPU was in; `flags`, `preempt_count`: the context, 0 where the kernel does not
    tell.
    """

    time_ns: int
    cpu: int
    name: str
    pid: int
    flags: int
    preempt_count: int
    values: dict[str, Value]

    def number(self, name: str, other: int = 0) -> int:
        """A value that is a number; `other` where there is none of this name."""
        value = self.values.get(name)
        return value if isinstance(value, int) else other

    def text(self, name: str) -> str:
        """A value that is a text; empty where there is none of this name."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True)
class Lost:
    """Events of one CPU that the ring lost, between its last event before and its first after.

    `count` 0: unknown how many.
    """

    cpu: int
    after_ns: int | None
    until_ns: int
    count: int


@dataclass(frozen=True)
class EventTable:
    """Events of all CPUs in the order of time; `cpus`: those that were recorded; `ends_ns`: of a CPU, the
    time of its last event.
    """

    events: list[Event]
    cpus: tuple[int, ...]
    lost: list[Lost] = field(default_factory=list[Lost])

    def of_cpu(self, cpu: int) -> list[Event]:
        """The events of one CPU."""
        return [event for event in self.events if event.cpu == cpu]


def raw_pages(document: object) -> dict[int, list[bytes]]:
    """`pages` of a moment: {"CPU": [base64, ...]} -> the bytes. Raises RecordError."""
    if not isinstance(document, Mapping):
        raise RecordError("a moment of the trace has no pages")
    pages: dict[int, list[bytes]] = {}
    left = MOST_PAGES
    for cpu, texts in cast("Mapping[object, object]", document).items():
        if (
            not isinstance(texts, Sequence)
            or isinstance(texts, str)
            or not (isinstance(cpu, str) and cpu.isascii() and cpu.isdecimal() and len(cpu) < 6)
        ):
            raise RecordError("a moment of the trace has damaged pages")
        encoded = cast("Sequence[object]", texts)
        left -= len(encoded)
        if left < 0:
            raise RecordError(f"a moment of the trace has more than {MOST_PAGES} pages")
        try:
            pages[int(cpu)] = [
                base64.b64decode(text, validate=True) for text in encoded if isinstance(text, str)
            ]
        except (binascii.Error, ValueError):
            raise RecordError("a moment of the trace has damaged pages") from None
    return pages


def read_pages(formats: TraceFormats, pages: Mapping[int, Sequence[bytes]]) -> EventTable:
    """The events of all pages, by CPU.

    Events that the formats do not know are left out. Raises RecordError.
    """
    events: list[Event] = []
    lost: list[Lost] = []
    for cpu, raws in pages.items():
        before: int | None = None
        for raw in raws:
            page = open_page(raw, formats.page)
            if page.missed is not None:
                lost.append(Lost(cpu, before, page.time_ns, page.missed))
            found = _events(formats, page, cpu)
            before = max([before or 0, page.time_ns, *(event.time_ns for event in found[-1:])])
            events += found
            if len(events) > MOST_EVENTS:
                raise RecordError(f"a moment of the trace has more than {MOST_EVENTS} events")
    events.sort(key=lambda event: event.time_ns)
    return EventTable(events, tuple(sorted(pages)), lost)


def _events(formats: TraceFormats, page: Page, cpu: int) -> list[Event]:
    common, found = formats.common, list[Event]()
    for time_ns, record in records(page):
        kind = common.type.value(record)
        known = formats.events.get(kind) if isinstance(kind, int) else None
        if known is None:
            continue
        pid, flags, depth = (
            _number(place, record) for place in (common.pid, common.flags, common.preempt_count)
        )
        found.append(Event(time_ns, cpu, known.name, pid, flags, depth, known.values(record)))
    return found


def _number(field: Field | None, record: bytes) -> int:
    value = None if field is None else field.value(record)
    return value if isinstance(value, int) else 0
