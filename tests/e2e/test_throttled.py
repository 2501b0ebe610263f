# SPDX-License-Identifier: MIT
"""A limit of the kernel that takes the CPU from the measuring thread is noticed, named, and marked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cli import good, rtgauge
from tests.support.real_record import document

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU_CGROUP = Path("/sys/fs/cgroup/cpu")
RUNTIME_US = 20_000


@pytest.fixture
def tight_group() -> Iterator[Path]:
    """A cgroup v1 group whose real-time tasks together may run for 20 ms of each second."""
    if not (CPU_CGROUP / "cpu.rt_runtime_us").exists():
        pytest.skip("no cgroup v1 cpu controller with RT_GROUP_SCHED on this machine")
    group = CPU_CGROUP / f"rtgauge-tight-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.rt_runtime_us").write_text(str(RUNTIME_US))
        yield group
    finally:
        group.rmdir()


def test_a_tight_group_is_named_and_marks_the_step(tight_group: Path) -> None:
    def join() -> None:
        (tight_group / "cgroup.procs").write_text(str(os.getpid()))

    completed = good(
        rtgauge(
            "probe",
            "wakeup",
            "--warm-up",
            "0",
            "--duration",
            "3s",
            "--interval",
            "20us",
            "--json",
            preexec_fn=join,
        )
    )
    (step,) = document(completed.stdout)["steps"]
    marks = [mark for mark in step["marks"] if mark["name"] == "throttled"]
    assert marks, step["marks"]
    assert all(
        mark["severity"] == "doubtful"
        and tight_group.name in mark["detail"]
        and "cpu.rt_runtime_us" in mark["detail"]
        for mark in marks
    )
    assert all(series["count"] + series["missed"] == 150_000 for series in step["series"])
    assert sum(series["missed"] for series in step["series"]) > 0
