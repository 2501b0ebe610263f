# SPDX-License-Identifier: MIT
"""Exports the frozen trace of a record's only explained step for trace viewers."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rtgauge.errors import InputError
from rtgauge.explain.trace.contexts import Context, CpuTimeline, timelines
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import (
    EventTable,
    Moment,
    moment_line,
    open_page,
    raw_pages,
    read_moment,
    read_pages,
)
from rtgauge.exporters.exporter import Exporter
from rtgauge.record.reader import Record

if TYPE_CHECKING:
    from rtgauge.record.moments import MomentFile


def trace_dat(record: Record) -> bytes:
    """Return the trace in the format trace.dat of trace-cmd.

    Raises InputError unless exactly one step has a trace, RecordError for a damaged record.
    """
    file = _only_trace(record)
    return trace_dat_file(
        TraceFormats.read(file.formats), (raw_pages(moment_line(document)) for document in file.moments())
    )


def perfetto(record: Record) -> bytes:
    """Return the trace in Perfetto's trace event format.

    Raises InputError unless exactly one step has a trace, RecordError for a damaged record.
    """
    file = _only_trace(record)
    formats = TraceFormats.read(file.formats)
    return perfetto_json(formats, (read_moment(formats, document) for document in file.moments()))


def _only_trace(record: Record) -> MomentFile:
    files = {step.id: file for step in record.steps if (file := record.moments(step)) is not None}
    if not files:
        raise InputError("none of this record's steps has a trace; measure with --explain")
    if len(files) > 1:
        raise InputError(
            f"a trace covers one step, but this record has traces of {', '.join(files)}; choose one with "
            f"--step"
        )
    return next(iter(files.values()))


CPUS, LATENCIES = 1, 2
"""The groups of lanes, which the format calls processes."""
_LANES = 1_000_000
"""The lanes in a group. Perfetto uses a lane's number as a thread id, which must be unique and not 0."""


def perfetto_json(formats: TraceFormats, moments: Iterable[Moment]) -> bytes:
    """Return the moments of one step as JSON, with times in us of CLOCK_MONOTONIC."""
    events: list[dict[str, Any]] = [
        _lane("process_name", CPUS, 0, "CPUs"),
        _lane("process_name", LATENCIES, 0, "explained latencies"),
    ]
    lanes: set[tuple[int, int]] = set()
    drawn: dict[int, int] = {}
    for moment in sorted(moments, key=lambda known: known.end_ns):
        for cpu, line in timelines(moment.table, formats.symbols).items():
            # a ring may still hold events of the previous moment, so draw each event once
            drawn[cpu] = _slices(events, cpu, line, drawn.get(cpu, 0))
            lanes.add((CPUS, cpu))
        lanes.add((LATENCIES, moment.series))
        events += _latency(moment)
    events += [
        _lane("thread_name", group, lane, f"CPU {lane}" if group == CPUS else f"series {lane}")
        for group, lane in sorted(lanes)
    ]
    return (
        json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":")) + "\n"
    ).encode()


def _lane(what: str, group: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "args": {"name": name}} | _place(group, lane)


def _place(group: int, lane: int) -> dict[str, int]:
    return {"pid": group, "tid": group * _LANES + lane}


def _latency(moment: Moment) -> list[dict[str, Any]]:
    """Return the latency as a slice from its release, with the release and the wake-up as instants."""
    lane = _place(LATENCIES, moment.series)
    name = f"latency {moment.latency_ns / 1000:.3f} us"
    about = {"moment": moment.number, "cpu": moment.cpu, "thread": moment.thread}
    wakeups = [
        event
        for event in moment.table.events
        if event.name == "sched_waking" and event.number("pid") == moment.thread
    ]
    inside = [event for event in wakeups if moment.release_ns <= event.time_ns <= moment.end_ns]
    marks = [("release", moment.release_ns), *(("wake-up", event.time_ns) for event in inside)]
    whole = {
        "ph": "X",
        "cat": "latency",
        "name": name,
        "ts": moment.release_ns / 1000,
        "dur": moment.latency_ns / 1000,
        "args": about,
    }
    return [
        lane | whole,
        *(
            lane | {"ph": "i", "s": "g", "cat": "latency", "name": what, "ts": time / 1000}
            for what, time in marks
        ),
    ]


