# SPDX-License-Identifier: MIT
"""What the engine prints of a last boot: a crash and a hang of a guest (Linux 6.12, two CPUs), and damaged output."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.messages import missing

from rtgauge.errors import MeasureError, RecordError
from rtgauge_ext.last_boot.boot_report import conclusion
from rtgauge_ext.last_boot.ending import BootEnd, boot_end
from rtgauge_ext.last_boot.kept_boot import RingState, parse

DATA = Path(__file__).parent.parent / "data"
STATE = {
    "type": "last_boot_state", "version": 1, "instance": "boot_map", "boot_id": "now", "armed": False,
    "recorded_before": False, "events": 0, "kept": "1.ndjson",
}  # fmt: skip


@cache
def output(name: str) -> bytes:
    """The verb's output after this ending."""
    kept = gzip.decompress((DATA / f"{name}.ndjson.gz").read_bytes())
    return json.dumps(STATE).encode() + b"\n" + kept


def end_of(name: str) -> BootEnd:
    _, kept = parse(output(name))
    assert kept is not None
    assert kept.damaged == 0
    end = boot_end(kept, kept.reading.read_boot_id)
    assert end is not None
    return end


def test_a_crash_is_read_with_its_reason_and_what_each_cpu_did() -> None:
    end = end_of("crash")
    assert (end.ending, end.why, end.doubts) == ("crash", "sysrq triggered crash", [])
    assert [cpu.cpu for cpu in end.cpus] == [0, 1]
    assert [cpu.task for cpu in end.cpus if not cpu.idle] == ["sh"]
    assert end.messages[0].text == "sysrq: Trigger a crash"
    assert end.end_ns < end.last_ns


def test_a_cpu_hung_with_interrupts_off_is_named_after_a_reset() -> None:
    end = end_of("hang")
    assert (end.ending, [cpu.task for cpu in end.hung]) == ("hang", ["taskset"])
    assert "it hung there" in conclusion(end)
    assert "task taskset" in conclusion(end)


def test_a_page_that_was_being_written_is_left_out() -> None:
    lines = output("crash").split(b"\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(b'{"type":"ring"'))
    ring = json.loads(lines[at])
    whole = len(ring["pages"])
    ring["pages"][0] = ring["pages"][0][:40]
    lines[at] = json.dumps(ring).encode()
    _, kept = parse(b"\n".join(lines))
    assert whole > 1
    assert kept is not None
    assert kept.damaged == 1
    assert kept.table.events


def test_a_cpu_whose_ring_did_not_survive_is_named() -> None:
    lines = output("crash").split(b"\n")
    at = next(number for number, line in enumerate(lines) if line.startswith(b'{"type":"ring","cpu":0'))
    lines[at] = json.dumps(json.loads(lines[at]) | {"pages": [], "last_ns": 0}).encode()
    _, kept = parse(b"\n".join(lines))
    assert kept is not None
    end = boot_end(kept, kept.reading.read_boot_id)
    assert end is not None
    (doubt,) = end.doubts
    assert not missing(doubt, "ring", "CPU 0")


def test_without_a_kept_boot_there_is_only_the_state() -> None:
    state, kept = parse(json.dumps(STATE | {"kept": None}).encode())
    assert isinstance(state, RingState)
    assert kept is None


def test_the_engines_error_names_the_boot_parameters() -> None:
    line = {
        "type": "error", "code": "lacking", "message": "no ring", "status": 3,
        "detail": {"what": "a ring", "remedy": "boot with trace_instance="},
    }  # fmt: skip
    with pytest.raises(MeasureError, match=r"^no ring; boot with trace_instance=$"):
        parse(json.dumps(line).encode())


@given(st.data())
def test_damaged_output_is_refused_or_read(data: st.DataObject) -> None:
    whole = bytearray(output("crash"))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[at] = data.draw(st.integers(0, 255))
        else:
            del whole[at : at + data.draw(st.integers(1, 4096))]
    try:
        _, kept = parse(bytes(whole))
    except (MeasureError, RecordError):
        return
    if kept is not None:
        boot_end(kept, "now")


@given(st.binary(max_size=200))
def test_any_other_output_is_refused(text: bytes) -> None:
    with pytest.raises((MeasureError, RecordError)):
        parse(text)
