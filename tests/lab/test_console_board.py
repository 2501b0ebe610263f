# SPDX-License-Identifier: MIT
"""A guest as a board without a network: labgrid knows its serial line, on which a shell runs, and nothing else.

It has Dropbear and BusyBox's nc, and a real UART's driver between them and the line.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ext.labgrid.tests.labgrid import BIN, Labgrid
from tests.support.cli import good, rtgauge, wait_until
from tests.support.machine import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

LINE = "/dev/ttyS1"
SHELL = f"(stty -F {LINE} 115200 sane; setsid -c sh -i <{LINE} >{LINE} 2>&1 &)"


def test_a_guest_is_measured_over_its_serial_line(lab: Lab, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "bin").mkdir()
    qemu = tmp_path / "bin" / "qemu-system-x86_64"
    qemu.write_text(
        f'#!/bin/sh\nexec /usr/bin/qemu-system-x86_64 "$@" -serial tcp:127.0.0.1:{port},server=on,wait=off\n'
    )
    qemu.chmod(0o755)
    lab.stop()
    good(rtgauge("lab", "build", "debian", env={**lab.env}, timeout=900))
    boot = ("lab", "boot", "debian", "--accel", "tcg", "--icount")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    good(rtgauge(*boot, env={**lab.env, "PATH": path}, timeout=600))
    lab.up = "debian"
    try:
        lab.run_in(SHELL)
        board = f"NetworkSerialPort: {{host: 127.0.0.1, port: {port}, protocol: raw}}"
        with Labgrid(tmp_path, {"bench": board}, free_port()) as labgrid:
            env = {"LG_COORDINATOR": labgrid.address, "XDG_STATE_HOME": str(tmp_path / "state")}
            words = ("run", "--load", "idle", "--duration", "500ms", "--target", "labgrid:bench")
            path = f"{BIN}:{os.environ['PATH']}"
            good(rtgauge(*words, "--out", tmp_path / "runs", env={**env, "PATH": path}, timeout=900))
            wait_until(lambda: labgrid.holders() == [], "the place to be free")
        (record,) = (tmp_path / "runs").iterdir()
        assert "debian" in (next(record.glob("targets/*/system.json"))).read_text()
        modes = lab.run_in(f"stty -F {LINE} -a; cat /root/.ssh/authorized_keys")
        assert " echo " in modes
        assert " icanon " in modes
        assert modes.count("ssh-ed25519") == 1
    finally:
        lab.stop()
