# SPDX-License-Identifier: MIT
"""Ctrl-C reaches a run that waits for its engine, whatever was imported meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S

WAITS = """
import os, signal, sys
from rtgauge.runner.interrupt import Interrupt

reader, writer = os.pipe()
with Interrupt() as interrupt:
    interrupt.stop_by(lambda: os.write(writer, b"stop"))
    {imports}
    print("waits", flush=True)
    print(os.read(reader, 4).decode(), flush=True)
"""


@pytest.mark.parametrize(
    "imports",
    ["pass", "import rtgauge.record.window_frame", "import polars; interrupt.stop_by(interrupt._stop)"],
)
def test_a_read_that_waits_ends(imports: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITS.format(imports=imports)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        try:
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE_S)[0] == "stop\n"
        finally:
            process.kill()
