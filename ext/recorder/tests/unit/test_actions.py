# SPDX-License-Identifier: MIT
"""What a recorder does at a trigger, and what it refuses to run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import InputError
from rtgauge_ext.recorder import actions
from rtgauge_ext.recorder.actions import Actions, check_roots_file
from rtgauge_ext.recorder.program import Program, start_of
from rtgauge_ext.recorder.triggers import Trigger

if TYPE_CHECKING:
    from pathlib import Path

LATE = Trigger("late", "control: latency 2 ms; $(touch forged)")


def program_of(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.root
def test_a_command_gets_the_trigger_as_arguments_without_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "check_roots_file", lambda path: path)  # the test's folder may be anybody's
    counts: Counter[str] = Counter()
    script = program_of(tmp_path / "alarm", f'printf "%s|" "$@" > {tmp_path}/said')
    finished = Actions((str(script),), 60, lambda name: counts.update([name]))
    finished.act(LATE, None, 100.0)
    finished.close()
    assert (tmp_path / "said").read_text() == f"late|{LATE.detail}|"
    assert counts == {"commands_done": 1}


def test_one_trigger_acts_at_a_time_and_others_are_counted() -> None:
    counts: Counter[str] = Counter()
    finished = Actions(("signal:USR1",), 60, lambda name: counts.update([name]))
    for now_s in (100.0, 101.0, 159.0, 160.0, 161.0):
        finished.act(LATE, None, now_s)
    assert counts == {"triggers_without_action": 3, "signals_failed": 2}


def test_a_signal_goes_only_to_the_program_itself() -> None:
    counts: Counter[str] = Counter()
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    start = start_of(process.pid)
    assert start is not None
    finished = Actions(("signal:TERM",), 0, lambda name: counts.update([name]))
    finished.act(LATE, Program(process.pid, start - 1), 1.0)
    assert process.poll() is None
    finished.act(LATE, Program(process.pid, start), 2.0)
    assert process.wait(60) == -signal.SIGTERM
    assert counts == {"signals_failed": 1, "signals_sent": 1}


def test_freeze_ends_the_recording() -> None:
    finished = Actions(("freeze",), 60, lambda _: None)
    assert not finished.frozen
    finished.act(LATE, None, 1.0)
    assert finished.frozen


def test_an_unknown_signal_is_refused() -> None:
    with pytest.raises(InputError, match="no signal NONE"):
        Actions(("signal:NONE",), 60, lambda _: None)


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_command_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    script = program_of(tmp_path / "alarm", "true")
    script.chmod(mode)
    with pytest.raises(InputError, match="users other than root can change"):
        check_roots_file(script)


@pytest.mark.root
def test_a_command_of_another_user_or_in_their_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    script = program_of(folder / "alarm", "true")
    os.chown(folder, 65534, 65534)
    with pytest.raises(InputError, match=f"users other than root can change {folder}"):
        check_roots_file(script)
    os.chown(folder, 0, 0)
    os.chown(script, 65534, 65534)
    with pytest.raises(InputError, match="users other than root can change"):
        check_roots_file(script)


@pytest.mark.parametrize(
    ("path", "why"),
    [("alarm", "give the whole path"), ("/nowhere/alarm", "No such file"), ("/etc/passwd", "not a program")],
)
def test_what_cannot_run_is_refused(path: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Actions((path,), 60, lambda _: None)
