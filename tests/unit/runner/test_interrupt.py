# SPDX-License-Identifier: MIT
"""Ctrl-C reaches a run that waits for its engine, whatever was imported meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

GUARD = """#!/bin/sh
echo armed
while read word; do
    [ "$word" = stop ] && echo stopped && exit
done
"""
WAITS = """
from rtgauge.runner.interrupt import Interrupt
from rtgauge.target import guard, local

local.LOOK_EVERY_S = 1e6
with Interrupt() as interrupt:
    program = local.LocalGuarded(["a program"], "run", guard.LeaseKeeper(), None, lambda: None)
    interrupt.stop_by(lambda: program.send("stop"))
    {imports}
    for line in program.lines():
        print(line.decode(), end="", flush=True)
"""


@pytest.mark.parametrize("imports", ["pass", "import polars"])
def test_a_run_that_waits_for_its_engine_ends(imports: str, tmp_path: Path) -> None:
    guard = tmp_path / "guard"
    guard.write_text(GUARD)
    guard.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", WAITS.format(imports=imports)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "RTGAUGE_ENGINE": str(guard)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "armed\n"
        try:
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE_S)[0] == "stopped\n"
        finally:
            process.kill()
