# SPDX-License-Identifier: MIT
"""`rtgauge recorder status`: a recorder's folder while it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext.recorder.tests.driven import SECOND, DrivenClock, begin, folder_of, moment, recording_of
from rtgauge import known_extensions
from rtgauge.errors import InputError
from rtgauge.extension import extensions
from rtgauge_ext.recorder import status as status_module
from rtgauge_ext.recorder.folder import RecorderFolder
from rtgauge_ext.recorder.status import NEWEST, changes, place_of, serve, status_of

if TYPE_CHECKING:
    from pathlib import Path


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

    report = changes(tmp_path / "folder", wait)
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
    assert status_of(tmp_path / "folder").lines[0] == "A recorder runs for --program control; no figures yet"
    folder.close()
    assert status_of(tmp_path / "folder").lines[0] == "No recorder runs for --program control; no figures yet"


def test_a_name_is_a_folder_of_the_recorders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "FOLDERS", tmp_path)
    folder_of(tmp_path / "control").close()
    assert place_of("control") == tmp_path / "control"
    with pytest.raises(InputError, match="there are: control"):
        place_of("contrl")


def test_a_folder_of_the_engine_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spool.json").write_text("{}")
    with pytest.raises(InputError, match="rtgauge recorder import"):
        place_of(str(tmp_path))


def test_a_page_needs_the_extension_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(each for each in extensions() if each.name != "live")
    monkeypatch.setattr(known_extensions, "extensions", lambda: others)
    with pytest.raises(InputError, match="it needs the extension live, which is not installed"):
        serve(tmp_path, "127.0.0.1:0", lambda _: None)
