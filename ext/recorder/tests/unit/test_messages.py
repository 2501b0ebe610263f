# SPDX-License-Identifier: MIT
"""Who can pull the trigger by a datagram."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import InputError
from rtgauge_ext.recorder.program import Program
from rtgauge_ext.recorder.trigger_socket import Messages

if TYPE_CHECKING:
    from collections.abc import Iterator

SENDS = """
import os, socket, sys
os.setgid(65534), os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(sys.argv[1])
s.send(b"forged")
"""


@pytest.fixture
def messages(tmp_path: Path) -> Iterator[Messages]:
    opened = Messages(tmp_path / "socket")
    yield opened
    opened.close()


def send(path: Path, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(str(path))
        sender.send(data)


def test_the_program_pulls_the_trigger_with_one_line(messages: Messages, tmp_path: Path) -> None:
    own = Program(os.getpid(), 1)
    send(tmp_path / "socket", b"torque limit 7\n")
    send(tmp_path / "socket", b"two\nlines \x1b[31m " + b"x" * 500)
    send(tmp_path / "socket", b"")
    first, second, third = messages.read(own)
    assert first[:2] == ("message", "torque limit 7")
    assert 0 < first.time_ns <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert "\n" not in second.detail and "\x1b" not in second.detail and len(second.detail) < 150
    assert third[:2] == ("message", "an empty message")
    assert messages.read(own) == [] and messages.refused == 0


@pytest.mark.root
def test_only_the_user_of_the_program_and_root_can_send(messages: Messages, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.parts[1:2] == ("tmp",) and len(folder.parts) > 2:
            folder.chmod(0o755)
    command = [sys.executable, "-c", SENDS, str(tmp_path / "socket")]

    def sends() -> bool:
        sent = subprocess.run(command, capture_output=True, text=True, check=False)
        assert sent.returncode == 0 or "PermissionError" in sent.stderr
        return sent.returncode == 0

    assert not sends(), "nobody but root can send before the program runs"
    messages.let(65534)
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o600
    assert sends(), "another program of the user can send, but is refused"
    assert messages.read(Program(os.getpid(), 1)) == [] and messages.refused == 1
    messages.let(None)  # the program has ended
    assert sends() and messages.read(None) == [] and messages.refused == 2
    messages.let(65533)
    assert not sends()


@pytest.mark.root
def test_a_file_that_took_the_place_of_the_socket_keeps_its_owner(messages: Messages, tmp_path: Path) -> None:
    (tmp_path / "socket").unlink()
    (tmp_path / "socket").write_text("root's")
    messages.let(65534)
    assert (tmp_path / "socket").stat().st_uid == 0


def test_only_a_killed_recorders_socket_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.bind(str(tmp_path / "socket"))
    left.close()
    opened = Messages(tmp_path / "socket")
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o600
    opened.close()
    assert not (tmp_path / "socket").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="Address already in use"):
        Messages(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


EXAMPLES = Path(__file__).parents[2] / "examples"
COMPILED = {"c": ("gcc", "-Wall", "-Werror"), "cpp": ("g++", "-Wall", "-Werror"), "rs": ("rustc",)}


@pytest.mark.parametrize("language", ["py", *COMPILED])
def test_the_examples_pull_the_trigger(messages: Messages, tmp_path: Path, language: str) -> None:
    source, command = EXAMPLES / f"trigger.{language}", [sys.executable, EXAMPLES / "trigger.py"]
    if language in COMPILED:
        compiler, *options = COMPILED[language]
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
        command = [tmp_path / "trigger"]
        subprocess.run([compiler, *options, source, "-o", *command], check=True, timeout=300)
    marker = tmp_path / "trace_marker"
    marker.touch()
    for path in (tmp_path / "socket", marker):
        subprocess.run([*command, path, "torque limit 7"], check=True, timeout=60)
    assert marker.read_text() == "torque limit 7"
    if os.geteuid() == 0:  # the senders are processes of their own
        assert [trigger.detail for trigger in messages.read(None)] == ["torque limit 7"]
