# SPDX-License-Identifier: MIT
"""A guest without disk and network: everything goes over its second serial line, also after the connection
broke.

Its clock counts instructions.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from ext.lab.tests.fake_lab import stock_kernel
from rtgauge_ext.lab import paths
from tests.e2e.processes import all_pids, command_line
from tests.support.cli import good, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

pytestmark = pytest.mark.ci


def test_a_guest_that_has_only_serial_lines(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(lab.home))
    (kernel,) = stock_kernel().glob("vmlinuz-*")
    lab.stop()
    good(rtgauge("lab", "add", "serial", "--kernel", kernel, "--serial", env={**lab.env}))
    try:
        good(rtgauge("lab", "boot", "serial", "--icount", env={**lab.env}, timeout=600))
        lab.up = "serial"
        assert lab.run_in("ls /sys/block /sys/class/net").split() == ["/sys/block:", "/sys/class/net:", "lo"]
        lab.command("probe", "wakeup", "--duration", "500ms", "--save", "--out", tmp_path)
        (record,) = tmp_path.iterdir()
        facts = json.loads((record / "targets/lab-serial/system.json").read_text())
        assert facts["machine"]["instruction_ns"] == 4
        step = json.loads(next(record.glob("steps/*/step.json")).read_text())
        assert "its clock counts instructions" in next(
            mark["detail"] for mark in step["marks"] if mark["name"] == "emulated"
        )
        # whoever holds the line is killed: the next command finds the guest again
        control = paths.folder_of("serial") / "ssh"
        masters = [pid for pid in all_pids() if str(control) in command_line(pid)]
        assert masters
        for master in masters:
            os.kill(master, signal.SIGKILL)
        assert lab.run_in("echo", "again") == "again\n"
    finally:
        lab.stop()
        good(rtgauge("lab", "rm", "serial", env={**lab.env}))
