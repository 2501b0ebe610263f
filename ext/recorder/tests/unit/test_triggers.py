# SPDX-License-Identifier: MIT
"""What pulls a trigger, and that each keeps the events around it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ext.recorder.tests.driven import (
    SECOND,
    DrivenClock,
    begin,
    figures_of,
    folder_of,
    moment,
    recording_of,
    window,
)
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge_ext.recorder.folder import RecorderFolder
from rtgauge_ext.recorder.program import Program
from rtgauge_ext.recorder.record import make_record
from rtgauge_ext.recorder.recorder_report import triggers_table
from rtgauge_ext.recorder.thresholds import Threshold
from rtgauge_ext.recorder.triggers import LONGEST_NS, MOST_TOGETHER, TOGETHER_NS, Requests, Trigger

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge_ext.recorder.recording import Taker

pytestmark = pytest.mark.usefixtures("unsynced")


def answer(taker: Taker, clock: DrivenClock, reported: str, culprit: str = "task hog") -> None:
    """Take what an engine answers to a request."""
    word, time, thread, number = reported.split()
    assert word == "moment"
    line = json.loads(moment(clock, culprit, 100_000_000, size=2_000))
    line |= {"kind": "triggered", "request": int(number), "thread": int(thread), "end_ns": int(time)}
    taker.take(json.dumps(line, separators=(",", ":")).encode())


@pytest.mark.parametrize("apart_ns", [20_000, pytest.param(70_000_000, marks=pytest.mark.slow)])
def test_each_of_1000_triggers_is_kept_with_its_events(tmp_path: Path, apart_ns: int) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    reported: list[Trigger] = []
    recording = recording_of(folder, clock, on_trigger=reported.append)
    taker = begin(recording, clock)
    reported_text: list[str] = []
    sent = [Trigger("message", f"number {number}") for number in range(1000)]
    for trigger in sent:
        clock.pass_ns(apart_ns)
        recording.ask(trigger, lambda word: reported_text.append(word) is None)
        if len(reported_text) == 3:  # the engine answers later
            answer(taker, clock, reported_text.pop(0))
    for word in reported_text:
        answer(taker, clock, word)
    recording.forget_requests(all_of=True)
    recording.name_more()
    assert reported == sent
    folder.close()
    again = RecorderFolder.open(tmp_path / "folder")
    heads = [again.moment(number).head for number in sorted(again.keeping.moments)]
    assert [detail for head in heads for detail in head.details] == [each.detail for each in sent]
    assert {name for head in heads for name in head.triggers} == {"message"}
    assert {head.culprit for head in heads} == {"task hog"}
    assert recording.counts["trigger_message"] == 1000
    assert not recording.counts["triggers_without_events"]
    assert len(heads) == (1000 if apart_ns > TOGETHER_NS else 1)


def test_a_trigger_without_events_is_counted(tmp_path: Path) -> None:
    clock = DrivenClock()
    recording = recording_of(folder_of(tmp_path / "folder"), clock)
    recording.ask(Trigger("file", "no engine runs"), lambda _: False)
    recording.ask(Trigger("file", "the engine does not answer"), lambda _: True)
    clock.pass_ns(LONGEST_NS + 1)
    recording.forget_requests()
    assert recording.counts["triggers_without_events"] == 2
    assert recording.counts["trigger_file"] == 2


def test_too_many_triggers_at_once_share_no_room() -> None:
    requests = Requests()
    kept = [requests.ask(Trigger("message", str(n)), lambda _: True, 1) for n in range(MOST_TOGETHER + 5)]
    assert kept.count(True) == MOST_TOGETHER
    assert len(requests.answered(1)) == MOST_TOGETHER
    assert requests.answered(1) == []


def test_the_end_of_the_program_keeps_the_events_before_it(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    answer(taker, clock, f"moment {clock.now.monotonic_ns} 7 0", "blocked in exit")
    recording.ended(taker, Trigger("ended", "the program was ended by SIGSEGV"))
    recording.name_more()
    head = folder.moment(1).head
    assert (head.metric, head.triggers, head.culprit) == ("trigger", ["ended"], "blocked in exit")
    recording.ended(begin(recording, clock), Trigger("ended", "the engine did not see it"))
    assert recording.counts["triggers_without_events"] == 1


def test_a_storm_of_triggers_pushes_no_latency_out(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder", keep=2 << 20)
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    taker.take(moment(clock, "irq 31", 300_000, size=2_000))
    for number in range(300):
        clock.pass_ns(TOGETHER_NS + 1)
        recording.ask(Trigger("message", str(number)), lambda word: answer(taker, clock, word) is None)
        answer(taker, clock, f"moment {clock.now.monotonic_ns} 0 {number + 1}")
    assert folder.bytes <= 2 << 20
    kept = [folder.moment(number).head for number in sorted(folder.keeping.moments)]
    assert kept[0].culprit == "irq 31"
    assert kept[-1].details == ["299"], "the newest triggers stay"
    (row,) = triggers_table(folder).rows[-1:]
    assert row[2:4] == ["message", "299"]


def test_a_threshold_triggers_once_until_the_value_was_below(tmp_path: Path) -> None:
    file = tmp_path / "temperature"
    threshold = Threshold.parse(f"{file}>80.5")
    actual: list[bool] = []
    for text in ("79", "81\n", "82", "nothing", "80.5", "90 degrees"):
        file.write_text(text)
        actual.append(threshold.look() is not None)
    assert actual == [False, True, False, False, False, True]
    file.unlink()
    assert threshold.look() is None


def test_a_counter_triggers_each_time_it_has_grown(tmp_path: Path) -> None:
    file = tmp_path / "rx_errors"
    threshold = Threshold.parse(f"{file}+2")
    actual: list[str] = []
    for number in (100, 101, 102, 102, 110, 0, 1, 2):  # it begins anew at 0
        file.write_text(f"{number}\n")
        trigger = threshold.look()
        actual.append("" if trigger is None else trigger.detail.partition(" has ")[2])
    assert actual == [
        "",
        "",
        "grown from 100 to 102",
        "",
        "grown from 102 to 110",
        "",
        "",
        "grown from 0 to 2",
    ]


def test_a_file_that_blocks_does_not_stop_the_recorder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert Threshold.parse(f"{tmp_path / 'fifo'}>1").look() is None


@pytest.mark.parametrize("text", ["relative>1", "/a", "/a>", "/a>x", "/a+0", "/a=1"])
def test_a_wrong_threshold_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--trigger-file"):
        Threshold.parse(text)


def test_a_line_of_another_users_program_pulls_no_trigger(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from rtgauge_ext.recorder import markers

    monkeypatch.setattr(markers, "PROC", tmp_path)
    for thread, group, user in ((8, 7, 1000), (9, 9, 1000), (10, 10, 0)):
        (tmp_path / str(thread)).mkdir()
        (tmp_path / str(thread) / "status").write_text(f"Name:\tx\nTgid:\t{group}\nUid:\t{user}\t{user}\n")
    program = Program(7, 1)
    assert markers.may_trigger(8, program, set()), "a thread of the program"
    assert not markers.may_trigger(9, program, set()), "somebody else"
    assert markers.may_trigger(10, program, set()), "root"
    assert not markers.may_trigger(11, program, set()), "nobody knows who it was"
    assert markers.may_trigger(11, program, {11}), "a thread of the program that has ended"


def test_the_record_names_each_trigger(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    clock.pass_ns(61 * SECOND)
    taker.take(window(clock, 61 * SECOND, figures_of(np.full(10, 5_000))))
    recording.ask(Trigger("message", "torque limit 7"), lambda word: answer(taker, clock, word) is None)
    answer(taker, clock, f"moment {clock.now.monotonic_ns} 0 1")
    recording.end(taker)
    folder.close()
    opened = RecorderFolder.open(tmp_path / "folder")
    record = Record.open(make_record(opened, tmp_path / "runs", ["rtgauge", "recorder"]))
    assert not [outlier for step in record.steps for outlier in step.outliers], (
        "a trigger does not count as a latency"
    )
