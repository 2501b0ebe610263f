# SPDX-License-Identifier: MIT
"""A guest with 64 CPUs: all are measured, and the engine locks little memory for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.cli import good, rtgauge

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Lab

CPUS = 64
MOST_KIB = 8 * 1024
MEASURE = """
/tmp/engine wakeup --go --interval-ns=50000000 --count=200 >/tmp/stream & engine=$!; most=0
while locked=$(sed -n 's/^VmLck:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$engine/status 2>/dev/null) && [ -n "$locked" ]; do
	[ "$locked" -le "$most" ] || most=$locked
	sleep 0.1
done
wait $engine && echo $most && grep '"type":"summary"' /tmp/stream && rm /tmp/stream
"""
"""Runs the engine, and prints the most KiB that it had locked, and its summaries."""


def test_the_engine_locks_little_memory_for_64_cpus(lab: Lab, engine: Path) -> None:
    lab.boot("debian", smp=str(CPUS))
    lab.copy_engine(engine)
    locked_kib, *summaries = good(
        rtgauge("lab", "shell", "debian", MEASURE, env=lab.env, timeout=900)
    ).stdout.splitlines()
    assert 1024 < int(locked_kib) <= MOST_KIB
    assert len(summaries) == CPUS
    for line in summaries:
        summary = json.loads(line)
        assert summary["count"] + summary["missed"] == 200
