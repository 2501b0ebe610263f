# SPDX-License-Identifier: MIT
"""Where a real program broke rules, against its own log: with and without frame pointers, and with neither
them nor tables of frames, where only the program's innermost function may be claimed.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.cli import good, rtgauge

from rtgauge.record.reader import Record
from rtgauge_ext.recorder.user_stack import rule_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.root, pytest.mark.tracefs, pytest.mark.real_time]
SOURCE = Path(__file__).parents[1] / "data" / "broken_rules.c"
BUILDS = {
    "frame pointers": ("-fno-omit-frame-pointer",),
    "no frame pointers": ("-fomit-frame-pointer",),
    "no tables": ("-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"),
}


@contextmanager
def running(command: list[str | Path]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("build", BUILDS)
def test_the_functions_are_those_of_the_programs_own_log(tmp_path: Path, build: str) -> None:
    program = tmp_path / "planted"
    subprocess.run(["gcc", "-O2", "-g", *BUILDS[build], SOURCE, "-o", program], check=True)
    out = tmp_path / "out"
    with running([program, tmp_path / "log"]) as planted:
        good(
            rtgauge(
                "watch", f"--pid={planted.pid}", "--duration=3s", "--no-explain", "--out", str(out), "--save"
            )
        )
        planted.terminate()
        assert planted.stdout is not None
        log = {call: (name, int(count)) for name, call, count in map(str.split, planted.stdout)}
    (step,) = Record.open(next(out.iterdir())).steps
    places = rule_stacks(step.results)
    assert {each.call for each in places} >= {"minor", "mmap", "munmap"}
    for each in places:
        function, count = log[each.call]
        assert 0 < each.stacks <= min(count, 32)
        names = [word.split(" (")[0] for word in each.where.split(" < ")]
        own = names if each.call == "minor" else names[1:]
        if build == "no tables":
            assert own == [function]  # libc has tables
        else:
            assert own == [function, "control_step", "main"]
            assert all("(broken_rules.c:" in word for word in each.where.split(" < ")[-3:])
