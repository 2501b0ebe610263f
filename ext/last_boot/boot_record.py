# SPDX-License-Identifier: MIT
"""Makes a record of how a boot ended. `rtgauge show --why` explains the last 100 ms of the threads that
waited at the end, and of those that had the CPUs.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rtgauge.errors import InputError
from rtgauge.probe.watch import WatchParameters
from rtgauge.record.explain_report import explain_report
from rtgauge.record.facts import Facts
from rtgauge.record.model import LoadReport, Step, StepKey
from rtgauge.record.moments import MomentWriter
from rtgauge.record.stream import SeriesLine, StreamResult, SymbolsLine
from rtgauge.record.summary import summarise_step
from rtgauge.record.windows import Windows
from rtgauge.record.writer import RecordWriter, wall_time
from rtgauge.target.address import LOCAL
from rtgauge_ext.last_boot.boot_report import ENDED
from rtgauge_ext.last_boot.ending import WINDOW_NS, BootEnd
from rtgauge_ext.last_boot.kept_boot import KeptBoot

MOST_THREADS, MOST_TRIGGER_TEXT = 8, 1000
STEP = "01-watch"
PAGE_TIME = struct.Struct("<Q")
"""The first field of a page: the time of its first event (ns)."""


class EndedThread(NamedTuple):
    """A thread whose last 100 ms are explained."""

    name: str
    pid: int
    cpu: int


def threads_at_end(end: BootEnd) -> list[EndedThread]:
    """Return the threads that waited at the end, as `BootEnd` sorts them, then those that had a CPU."""
    waited = [EndedThread(wait.task, wait.pid, wait.cpu or 0) for wait in end.waiting]
    ran = [EndedThread(cpu.task, cpu.pid, cpu.cpu) for cpu in end.cpus if cpu.pid is not None]
    return list({thread.pid: thread for thread in reversed([*waited, *ran])}.values())[::-1][:MOST_THREADS]


def pages_of_window(pages: Mapping[int, Sequence[bytes]], from_ns: int, end_ns: int) -> dict[str, list[str]]:
    """Return the pages of each CPU from the last one that begins before `from_ns`, in base64."""
    chosen: dict[str, list[str]] = {}
    for cpu, raws in pages.items():
        times = [int(PAGE_TIME.unpack_from(raw)[0]) for raw in raws]
        first = max((at for at, time_ns in enumerate(times) if time_ns <= from_ns), default=0)
        own = [raw for raw, time_ns in zip(raws[first:], times[first:], strict=True) if time_ns <= end_ns]
        chosen[str(cpu)] = [b64encode(raw).decode() for raw in own]
    return chosen


def trigger_words(end: BootEnd) -> str:
    """Return the trigger, such as "end of the boot (the kernel crashed: sysrq triggered crash)"."""
    why = f": {end.why}" if end.why else ""
    return f"end of the boot ({ENDED[end.ending]}{why})"[:MOST_TRIGGER_TEXT]


def _moment(number: int, thread: EndedThread, end: BootEnd, pages: dict[str, list[str]]) -> bytes:
    line: dict[str, object] = {
        "type": "moment",
        "number": number,
        "cpu": thread.cpu,
        "series": number - 1,
        "thread": thread.pid,
        "kind": "triggered",
        "trigger": trigger_words(end),
        "release_ns": end.end_ns - WINDOW_NS,
        "end_ns": end.end_ns,
        "latency_ns": WINDOW_NS,
        "copy_ns": 0,
        "lost": {},
        "pages": pages,
        "left_out": [],
    }
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def make_boot_record(
    kept: KeptBoot, end: BootEnd, facts: Facts | None, out: Path, command: list[str]
) -> Path:
    """Make a record in the folder `out`; return its folder. `facts`: of the machine now.

    Raises InputError if no thread is known, and the errors of RecordWriter.
    """
    threads = threads_at_end(end)
    if not threads:
        raise InputError("the last boot has no thread whose time could be explained: all CPUs were idle")
    ended_ns = end.ended_realtime_ns or kept.reading.booted_realtime_ns
    key = StepKey(
        probe="watch",
        parameters=WatchParameters.model_validate({"pid": threads[0].pid, "explain": True}),
        load="idle",
        deployment="as-is",
        targets={"self": LOCAL},
        repeat=0,
    )
    plan = {"name": "last-boot"}
    with RecordWriter.at_once(out, LOCAL, facts, [key], command=command, plan=plan) as writer:
        writer.commit_step(_step(kept, end, key, threads, ended_ns, writer.step_folder(STEP)), Windows.of([]))
    return writer.path


def _step(
    kept: KeptBoot, end: BootEnd, key: StepKey, threads: list[EndedThread], ended_ns: int, place: Path
) -> Step:
    moments = MomentWriter(place, kept.formats)
    pages = pages_of_window(kept.pages, end.end_ns - WINDOW_NS, end.last_ns)
    for number, thread in enumerate(threads, start=1):
        moments.add(_moment(number, thread, end, pages))
    moments.add_symbols(SymbolsLine(type="symbols", symbols=kept.symbol_names))
    moments.finish()
    series = [
        SeriesLine(type="series", series=number, metric="latency", unit="ns", labels={"task": thread.name})
        for number, thread in enumerate(threads)
    ]
    summary = summarise_step(Windows.of([]), series)
    result = StreamResult()
    result.trace_formats = kept.formats
    explained = explain_report(result)
    assert explained is not None  # noqa: S101 - it has formats
    return Step(
        id=STEP,
        key=key,
        tool="rtgauge-engine",
        boot_id=None if kept.armed is None else kept.armed.boot_id,
        started=wall_time(ended_ns - end.end_ns),
        ended=wall_time(ended_ns),
        start_ns=0,
        end_ns=end.end_ns,
        end_reason=end.ending,
        parameters={"pid": threads[0].pid},
        cpus=[cpu.cpu for cpu in end.cpus],
        load=LoadReport(name="idle"),
        series=summary.series,
        total=summary.total,
        outliers=[],
        explain=explained.model_copy(update={"moments": len(threads)}),
        marks=summary.marks,
    )
