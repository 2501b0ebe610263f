# SPDX-License-Identifier: MIT
"""A fleet of one board, this machine: Ctrl-C ends it in order, and the same command goes on."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.e2e.processes import alive, family
from tests.support.cli import COMMAND, PATIENCE_S, end, environment, good, rtgauge, wait_until

pytestmark = [pytest.mark.engine, pytest.mark.root]


def test_ctrl_c_ends_in_order_and_the_same_command_goes_on(tmp_path: Path) -> None:
    plan = tmp_path / "one.toml"
    plan.write_text(
        f'store = "{tmp_path}/store.sqlite"\nsite = "{tmp_path}/site"\n[[boards]]\nname = "here"\ntarget = "local"\n'
        '[[jobs]]\nname = "long"\nload = "idle"\nduration = "5s"\n'
    )
    running = subprocess.Popen(
        [*COMMAND, "fleet", str(plan)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        step = "one/here/long/*.partial/steps/.*.tmp/stream.ndjson"
        wait_until(lambda: any(path.stat().st_size for path in tmp_path.glob(step)), "the measurement")
        below = family(running.pid)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=PATIENCE_S)
    finally:
        end(running)
    assert running.returncode == 130
    assert "Traceback" not in output
    assert alive(below) == []
    assert "stopping; waiting for 1 job to end" in output
    assert "0 of 1 job done" in output
    assert output.endswith("run the same command again to continue\n")
    completed = good(rtgauge("fleet", plan))
    assert "wakeup/latency/idle" in (tmp_path / "site/index.html").read_text()
    assert "[1/1] here long: measured" in completed.stdout
    assert len(good(rtgauge("store", "list", "--store", tmp_path / "store.sqlite")).stdout.splitlines()) > 1
    assert len(list((tmp_path / "one/here/long").glob("*Z-*"))) == 1