def _stack(context: Context) -> list[tuple[str, str, tuple[object, ...]]]:
    """Return (category, name, identity) of each context that a CPU is in, the outermost first."""
    task = context.task
    stack: list[tuple[str, str, tuple[object, ...]]] = []
    if task is not None:
        stack.append(("idle" if task.idle else "task", task.name or f"pid {task.pid}", (task.pid,)))
    if context.idle_state is not None:
        stack.append(
            (
                "idle",
                f"idle state {context.idle_state}" if context.idle_state >= 0 else "idle state",
                (context.idle_state,),
            )
        )
    for frame in context.frames:
        number = f" {frame.key}" if frame.kind == "irq" else ""
        stack.append((frame.kind, f"{frame.kind}{number} {frame.name}".strip(), (frame.key, frame.since_ns)))
    return stack


def _slices(events: list[dict[str, Any]], cpu: int, line: CpuTimeline, after_ns: int) -> int:
    """Add the slices of a CPU that begin after `after_ns`, and return the time of its last event."""
    times = [time for time in line.times_ns if time > after_ns]
    if not times:
        return after_ns
    contexts = line.contexts[len(line.times_ns) - len(times) :]
    opened: list[tuple[tuple[str, str, tuple[object, ...]], int]] = [
        (level, times[0]) for level in _stack(contexts[0])
    ]
    for time, context in zip(times, contexts[1:], strict=True):
        stack = _stack(context) if time != times[-1] else []
        unchanged = next(
            (at for at, (old, new) in enumerate(zip(opened, stack, strict=False)) if old[0] != new),
            min(len(opened), len(stack)),
        )
        for (category, name, _), since in reversed(opened[unchanged:]):
            if time > since:
                slice_ = {
                    "ph": "X",
                    "cat": category,
                    "name": name,
                    "ts": since / 1000,
                    "dur": (time - since) / 1000,
                }
                events.append(slice_ | _place(CPUS, cpu))
        opened[unchanged:] = [(level, time) for level in stack[unchanged:]]
    return times[-1]


OPTION_CLOCK = 4
"""The number of TRACECMD_OPTION_TRACECLOCK."""
_MAGIC = b"\x17\x08\x44tracing6\0"
_MOST_COMM = 15


def trace_dat_file(formats: TraceFormats, moments: Iterable[Mapping[int, list[bytes]]]) -> bytes:
    """Return the file with the raw pages of all moments, each once. Raises RecordError for a damaged page."""
    pages = _each_once(formats, moments)
    cpus = max([formats.line.cpus, *(cpu + 1 for cpu in pages)])
    head = _head(formats, _names(read_pages(formats, pages)))
    size = formats.page.bytes
    # after the head come the offset and size of each CPU's pages, which begin on a page boundary
    begin = -(-(len(head) + 16 * cpus + 4 + len(_options(formats))) // size) * size
    table, data = b"", b""
    for cpu in range(cpus):
        own = b"".join(raw.ljust(size, b"\0") for raw in pages.get(cpu, []))
        table += struct.pack("<QQ", begin + len(data), len(own))
        data += own
    whole = head + struct.pack("<I", cpus) + _options(formats) + table
    return whole.ljust(begin, b"\0") + data


def _each_once(formats: TraceFormats, moments: Iterable[Mapping[int, list[bytes]]]) -> dict[int, list[bytes]]:
    """Return the pages of each CPU in order of time. If moments share a page, the fullest copy counts."""
    known: dict[int, dict[int, tuple[int, bytes]]] = defaultdict(dict)
    for moment in moments:
        for cpu, raws in moment.items():
            for raw in raws:
                page = open_page(raw, formats.page)
                if len(page.data) > known[cpu].get(page.time_ns, (-1, b""))[0]:
                    known[cpu][page.time_ns] = (len(page.data), raw)
    return {cpu: [raw for _, (_, raw) in sorted(pages.items())] for cpu, pages in sorted(known.items())}


def _names(table: EventTable) -> dict[int, str]:
    """Return the name of every task in an event, by pid."""
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
    """Return the file's head, up to the number of CPUs."""
    parts = [_MAGIC, struct.pack("<BBI", 0, formats.page.commit.size, formats.page.bytes)]
    parts += [
        b"header_page\0",
        _sized(formats.line.header_page),
        b"header_event\0",
        _sized(formats.line.header_event),
    ]
    systems: dict[str, list[str]] = defaultdict(list)
    for path, text in formats.line.events.items():
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
    clock = f"[{formats.line.clock}]".encode() + b"\0"
    return (
        b"options  \0"
        + struct.pack("<HI", OPTION_CLOCK, len(clock))
        + clock
        + struct.pack("<H", 0)
        + b"flyrecord\0"
    )


PERFETTO = Exporter(make=perfetto)
TRACE_DAT = Exporter(make=trace_dat, binary=True)
"""The formats of traces. A trace covers the only explained step, with the kernel's events around its largest
latencies.
"""
