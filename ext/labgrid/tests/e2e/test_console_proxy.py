# SPDX-License-Identifier: MIT
"""A serial console that only another host can reach, over TCP and by RFC 2217 (ser2net)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support.cli import wait_until
from tests.support.machine import Machine, client, free_port

from ext.labgrid.tests.console import SerialConsole
from rtgauge_ext.labgrid.serial_console import BoardConsole, Login, wait_for_end

pytestmark = [pytest.mark.root]


@pytest.mark.parametrize("protocol", ["raw", "rfc2217"])
def test_a_console_is_reached_through_a_proxy(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    line = tmp_path_factory.mktemp("l")
    with (
        Machine(tmp_path, "gate", busybox=False) as gate,
        SerialConsole(["sh", "-c", "exec env PS1='board# ' sh -i"]) as board,
    ):
        alias = f"Host bastion\nHostName 127.0.0.1\nPort {gate.port}\nUser root\nHost *\n"
        monkeypatch.setenv("PATH", str(client(tmp_path, [gate], alias)), prepend=":")
        port = free_port()
        accepter = f"connection: &con01#  accepter: telnet(rfc2217,mode=server),tcp,127.0.0.1,{port}"
        connector = f"  connector: serialdev(nouucplock=true),{board.adapter},115200n81,local"
        server = subprocess.Popen(["/usr/sbin/ser2net", "-d", "-n", "-Y", accepter, "-Y", connector])
        try:
            wait_until(
                lambda: f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text(), "ser2net"
            )
            where = board.port if protocol == "raw" else port
            (line / "0").mkdir()
            login = Login(line / "0", BoardConsole("127.0.0.1", where, 115200, protocol, "bastion"))
            try:
                assert login.begin() is None
                assert not board.is_usable(), "it is the connection now"
            finally:
                wait_for_end(line)
            wait_until(board.is_usable, "the shell")
            assert "Accepted publickey" in (tmp_path / "gate" / "sshd.log").read_text()
        finally:
            server.kill()
            server.wait()
