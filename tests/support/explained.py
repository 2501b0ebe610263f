# SPDX-License-Identifier: MIT
"""Puts the frozen trace of drawn latencies into a record, as the runner does for a step with --explain."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.record.moments import MOMENTS
from rtgauge.record.record_folder import checksum

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rtgauge.explain.trace.formats import EventFormat
    from rtgauge.explain.trace.moment import Event, Moment

DATA = Path(__file__).parent.parent / "data" / "explain"
PAGE = 4096


def real_formats() -> dict[str, Any]:
    """`trace_formats` of a Linux 6.18 on x86-64."""
    return {"type": "trace_formats", **json.loads((DATA / "trace_formats.json").read_text())}


def real_moment() -> dict[str, Any]:
    """A moment of that machine: a task of real-time priority 90 ran for 2.4 ms before the measured thread of
    80.
    """
    return {"copy_ns": 1, "lost": {}, "left_out": [], **json.loads((DATA / "moment.json").read_text())}


def _record(form: EventFormat, event: Event) -> bytes:
    """The bytes of an event, as its format lays them out."""
    size = max(field.offset + field.size for field in form.fields)
    data = bytearray(-(-size // 4) * 4)
    struct.pack_into("<HBBi", data, 0, form.id, event.flags, event.preempt_count, event.pid)
    for field in form.fields:
        value = event.values.get(field.name, 0)
        if field.kind == "text":
            data[field.offset : field.offset + field.size] = (
                str(value).encode()[: field.size - 1].ljust(field.size, b"\0")
            )
        elif field.kind == "located":
            text = str(value).encode() + b"\0"
            struct.pack_into("<I", data, field.offset, len(data) | len(text) << 16)
            data += text.ljust(-(-len(text) // 4) * 4, b"\0")
        elif field.number is not None and isinstance(value, int):
            data[field.offset : field.offset + field.size] = (value & (1 << 8 * field.size) - 1).to_bytes(
                field.size, "little"
            )
    return bytes(data)


def _pages(records: list[tuple[int, bytes]]) -> list[bytes]:
    """Pages of the ring with these (time, record)."""
    pages: list[bytes] = []
    begin, before, data = 0, 0, b""
    for time, record in records:
        if not data:
            begin = before = time
        delta = time - before
        extension = (
            struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27) if delta >= 1 << 27 else b""
        )
        event = extension + struct.pack("<I", len(record) // 4 | (0 if extension else delta) << 5) + record
        if len(data) + len(event) > PAGE - 16:
            pages.append(struct.pack("<QQ", begin, len(data)) + data)
            begin, data, event = time, b"", struct.pack("<I", len(record) // 4) + record
        data, before = data + event, time
    return [
        page.ljust(PAGE, b"\0")
        for page in [*pages, *([struct.pack("<QQ", begin, len(data)) + data] if data else [])]
    ]


def moment_document(moment: Moment, formats: dict[str, Any]) -> dict[str, Any]:
    """A drawn moment as a line of the stream. Its events have to be among the formats."""
    known = {form.name: form for form in TraceFormats.read(formats).events.values()}
    records: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for event in moment.table.events:
        records[event.cpu].append((event.time_ns, _record(known[event.name], event)))
    numbers = ("number", "cpu", "release_ns", "end_ns", "latency_ns", "kind", "series", "thread")
    pages = {
        str(cpu): [base64.b64encode(page).decode() for page in _pages(records[cpu])]
        for cpu in moment.table.cpus
    }
    return {
        "type": "moment",
        **{name: getattr(moment, name) for name in numbers},
        "pages": pages,
        "lost": {},
        "copy_ns": 1,
        "left_out": [],
    }


def add_moments(record: Path, step: str, formats: dict[str, Any], moments: Iterable[dict[str, Any]]) -> None:
    """Write the frozen trace of a step of a record."""
    folder = record / "steps" / step
    with gzip.open(folder / MOMENTS, "wt") as file:
        for document in (formats, *moments):
            file.write(json.dumps(document) + "\n")
    about = json.loads((folder / "step.json").read_text())
    about["checksums"][MOMENTS] = checksum(folder / MOMENTS)
    (folder / "step.json").write_text(json.dumps(about))
