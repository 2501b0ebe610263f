# SPDX-License-Identifier: MIT
"""`rtgauge work` on a real program, and on one that is not there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.support.cli import error_line, good, rtgauge

pytestmark = pytest.mark.root
LOOP = "import time\nprint(flush=True)\nwhile True: time.sleep(0.002)"
NOBODY = 2**22
"""A process ID above every possible one."""


def test_the_activations_of_a_program_are_counted() -> None:
    with subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            program.stdout.readline()
            words = ("work", "--pid", program.pid, "--duration", "1s", "--json")
            completed = rtgauge(*words)
        finally:
            program.kill()
    assert completed.returncode in {0, 4}, completed.stderr  # 4: too few, or nothing to tell them apart by
    (thread,) = json.loads(completed.stdout)["threads"]
    assert thread["activations"] > 0
    assert thread["usual"]["cpu_ns"] > 0


def test_a_program_that_is_not_there() -> None:
    assert str(NOBODY) in error_line(rtgauge("work", "--pid", NOBODY), 3)


def test_a_duration_that_cannot_be() -> None:
    assert "--duration" in error_line(rtgauge("work", "--pid", 1, "--duration", "2h"), 2)
    good(rtgauge("work", "--help"))
