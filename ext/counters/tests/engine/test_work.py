# SPDX-License-Identifier: MIT
"""What the engine counts of a real program, compared with the program's own clock of its CPU time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtgauge.errors import MeasureError
from rtgauge_ext.counters.activation import parse_work

pytestmark = [pytest.mark.engine, pytest.mark.root]
PROGRAM = """
import sys, time
mark = time.thread_time_ns()
while True:
    now = time.thread_time_ns()
    print(now - mark, flush=False)
    mark = now
    deadline = now + (8_000_000 if int(time.monotonic() * 50) % 10 == 0 else 1_000_000)
    while time.thread_time_ns() < deadline: pass
    sys.stdout.flush()
    time.sleep(0.005)
"""


def test_the_cpu_time_of_activations_is_the_programs_own(engine: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out, subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=out) as program:
        try:
            while log.stat().st_size == 0:
                assert program.poll() is None
            words = [str(engine), "work", "--pid", str(program.pid), "--duration-ns", str(2 * 10**9)]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as counting:
                assert counting.stdout is not None
                printed = [*counting.stdout]
        finally:
            program.kill()
    own_ns = sorted(map(int, log.read_text().split()[1:]))
    actual = parse_work(printed)
    counted_ns = actual.activations["cpu_ns"].sort().to_list()
    assert actual.end.lost == 0
    assert 10 < len(counted_ns) <= len(own_ns)
    assert actual.activations["whole"].all()
    assert all(json.loads(line)["switches"] >= 1 for line in printed[1:-1])
    for share in (0.5, 1):
        own, counted = (values[int(len(values) * share) - 1] for values in (own_ns, counted_ns))
        assert counted == pytest.approx(own, rel=0.25)
    assert counted_ns[-1] > 4 * counted_ns[len(counted_ns) // 2]


def _count(engine: Path, pid: int) -> subprocess.Popen[bytes]:
    words = [str(engine), "work", "--pid", str(pid), "--duration-ns", str(3600 * 10**9)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.timeout(60)
def test_a_program_that_has_ended_is_refused(engine: Path) -> None:
    with subprocess.Popen(["true"]) as program:
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        with _count(engine, program.pid) as counting:
            assert counting.stdout is not None
            with pytest.raises(MeasureError, match="has ended"):
                parse_work(counting.stdout)
    assert counting.returncode


@pytest.mark.timeout(60)
def test_counting_ends_with_the_program(engine: Path) -> None:
    """Within a minute, though it should last an hour."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        with _count(engine, program.pid) as counting:
            assert counting.stdout is not None
            begin = counting.stdout.readline()
            program.kill()
            found = parse_work([begin, *counting.stdout])
    assert counting.returncode == 0
    assert not found.end.full
