# SPDX-License-Identifier: MIT
"""The record's folder: whole or absent steps, resuming, and one clear line where it cannot be written."""

from __future__ import annotations

import errno
import os
import re
from datetime import UTC, datetime

import pytest
from polars.testing import assert_frame_equal

from rtgauge.errors import InputError, MeasureError, RecordError
from rtgauge.record.facts import Facts, Kernel
from rtgauge.record.reader import Record
from rtgauge.record.windows_file import table_of
from rtgauge.record.writer import RecordWriter, clean_name
from tests.unit.records import run, step

NOW = datetime(2026, 11, 21, 10, 3, 22, tzinfo=UTC)


def begin(tmp_path) -> RecordWriter:
    writer = RecordWriter.create(tmp_path / "runs", host="my host/1", name="quick", now=NOW)
    writer.write_run(run(writer.id))
    return writer


def test_a_finished_record_reads_back(tmp_path):
    writer = begin(tmp_path)
    assert re.fullmatch(r"2026-11-21T10-03-22Z-my-host-1-quick-[0-9a-f]{4}\.partial", writer.path.name)
    recorded, windows = step([[100, 200, 300], [5]])
    folder = writer.step_folder(recorded.id)
    (folder / "stream.ndjson").write_text("{}\n")
    writer.commit_step(recorded, windows)
    writer.write_system("ssh://root@board:22", Facts(kernel=Kernel(release="6.1")))
    place = writer.finish("complete")
    assert place.name == writer.id
    record = Record.open(place)
    assert (record.run.state, record.run.steps, record.steps) == ("complete", [recorded.id], [recorded])
    assert record.run.ended is not None
    assert_frame_equal(table_of(record.windows(recorded)), table_of(windows))
    assert record.has(recorded, "stream.ndjson")
    assert list(record.systems.values()) == [Facts(kernel=Kernel(release="6.1"))]
    assert not [p for p in place.rglob("*") if p.name.endswith((".tmp", ".partial"))]


@pytest.mark.parametrize("name", ["x*", "x?", "x[yz]", "e[1]", "**"])
def test_a_folder_whose_name_is_a_pattern_is_that_folder_only(tmp_path, name):
    """The windows of the folder beside it, which the pattern would match, are not read."""
    recorded, windows = step([100, 200])
    for folder, of, table in ((name, recorded, windows), ("xy", *step([1])), ("e1", *step([1]))):
        (tmp_path / folder).mkdir()
        writer = RecordWriter.create(tmp_path / folder, host="h", name="n", now=NOW)
        writer.write_run(run(writer.id))
        writer.commit_step(of, table)
        writer.finish("complete").rename(tmp_path / folder / "record")
    assert_frame_equal(table_of(Record.open(tmp_path / name / "record").windows(recorded)), table_of(windows))


def test_a_record_that_is_being_written_can_be_read(tmp_path):
    writer = begin(tmp_path)
    recorded, windows = step([1, 2])
    writer.commit_step(recorded, windows)
    writer.step_folder("02-wakeup-cpu")
    assert [s.id for s in Record.open(writer.path).steps] == [recorded.id]


def test_resume_keeps_finished_steps_and_removes_halves(tmp_path):
    writer = begin(tmp_path)
    recorded, windows = step([1, 2])
    place = writer.commit_step(recorded, windows)
    half = writer.step_folder("02-wakeup-cpu")
    (half / "stream.ndjson").write_text("half")
    before = {p.name: p.read_bytes() for p in place.iterdir()}
    again = RecordWriter.open_partial(writer.path)
    assert again.run.steps == [recorded.id]
    assert not list(half.iterdir())
    assert [p.name for p in place.parent.iterdir()] == [place.name]
    assert {p.name: p.read_bytes() for p in place.iterdir()} == before
    two, windows = step([3], name="02-wakeup-cpu")
    again.commit_step(two, windows)
    assert Record.open(again.finish("complete")).run.steps == [recorded.id, two.id]


