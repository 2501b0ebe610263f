# SPDX-License-Identifier: MIT
"""Reading formats and pages of the kernel's trace ring."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtgauge.errors import RecordError
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import MISSED_EVENTS, MISSED_STORED, read_moment, read_pages
from tests.unit.explain.trace.made_pages import (
    HEADER_EVENT,
    HEADER_PAGE,
    WAKING,
    encoded,
    event,
    extend,
    formats,
    handler,
    page,
    waking,
)

FORMATS = TraceFormats.read(formats())


def test_events_of_all_cpus_come_in_time_order() -> None:
    first = page(1_000, event(0, waking(5)), event(500, handler(31, b"virtio-net")))
    table = read_pages(FORMATS, {0: [first], 1: [page(1_200, event(0, waking(6)))]})
    assert [(known.time_ns, known.cpu, known.name) for known in table.events] == [
        (1000, 0, "sched_waking"),
        (1200, 1, "sched_waking"),
        (1500, 0, "irq_handler_entry"),
    ]
    assert table.events[0].values == {"comm": "task", "pid": 5, "prio": 19, "target_cpu": 1}
    assert table.events[2].values == {"irq": 31, "name": "virtio-net"}
    assert (table.events[0].pid, table.events[0].flags, table.events[0].preempt_count) == (77, 1, 2)
    assert table.cpus == (0, 1)


def test_extensions_absolute_times_and_padding_move_the_clock() -> None:
    deleted = struct.pack("<II", 29 | 7 << 5, 12) + b"x" * 8
    raw = page(
        100,
        event(1, waking(1)),
        extend(1 << 40),
        event(2, waking(2)),
        deleted,
        event(3, waking(3)),
        extend(1 << 41, 31),
        event(4, waking(4)),
        b"\x1d\0\0\0",
    )
    times = [known.time_ns for known in read_pages(FORMATS, {0: [raw]}).events]
    assert times == [101, 103 + (1 << 40), 113 + (1 << 40), 4 + (1 << 41)]


def test_an_absolute_time_takes_its_upper_bits_from_the_page() -> None:
    high = 3 << 60
    raw = page(high, extend(77, 31), event(0, waking(4)))
    assert [known.time_ns for known in read_pages(FORMATS, {0: [raw]}).events] == [high | 77]


def test_long_records_have_their_length_behind_the_header() -> None:
    raw = page(0, event(9, handler(1, b"n" * 200)))
    assert read_pages(FORMATS, {0: [raw]}).events[0].values["name"] == "n" * 200


def test_lost_events_are_reported_with_place_and_count() -> None:
    before = page(100, event(5, waking(1)))
    after = page(900, event(0, waking(2)), commit=MISSED_EVENTS | MISSED_STORED, tail=struct.pack("<Q", 17))
    table = read_pages(FORMATS, {1: [before, after]})
    assert [(lost.cpu, lost.after_ns, lost.until_ns, lost.count) for lost in table.lost] == [
        (1, 105, 900, 17)
    ]
    assert len(table.events) == 2


def test_a_stack_has_as_many_addresses_as_it_has() -> None:
    head = (
        WAKING.partition("\tfield:char comm")[0].replace("sched_waking", "kernel_stack").replace("371", "4")
    )
    text = (
        f"{head}\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:unsigned long "
        "caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\nprint fmt: x\n"
    )
    known = TraceFormats.read(formats(events={"ftrace/kernel_stack": text}))
    for count in (0, 2, 11):
        stack = struct.pack(f"<HBBiiI{count}Q", 4, 0, 0, 1, count, 0, *range(0xA0, 0xA0 + count))
        (event_,) = read_pages(known, {0: [page(5, event(0, stack))]}).events
        assert event_.text("caller") == " ".join(f"{0xA0 + at:x}" for at in range(count))


def test_events_of_unknown_numbers_are_left_out() -> None:
    unknown = struct.pack("<HBBi", 9, 0, 0, 1)
    assert len(read_pages(FORMATS, {0: [page(0, event(0, unknown), event(0, waking(1)))]}).events) == 1


@pytest.mark.parametrize(
    "damage",
    [
        {"events": {}},
        {"events": {"sched/sched_waking": "nothing"}},
        {"events": {"sched/other": WAKING}},
        {"header_page": "field: u64 timestamp;"},
        {"header_event": HEADER_EVENT.replace("29", "3")},
        {"header_page": HEADER_PAGE.replace("offset:16", "offset:9000")},
        {"page_bytes": 0},
        {"cpus": -1},
        {"clock": None},
        {"symbols": {"not a number": "x"}},
    ],
)
def test_damaged_formats_are_refused_in_one_line(damage: dict[str, object]) -> None:
    with pytest.raises(RecordError) as caught:
        TraceFormats.read(formats(**damage))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        b"short",
        page(0, b"", commit=5000)[:100],
        page(0, struct.pack("<I", 28) + b"cut"),
        page(0, struct.pack("<II", 0, 9000)),
        page(0, struct.pack("<II", 0, 1)),
    ],
)
def test_a_damaged_page_is_refused(raw: bytes) -> None:
    with pytest.raises(RecordError, match="page of the trace"):
        read_pages(FORMATS, {0: [raw]})


def test_damaged_pages_of_a_moment_are_refused() -> None:
    for pages in (None, {"x": []}, {"0": "text"}, {"0": ["*"]}, {"-1": []}, {"0": [""] * 20_000}):
        with pytest.raises(RecordError):
            read_moment(FORMATS, _moment(pages))


def _moment(pages: object) -> dict[str, object]:
    return {
        "type": "moment",
        "copy_ns": 1,
        "lost": {},
        "left_out": [],
        "number": 1,
        "cpu": 0,
        "release_ns": 5,
        "end_ns": 9,
        "latency_ns": 4,
        "kind": "maximum",
        "series": 0,
        "thread": 7,
        "pages": pages,
    }


def test_a_moment_has_its_numbers_and_events() -> None:
    moment = read_moment(FORMATS, _moment(encoded(cpu0=[page(5, event(0, waking(7)))])))
    assert (moment.thread, moment.latency_ns, len(moment.table.events)) == (7, 4, 1)


@pytest.mark.parametrize(
    "damage",
    [
        {"end_ns": 1},
        {"thread": "7"},
        {"kind": 5},
        {"cpu": -3},
        {"end_ns": 1 << 62},
        {"release_ns": None},
        {"number": True},
    ],
)
def test_a_damaged_moment_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(RecordError):
        read_moment(FORMATS, _moment(encoded()) | damage)


@given(
    st.lists(
        st.binary(max_size=200)
        | st.builds(
            lambda time, data: struct.pack("<QQ", time, len(data)) + data,
            st.integers(0, 2**64 - 1),
            st.binary(max_size=300),
        ),
        max_size=3,
    )
)
def test_any_bytes_are_read_or_refused(raws: list[bytes]) -> None:
    try:
        table = read_pages(FORMATS, {0: raws})
    except RecordError:
        return
    assert len(table.events) <= sum(map(len, raws)) // 4


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    ),
    st.sampled_from([*formats(), "symbols"]),
)
def test_any_value_in_the_formats_is_read_or_refused(value: object, key: str) -> None:
    try:
        TraceFormats.read(formats(**{key: value}))
    except RecordError as error:
        assert "\n" not in str(error)


@given(st.integers(0, len(WAKING)), st.integers(0, 127))
def test_a_format_with_one_character_changed_is_read_or_refused(place: int, code: int) -> None:
    text = WAKING[:place] + chr(code) + WAKING[place + 1 :]
    try:
        read = TraceFormats.read(formats(events={"sched/sched_waking": text}))
        read_pages(read, {0: [page(0, event(0, waking(1)))]})
    except RecordError as error:
        assert "\n" not in str(error)
