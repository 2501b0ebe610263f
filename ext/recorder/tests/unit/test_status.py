# SPDX-License-Identifier: MIT
"""`rtgauge recorder status`: a recorder's folder while it changes."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.messages import missing

from ext.recorder.tests.driven import SECOND, DrivenClock, begin, folder_of, moment, recording_of
from ext.recorder.tests.unit.test_spool import Writer
from rtgauge import known_extensions
from rtgauge.errors import InputError
from rtgauge.extension import extensions
from rtgauge_ext.recorder import status as status_module
from rtgauge_ext.recorder.folder import RecorderFolder
from rtgauge_ext.recorder.status import NEWEST, RecorderHere, Status, changes, place_of, serve

if TYPE_CHECKING:
    from pathlib import Path


def status_of(path: Path) -> Status:
    return RecorderHere(path).status()


def test_the_status_comes_again_only_when_the_folder_has_changed(tmp_path: Path) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    looks = 0

    def wait(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            clock.pass_ns(SECOND)
            taker.take(moment(clock, "irq 31", 99_000))

    report = changes(RecorderHere(tmp_path / "folder"), wait)
    assert not next(report).tables[0].rows
    assert next(report).tables[0].rows[0][-1] == "irq 31"
    assert looks == 3


def test_only_the_newest_moments_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = DrivenClock()
    folder = folder_of(tmp_path / "folder")
    recording = recording_of(folder, clock)
    taker = begin(recording, clock)
    for number in range(NEWEST + 10):
        clock.pass_ns(SECOND)
        taker.take(moment(clock, f"cause {number}", 50_000 + number))
    newest = sorted(folder.keeping.moments)[-NEWEST:]
    assert sorted(RecorderFolder.open(tmp_path / "folder", NEWEST).keeping.moments) == newest
    assert status_of(tmp_path / "folder").tables[0].rows[0][-1] == f"cause {NEWEST + 9}"


def test_the_first_line_says_whether_a_recorder_runs(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder")
    running = status_of(tmp_path / "folder").lines[0]
    assert not missing(running, "A recorder runs", "--program control", "no figures yet")
    folder.close()
    ended = status_of(tmp_path / "folder").lines[0]
    assert not missing(ended, "No recorder runs", "--program control", "no figures yet")


def test_a_name_is_a_folder_of_the_recorders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "FOLDERS", tmp_path)
    folder_of(tmp_path / "control").close()
    assert place_of("control") == tmp_path / "control"
    with pytest.raises(InputError, match="there are: control"):
        place_of("contrl")


def test_an_engine_that_records_alone_has_a_status(tmp_path: Path) -> None:
    spool = Writer(tmp_path / "spool")
    spool.event("recorder started")
    spool.begin()
    spool.late_window(np.array([100_000, 9_000_000]), 60 * SECOND)
    before = RecorderHere(spool.folder).signature()
    status = status_of(spool.folder)
    assert not missing(status.lines[0], "No recorder runs", "--program control", "figures until")
    assert status.lines[1] == "Worst latency 9.00 ms of control, of 2 activations"
    (latest,) = status.tables[0].rows
    assert latest[1:] == ["control", "9,000.0", "not explained"], "its events are none"
    held = os.open(spool.folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert status_of(spool.folder).lines[0].startswith("A recorder runs for --program control")
    assert RecorderHere(spool.folder).signature() != before
    os.close(held)


def test_a_page_needs_the_extension_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(each for each in extensions() if each.name != "live")
    monkeypatch.setattr(known_extensions, "extensions", lambda: others)
    with pytest.raises(InputError, match="it needs the extension live, which is not installed"):
        serve(RecorderHere(tmp_path), "127.0.0.1:0", lambda _: None)
