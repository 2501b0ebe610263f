# SPDX-License-Identifier: MIT
"""Loads that really run on this machine."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rtgauge.load.lifecycle import RunningLoad
from rtgauge.load.processes import STAT_GLOB, descendants, parse_all
from rtgauge.target.local import read_local

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rtgauge.load.load import Load
    from rtgauge.record.model import LoadReport
    from tests.support.local_target import LocalTarget


@contextmanager
def nothing_left(tmp_path: Path) -> Iterator[Path]:
    """Yield the file for a load's log. At the end no program of a load is left."""
    before = set(parse_all(read_local([STAT_GLOB])))
    yield tmp_path / "load.log"
    deadline = time.monotonic() + 60
    while (left := ours(before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def ours(before: set[int]) -> list[str]:
    """Programs of loads that were not there before the test and still are."""
    mine = descendants(parse_all(read_local([STAT_GLOB])), os.getpid())
    orphans = [process for process in parse_all(read_local([STAT_GLOB])).values() if process.parent == 1]
    return [
        p.name
        for p in [*mine, *orphans]
        if p.pid not in before
        and p.state not in "ZX"
        and p.name.startswith(("stress-ng", "iperf3", "hackbench", "sleep"))
    ]


def measured_until(load: Load, log: Path, target: LocalTarget, figure: str) -> LoadReport:
    """The report of a load that ran until its own output told of something, 20 s at the most."""
    with RunningLoad.start(target, load, log, expected_s=30) as running:
        running.wait_warm(0.1)
        part = running._parts[0]
        deadline = time.monotonic() + 60
        while not part.spec.reached(os.pread(part.log.fileno(), 1 << 20, 0).decode()).get(figure):
            assert time.monotonic() < deadline, os.pread(part.log.fileno(), 4096, 0)
            time.sleep(0.05)
        return running.stop()
