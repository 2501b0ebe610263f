# SPDX-License-Identifier: MIT
"""Programs with and without what is against their use for real time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rtgauge_ext.recorder.fitness import fitness

PROGRAM = """
import ctypes, os, resource, sys
if "fifo" in sys.argv:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(7))
if "locked" in sys.argv:
    assert ctypes.CDLL(None).mlockall(1) == 0
if "limited" in sys.argv:
    resource.setrlimit(15, (950_000, 950_000))
print("ready", flush=True)
sys.stdin.read()
"""
NOT_REAL_TIME, NOT_LOCKED, LIMITED = "no thread has", "is not locked", "950000 us"


@pytest.mark.root
@pytest.mark.real_time
@pytest.mark.root
@pytest.mark.parametrize(
    ("words", "against"),
    [
        ((), [NOT_REAL_TIME, NOT_LOCKED]),
        (("locked",), [NOT_REAL_TIME]),
        (("fifo",), [NOT_LOCKED]),
        (("fifo", "locked", "limited"), [LIMITED]),
        (("fifo", "locked"), []),
    ],
)
def test_each_planted_violation_is_found(words: tuple[str, ...], against: list[str]) -> None:
    command = [sys.executable, "-c", PROGRAM, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        actual = fitness(program.pid)
        program.communicate("")
    assert len(actual.against) == len(against)
    assert all(text in line for text, line in zip(against, actual.against, strict=True))
    assert ("fifo 7 real-time" in actual.threads) == ("fifo" in words)
    assert "user 0" in actual.who


def test_a_program_that_has_ended_has_no_facts() -> None:
    assert fitness(2**22 + 1).threads == "no real-time thread, 0 other threads"
