# SPDX-License-Identifier: MIT
"""Who can pull the trigger by a datagram."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rtgauge.errors import InputError
from rtgauge_ext.recorder.messages import Messages
from rtgauge_ext.recorder.program import Program
from rtgauge_ext.recorder.triggers import Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SENDS = """
import os, socket, sys
os.setgid(65534), os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(sys.argv[1])
s.send(b"forged")
print(os.getpid())
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
    assert first == Trigger("message", "torque limit 7")
    assert "\n" not in second.detail and "\x1b" not in second.detail and len(second.detail) < 150
    assert third == Trigger("message", "an empty message")
    assert messages.read(own) == [] and messages.refused == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_program_cannot_forge_a_trigger(messages: Messages, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.parts[1:2] == ("tmp",) and len(folder.parts) > 2:
            folder.chmod(0o755)
    command = [sys.executable, "-c", SENDS, str(tmp_path / "socket")]
    sent = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert messages.read(Program(os.getpid(), 1)) == []
    assert messages.refused == 1
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    assert messages.read(None) == [] and messages.refused == 2
    assert int(sent.stdout) > 0


def test_only_a_killed_recorders_socket_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.bind(str(tmp_path / "socket"))
    left.close()
    opened = Messages(tmp_path / "socket")
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o666
    opened.close()
    assert not (tmp_path / "socket").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="Address already in use"):
        Messages(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
