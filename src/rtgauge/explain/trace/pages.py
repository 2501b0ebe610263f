# SPDX-License-Identifier: MIT
"""Pages of the kernel's trace ring, as trace_pipe_raw gives them (include/linux/ring_buffer.h,
Documentation/trace/ring-buffer-design.rst).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rtgauge.explain.trace.formats import PageLayout

MISSED_EVENTS = 1 << 31
MISSED_STORED = 1 << 30
_LENGTH_BITS = 27
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_STAMP_BITS = 59
"""Of an absolute time stamp: its upper 5 bits are those of the page's."""
_WORD, _PAIR, _TIME = struct.Struct("<I"), struct.Struct("<II"), struct.Struct("<Q")


@dataclass(frozen=True)
class Page:
    """One page. `missed`: how many events were lost before it, 0 if unknown how many, None if none was."""

    time_ns: int
    data: bytes
    missed: int | None


def open_page(raw: bytes, layout: PageLayout) -> Page:
    """A page of bytes. Raises RecordError."""
    if len(raw) < layout.data_offset:
        raise RecordError(f"a page of the trace has {len(raw)} bytes, fewer than its header")
    commit = int(layout.commit.unpack_from(raw, layout.commit_offset)[0]) & 0xFFFF_FFFF
    length = commit & ~(MISSED_EVENTS | MISSED_STORED) & 0xFFFFF
    end = layout.data_offset + length
    if end > len(raw):
        raise RecordError(
            f"a page of the trace says that it has {length} bytes of events, and has "
            f"{len(raw) - layout.data_offset}"
        )
    missed: int | None = None
    if commit & MISSED_EVENTS:
        stored = commit & MISSED_STORED and end + 8 <= len(raw)
        missed = int(_TIME.unpack_from(raw, end)[0]) if stored else 0
    return Page(int(_TIME.unpack_from(raw)[0]), raw[layout.data_offset : end], missed)


def records(page: Page) -> Iterator[tuple[int, bytes]]:
    """(time in ns, bytes) of every event of a page, in its order. Raises RecordError for a damaged page.

    Every round takes at least 4 bytes: a page cannot hold the reader.
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
            raise RecordError("a page of the trace ends within an event")
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
            raise RecordError("a page of the trace ends within an event")
        yield time_ns, data[at : at + length]
        at += length
