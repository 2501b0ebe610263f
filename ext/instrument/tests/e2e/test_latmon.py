# SPDX-License-Identifier: MIT
"""A latmon as instrument.

What speaks is a program with a script of latencies: the protocol, the record and the page are real, its
figures are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import error_line, good, invoke
from tests.support.machine import free_port

from ext.instrument.tests.latmon_stand_in import latmon
from rtgauge.record.reader import Record

pytestmark = [pytest.mark.engine, pytest.mark.root]

SECONDS = [[1_500, 2_700, 999], [40_000, 1_000], [2_500_000, 3_000]]


def test_seconds_and_cells_become_a_record_that_names_the_gaps(tmp_path: Path) -> None:
    with latmon(SECONDS) as (address, requests):
        words = (
            "--set",
            "probe=response",
            "--set",
            f"path=udp:127.0.0.1:{free_port()}",
            "--set",
            f"instrument={address}",
            "--set",
            "interval=1ms",
        )
        # The program has no wire: that the slave saw nothing is said, and makes the inner view invalid.
        completed = good(invoke("run", "--load", "idle", *words, "--set", "cycles=5", "--out", tmp_path), 3)
    assert requests == [(1_000, 1_000), (0, 0)]
    (folder,) = tmp_path.iterdir()
    (step,) = Record.open(folder).steps
    outer = step.series[0]
    everything = [latency for second in SECONDS for latency in second]
    assert (outer.labels["role"], outer.count, outer.min_ns, outer.max_ns) == (
        "instrument",
        len(everything),
        min(everything),
        max(everything),
    )
    assert outer.mean_ns == pytest.approx(sum(everything) / len(everything))
    assert outer.std_ns is None  # its sums have no squares
    assert outer.missed == 2  # overruns
    assert outer.p50_ns is not None
    assert 2_700 <= outer.p50_ns < 3_000
    assert outer.p99_ns == 2_500_000  # in the last cell, and known: there is only one
    assert {"no-stimulus", "resolution-1us", "histogram-overflow", "missed-by-overruns"} <= {
        mark.name for mark in step.marks
    }
    assert step.instrument is not None
    assert step.instrument.id in address
    assert len((folder / "steps" / step.id / "instrument.ndjson").read_text().splitlines()) == len(SECONDS)
    assert "from outside" in completed.stdout
    assert "latmon" in (folder / "report.html").read_text()


def test_a_latmon_that_is_not_there(tmp_path: Path) -> None:
    words = ("--path", f"udp:127.0.0.1:{free_port()}", "--interval", "1ms", "--duration", "1s")
    error = error_line(
        invoke("probe", "response", "--instrument", f"latmon:127.0.0.1:{free_port()}", *words), 3
    )
    assert "cannot reach a latmon" in error
