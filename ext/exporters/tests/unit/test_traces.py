# SPDX-License-Identifier: MIT
"""Raw traces: trace.dat as trace-cmd reads it, and the slices of the trace event format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.explained import add_moments, real_formats, real_moment
from tests.support.records import Shape, write_record
from tests.support.traces import lines_of, slices
from tests.unit.explain.made_events import HIGHER, IDLE, MEASURED, Story
from tests.unit.explain.trace.made_pages import event, extend, formats, handler, page, waking

from rtgauge.errors import InputError
from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.exporters.record_export import export
from rtgauge.record.reader import Record
from rtgauge_ext.exporters.moment_traces import perfetto_json, trace_dat_file

SYMBOLS = {"0xffffffff81000000": "hrtimer_wakeup"}


def test_trace_cmd_reads_every_event_at_its_time(tmp_path: Path) -> None:
    known = TraceFormats.read(formats(symbols=SYMBOLS))
    first = [
        page(1_000_000_000, event(0, waking(5)), event(700, handler(31, b"virtio-net"))),
        page(3_000_000_000, extend(1 << 28), event(1, waking(6))),
    ]
    lines = lines_of(
        trace_dat_file(known, [{0: first, 1: [page(1_000_000_350, event(0, waking(7)))]}]), tmp_path
    )
    actual = [
        re.findall(r"\[(\d+)\]\s+([\d.]+): (\w+):\s+(?:irq=|.*?(?=pid|task))(.*)", line)[0] for line in lines
    ]
    assert [(cpu, time, name) for cpu, time, name, _ in actual] == [
        ("000", "1.000000000", "sched_waking"),
        ("001", "1.000000350", "sched_waking"),
        ("000", "1.000000700", "irq_handler_entry"),
        ("000", "3.268435457", "sched_waking"),
    ]
    assert actual[2][3] == "31 name=virtio-net"


def test_a_page_that_two_moments_have_is_written_once(tmp_path: Path) -> None:
    known = TraceFormats.read(formats())
    early, late = page(500, event(0, waking(1))), page(500, event(0, waking(1)), event(9, waking(2)))
    lines = lines_of(trace_dat_file(known, [{0: [early]}, {0: [late]}, {0: [early]}]), tmp_path)
    assert len(lines) == 2


def test_a_moment_without_pages_is_an_empty_trace(tmp_path: Path) -> None:
    assert lines_of(trace_dat_file(TraceFormats.read(formats()), [{0: [], 1: []}]), tmp_path) == []


def test_slices_nest_and_the_release_and_the_wake_up_are_marked() -> None:
    story = (
        Story()
        .switch(-500, 1, MEASURED, HIGHER, state=1)
        .at(-300, 0, "cpu_idle", state=1)
        .at(50, 0, "cpu_idle", state=0xFFFF_FFFF)
    )
    story.timer(2, 1).at(50, 1, "irq_handler_entry", irq=9, name="disk").at(55, 1, "softirq_entry", vec=3).at(
        60, 1, "softirq_exit", vec=3
    )
    story.at(80, 1, "irq_handler_exit", irq=9).switch(300, 1, HIGHER, MEASURED, state=1).switch(
        400, 1, MEASURED, IDLE, state=1
    )
    document = json.loads(perfetto_json(TraceFormats.read(formats()), [story.moment(301)]))
    lanes = slices(document)
    base = 1_000_000.0
    cpu1 = {(round(start - base, 3), round(end - base, 3), name) for start, end, name in lanes[1_000_001]}
    assert {
        (-500.0, 300.0, "hog"),
        (50.0, 80.0, "irq 9 disk"),
        (55.0, 60.0, "softirq NET_RX"),
        (300.0, 400.0, "measured"),
        (2.0, 6.0, "vector local timer"),
    } <= cpu1
    assert (-300.0, 50.0, "idle state 1") in {
        (round(start - base, 3), round(end - base, 3), name) for start, end, name in lanes[1_000_000]
    }
    instants = {part["name"]: part["ts"] - base for part in document["traceEvents"] if part["ph"] == "i"}
    assert instants == {"release": 0.0, "wake-up": pytest.approx(4)}
    (latency,) = lanes[2_000_000]
    assert latency == (base, base + 301, "latency 301.000 us")
    names = {
        (part["pid"], part["tid"]): part["args"]["name"]
        for part in document["traceEvents"]
        if part["name"] == "thread_name"
    }
    assert names == {(1, 1_000_000): "CPU 0", (1, 1_000_001): "CPU 1", (2, 2_000_000): "series 0"}


def test_events_of_two_moments_are_drawn_once() -> None:
    story = (
        Story()
        .switch(-500, 1, MEASURED, HIGHER, state=1)
        .timer(2, 1)
        .switch(300, 1, HIGHER, MEASURED, state=1)
    )
    twice = [story.moment(301), story.moment(302)]
    once = slices(json.loads(perfetto_json(TraceFormats.read(formats()), twice[:1])))
    assert (
        slices(json.loads(perfetto_json(TraceFormats.read(formats()), twice)))[1_000_001] == once[1_000_001]
    )


def test_raw_traces_are_exported_of_one_step(tmp_path: Path) -> None:
    path = write_record(tmp_path, Shape(loads=("idle", "cpu"), seconds=2, marks=False))
    for each in json.loads((path / "run.json").read_text())["steps"]:
        add_moments(path, each, real_formats(), [{"type": "moment", **real_moment()}])
    record = Record.open(path)
    out = tmp_path / "trace.dat"
    with pytest.raises(InputError, match=r"traces of .*--step"):
        export(record, "trace.dat", out)
    recorded = Record(record.path, record.run, record.steps[:1], record.systems)
    with pytest.raises(InputError, match=r"binary.* -o FILE"):
        export(recorded, "trace.dat", None)
    export(recorded, "trace.dat", out)
    (explained,) = explained_steps(recorded)
    table = explained.explanations[0].moment.table
    assert len(lines_of(out.read_bytes(), tmp_path)) == len(table.events) == 247
    text = export(recorded, "perfetto", None)
    assert text is not None
    assert len(slices(json.loads(text))) == 3


def test_a_record_without_moments_has_no_trace(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, Shape(loads=("idle",), seconds=2)))
    with pytest.raises(InputError, match=r"trace.* --explain"):
        export(record, "perfetto", None)
