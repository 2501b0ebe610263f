# SPDX-License-Identifier: MIT
"""trace.dat, version 6: the frozen pages of a step as trace-cmd and KernelShark open them
(trace-cmd.dat.v6(5)).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from typing import TYPE_CHECKING

from rtgauge.explain.trace.events import read_pages
from rtgauge.explain.trace.pages import open_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rtgauge.explain.trace.events import EventTable
    from rtgauge.explain.trace.formats import TraceFormats

OPTION_CLOCK = 4
"""TRACECMD_OPTION_TRACECLOCK."""
_MAGIC = b"\x17\x08\x44tracing6\0"
_MOST_COMM = 15


def trace_dat(formats: TraceFormats, moments: Iterable[Mapping[int, list[bytes]]]) -> bytes:
    """The file of the raw pages of all moments, each page once. Raises RecordError for a damaged page."""
    pages = _each_once(formats, moments)
    cpus = max([formats.cpus, *(cpu + 1 for cpu in pages)])
    head = _head(formats, _names(read_pages(formats, pages)))
    size = formats.page.bytes
    # behind the head: the offset and the size of each CPU's pages, which begin at a whole page
    begin = -(-(len(head) + 16 * cpus + 4 + len(_options(formats))) // size) * size
    table, data = b"", b""
    for cpu in range(cpus):
        own = b"".join(raw.ljust(size, b"\0") for raw in pages.get(cpu, []))
        table += struct.pack("<QQ", begin + len(data), len(own))
        data += own
    whole = head + struct.pack("<I", cpus) + _options(formats) + table
    return whole.ljust(begin, b"\0") + data


def _each_once(formats: TraceFormats, moments: Iterable[Mapping[int, list[bytes]]]) -> dict[int, list[bytes]]:
    """CPU -> its pages by time. Two moments may both have a page, which the later one may have more of."""
    known: dict[int, dict[int, tuple[int, bytes]]] = defaultdict(dict)
    for moment in moments:
        for cpu, raws in moment.items():
            for raw in raws:
                page = open_page(raw, formats.page)
                if len(page.data) > known[cpu].get(page.time_ns, (-1, b""))[0]:
                    known[cpu][page.time_ns] = (len(page.data), raw)
    return {cpu: [raw for _, (_, raw) in sorted(pages.items())] for cpu, pages in sorted(known.items())}


def _names(table: EventTable) -> dict[int, str]:
    """pid -> name of every task that an event names."""
    names: dict[int, str] = {}
    for event in table.events:
        for prefix in ("prev_", "next_", ""):
            pid, name = event.values.get(f"{prefix}pid"), event.text(f"{prefix}comm")
            if isinstance(pid, int) and pid > 0 and name:
                names.setdefault(pid, name)
    return names


def _sized(text: str, width: str = "<Q") -> bytes:
    data = text.encode()
    return struct.pack(width, len(data)) + data


def _head(formats: TraceFormats, names: Mapping[int, str]) -> bytes:
    """Everything up to the number of CPUs."""
    parts = [_MAGIC, struct.pack("<BBI", 0, formats.page.commit.size, formats.page.bytes)]
    parts += [b"header_page\0", _sized(formats.header_page), b"header_event\0", _sized(formats.header_event)]
    systems: dict[str, list[str]] = defaultdict(list)
    for path, text in formats.texts.items():
        systems[path.partition("/")[0]].append(text)
    own = systems.pop("ftrace", [])
    parts += [struct.pack("<I", len(own)), *map(_sized, own), struct.pack("<I", len(systems))]
    for system, texts in systems.items():
        parts += [system.encode() + b"\0", struct.pack("<I", len(texts)), *map(_sized, texts)]
    symbols = zip(formats.symbols.addresses, formats.symbols.names, strict=True)
    parts.append(_sized("".join(f"{address:016x} t {name}\n" for address, name in symbols), "<I"))
    parts.append(_sized("", "<I"))
    parts.append(_sized("".join(f"{pid} {name[:_MOST_COMM]}\n" for pid, name in sorted(names.items()))))
    return b"".join(parts)


def _options(formats: TraceFormats) -> bytes:
    clock = f"[{formats.clock}]".encode() + b"\0"
    return (
        b"options  \0"
        + struct.pack("<HI", OPTION_CLOCK, len(clock))
        + clock
        + struct.pack("<H", 0)
        + b"flyrecord\0"
    )
