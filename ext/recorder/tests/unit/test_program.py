# SPDX-License-Identifier: MIT
"""Finding the program, and noticing that a thread of it does not run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import InputError
from rtgauge_ext.recorder import program
from rtgauge_ext.recorder.program import Program, ProgramChoice, start_of, user_of
from rtgauge_ext.recorder.triggers import Silence, slices_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAYS_READY = (
    "import sys; open('/proc/self/comm', 'w').write('recorded'); print('ready', flush=True); sys.stdin.read()"
)
MS = 10**6


@pytest.fixture
def running() -> Iterator[subprocess.Popen[str]]:
    """A program with a name of its own, which waits."""
    with subprocess.Popen(
        [sys.executable, "-c", SAYS_READY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_a_program_is_found_by_name_until_it_ends(running: subprocess.Popen[str]) -> None:
    actual = ProgramChoice(name="recorded").find()
    assert [each.pid for each in actual] == [running.pid]
    assert ProgramChoice(pid=running.pid).find() == actual and actual[0].lives
    running.kill()
    running.wait()
    assert ProgramChoice(name="recorded").find() == [] == ProgramChoice(pid=running.pid).find()
    assert not actual[0].lives


def test_the_user_of_a_program_is_known_until_it_ends(running: subprocess.Popen[str]) -> None:
    assert user_of(running.pid) == os.geteuid()
    running.kill()
    running.wait()
    assert user_of(running.pid) is None


def test_a_program_is_found_by_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: subprocess.Popen[str]
) -> None:
    monkeypatch.setattr(program, "CGROUPS", tmp_path)
    group = tmp_path / "system.slice" / "control.service"
    group.mkdir(parents=True)
    assert ProgramChoice(unit="control").find() == []
    (group / "cgroup.procs").write_text(f"{2**22}\n{running.pid}\n")
    assert [each.pid for each in ProgramChoice(unit="control.service").find()] == [running.pid]
    assert ProgramChoice(unit="other").find() == []


def test_a_unit_is_not_looked_for_among_the_groups_of_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: subprocess.Popen[str]
) -> None:
    monkeypatch.setattr(program, "CGROUPS", tmp_path)
    theirs = tmp_path / "user.slice/user-1000.slice/user@1000.service/app.slice/control.service"
    theirs.mkdir(parents=True)
    (theirs / "cgroup.procs").write_text("1\n")
    assert ProgramChoice(unit="control").find() == []
    group = tmp_path / "system.slice/control.service"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text(f"{running.pid}\n")
    assert [each.pid for each in ProgramChoice(unit="control").find()] == [running.pid]


def test_exactly_one_program_must_be_named() -> None:
    for given in ({}, {"pid": 1, "name": "x"}):
        with pytest.raises(InputError, match="say which program"):
            ProgramChoice(**given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not the name of a unit"):
        ProgramChoice(unit="../x")


def test_the_slices_of_a_thread_are_read_by_its_name(running: subprocess.Popen[str]) -> None:
    start = start_of(running.pid)
    assert start is not None
    actual = slices_of(Program(running.pid, start), {"recorded"})
    assert list(actual) == [f"recorded ({running.pid})"] and actual.popitem()[1] > 0
    assert slices_of(Program(running.pid, start), {"other"}) == {}


def test_a_thread_is_silent_once_until_it_runs_again() -> None:
    silence = Silence(5, MS)
    reported: list[tuple[int, str]] = []
    for now_ms in range(40):
        runs = now_ms < 10 or now_ms >= 25
        slices = {"control (7)": now_ms if runs else 9, "io (8)": now_ms}
        reported += [(now_ms, each.detail) for each in silence.look(slices, now_ms * MS)]
    assert reported == [(14, "control (7) did not get a CPU for 5 periods")]
    assert silence.look({}, 40 * MS) == [] == silence.look({"control (7)": 1}, 60 * MS), "a new thread"