def test_a_step_not_yet_named_in_run_json_is_kept(tmp_path):
    """The end came between the two."""
    writer = begin(tmp_path)
    recorded, windows = step([1, 2])
    writer.commit_step(recorded, windows)
    writer.write_run(run(writer.id))
    assert RecordWriter.open_partial(writer.path).run.steps == [recorded.id]


def test_a_complete_record_is_resumed_only_on_request(tmp_path):
    writer = begin(tmp_path)
    place = writer.finish("interrupted")
    again = RecordWriter.open_partial(place)
    assert again.path.name.endswith(".partial")
    assert again.run.state == "partial"
    complete = again.finish("complete")
    with pytest.raises(InputError, match="nothing to resume"):
        RecordWriter.open_partial(complete)
    assert RecordWriter.open_partial(complete, complete=True).run.state == "partial"


def test_what_is_no_record_cannot_be_resumed(tmp_path):
    with pytest.raises(RecordError, match=r"run\.json is missing"):
        RecordWriter.open_partial(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RecordError, match="damaged"):
        RecordWriter.open_partial(tmp_path)


def test_a_step_is_not_measured_twice(tmp_path):
    writer = begin(tmp_path)
    recorded, windows = step([1])
    writer.commit_step(recorded, windows)
    with pytest.raises(InputError, match="already"):
        writer.step_folder(recorded.id)
    with pytest.raises(ValueError, match="cannot be the name"):
        writer.step_folder("../../etc")


def test_places_that_are_no_place(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="not a folder"):
        RecordWriter.create(tmp_path / "file", host="h", name="n")
    with pytest.raises(InputError, match="not a folder"):
        RecordWriter.create(tmp_path / "file" / "below", host="h", name="n")
    record = begin(tmp_path).finish("complete")
    with pytest.raises(InputError, match="already a record"):
        RecordWriter.create(record, host="h", name="n")
    # procfs takes no new folder, from root neither.
    with pytest.raises(InputError, match="cannot be written"):
        RecordWriter.create(type(tmp_path)("/proc/rtgauge"), host="h", name="n")


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_full_disk_leaves_the_finished_steps(tmp_path, monkeypatch, call):
    writer = begin(tmp_path)
    recorded, windows = step([1])
    writer.commit_step(recorded, windows)
    two, windows = step([1], name="02-wakeup-cpu")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(MeasureError, match=r"disk is full: .*results so far") as error:
            writer.commit_step(two, windows)
    assert "\n" not in str(error.value)
    assert [s.id for s in Record.open(writer.path).steps] == [recorded.id]


def test_an_unwritable_run_json_stays_the_old_one(tmp_path, monkeypatch):
    writer = begin(tmp_path)
    old = (writer.path / "run.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(MeasureError, match="disk is full"):
            writer.write_run(run(writer.id, steps=["x"]))
    assert (writer.path / "run.json").read_bytes() == old
    assert sorted(p.name for p in writer.path.iterdir()) == ["run.json", "steps", "targets"]


def test_names_are_made_safe():
    assert clean_name("../../etc/passwd") == "etc-passwd"
    assert clean_name("") == clean_name("日本") == "unnamed"
    assert len(clean_name("x" * 1000)) == 40


def test_the_console_of_a_guest_is_kept_session_by_session(tmp_path):
    writer = begin(tmp_path)
    file = writer.write_console("lab:own", b"one\n")
    assert file == writer.path / "targets/lab-own/console.log"
    # it ran on
    writer.write_console("lab:own", b"one\ntwo\n")
    assert file.read_bytes() == b"one\ntwo\n"
    # it was booted again
    writer.write_console("lab:own", b"three\n")
    assert file.read_bytes() == b"one\ntwo\n\n--- in a later session\nthree\n"
    writer.write_console("lab:own", b"x" * (3 << 20))
    writer.write_console("lab:own", b"y")
    assert file.read_bytes().endswith(b"x\n--- in a later session\ny")
    assert len(file.read_bytes()) < (1 << 20) + 100
