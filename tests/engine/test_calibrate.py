# SPDX-License-Identifier: MIT
"""calibrate: each clock once, with figures that agree with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.stream import refused, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine
CLOCKS = [
    "CLOCK_MONOTONIC",
    "CLOCK_MONOTONIC_RAW",
    "CLOCK_REALTIME",
    "CLOCK_TAI",
    "CLOCK_BOOTTIME",
    "CLOCK_MONOTONIC_COARSE",
    "CLOCK_PROCESS_CPUTIME_ID",
    "CLOCK_THREAD_CPUTIME_ID",
]


@pytest.mark.parametrize("count", [1, 10, 20000])
def test_figures_agree(engine: Path, count: int) -> None:
    stream = run(engine, "calibrate", f"--count={count}")
    assert (stream.reason, stream.status) == ("count", 0)
    assert stream.lines[0]["type"] == "hello"
    assert stream.one("hello")["parameters"]["count"] == count
    calibrations = stream.all("calibration")
    assert [line["clock"] for line in calibrations] == CLOCKS
    for line in calibrations:
        assert line["error"] is None
        assert 0 < line["count"] <= count
        assert sum(number for _, number in line["bins"]) == line["count"]
        assert 0 <= line["min_ns"] <= line["p50_ns"] <= line["p99_ns"] <= line["max_ns"]
        assert line["min_ns"] <= line["mean_ns"] <= line["max_ns"]
        assert line["resolution_ns"] >= 1
        if line["smallest_step_ns"] is not None:
            assert 0 < line["smallest_step_ns"] <= line["max_ns"]


def test_a_limit_bounds_the_time(engine: Path) -> None:
    line = run(engine, "calibrate", "--count=100000000", "--limit-ns=1000000").all("calibration")[0]
    assert line["clock"] == "CLOCK_MONOTONIC"
    assert 0 < line["count"] < 1_000_000


def test_a_coarse_clock_is_detected(engine: Path) -> None:
    lines = {line["clock"]: line for line in run(engine, "calibrate").all("calibration")}
    assert lines["CLOCK_MONOTONIC_COARSE"]["resolution_ns"] >= 1_000_000
    assert lines["CLOCK_MONOTONIC_COARSE"]["p50_ns"] == 0


@pytest.mark.parametrize("words", [["--count=0"], ["--limit-ns=1"], ["--clock=x"], ["--count=1e3"]])
def test_wrong_input(engine: Path, words: list[str]) -> None:
    refused(engine, "usage", 2, "calibrate", *words)
