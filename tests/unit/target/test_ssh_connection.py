# SPDX-License-Identifier: MIT
"""The folders of ssh's control sockets: those that a killed process left are removed by the next one, and
only those.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rtgauge.target.address import SshAddress
from rtgauge.target.ssh_connection import SshConnection


def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_killed_processes_left_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="rtg-") as place, socket.socket(socket.AF_UNIX) as master:
        monkeypatch.setenv("XDG_RUNTIME_DIR", place)
        dead, lives, connected, other = (
            Path(place, name)
            for name in (
                f"rtg-ssh-{gone()}-a",
                f"rtg-ssh-{os.getpid()}-b",
                f"rtg-ssh-{gone()}-c",
                "rtg-ssh-x",
            )
        )
        for folder in (dead, lives, connected, other):
            folder.mkdir()
            (folder / "left").write_text("")
        master.bind(str(connected / "c"))  # of a process that is gone, its connection is not
        master.listen()
        connection = SshConnection(SshAddress("board", "root", 22))
        try:
            assert sorted(path.name for path in Path(place).iterdir() if (path / "left").exists()) == sorted(
                [lives.name, connected.name, other.name]
            )
        finally:
            connection.close()
        assert {path.name for path in Path(place).iterdir()} == {lives.name, connected.name, other.name}
