# SPDX-License-Identifier: MIT
"""`rtgauge probe tire` as a user runs it: what it shows, what it keeps, what it refuses, how it is
stopped.
"""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.engine.stream import POLICY
from tests.support.cli import PATIENCE_S, end, error_line, good, invoke, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

SHORT = ("--policy", POLICY, "--warm-up", "10ms")


def tire(*words: object) -> dict[str, Any]:
    document = json.loads(good(invoke("probe", "tire", *SHORT, *words, "--json")).stdout)
    return document["steps"][0]


def test_real_fast_yields_node_steps_a_second() -> None:
    step = tire("--solver", "halo", "--nodes", 4000, "--threads", 2, "--steps", 6000)
    (result,) = step["results"]
    values = result["values"]
    assert result["labels"] == {"solver": "halo"}
    assert (values["nodes"], values["threads"], values["steps"]) == (4000, 2, 6000)
    assert values["node_steps_per_s"] > 0
    assert step["total"]["metric"] == "step-time"
    assert step["total"]["count"] * values["block"] == 6000


def test_real_time_counts_deadlines() -> None:
    step = tire(
        "--solver",
        "semaphore",
        "--nodes",
        400,
        "--threads",
        "twice",
        "--period",
        "5ms",
        "--duration",
        "500ms",
    )
    values = step["results"][0]["values"]
    assert values["activations"] == 100
    assert step["total"]["metric"] == "latency"
    by_metric = {series["metric"]: series for series in step["series"]}
    assert set(by_metric) == {"latency", "response", "slack"}
    assert by_metric["response"]["missed"] == values["missed"]
    assert by_metric["slack"]["min_ns"] == 5_000_000 - by_metric["response"]["max_ns"]


def test_the_table_for_people() -> None:
    for width in (80, 160):
        completed = good(invoke("probe", "tire", *SHORT, "--steps", 500, env={"COLUMNS": str(width)}))
        assert all(len(line) <= width for line in completed.stdout.splitlines())
        assert "Tire: halo, 4,000 nodes, 1 thread" in completed.stdout
        assert "node-steps per second" in completed.stdout
    completed = good(
        invoke("probe", "tire", *SHORT, "--period", "2ms", "--duration", "200ms", env={"COLUMNS": "100"})
    )
    assert "of 100" in next(
        line for line in completed.stdout.splitlines() if line.startswith("deadlines missed")
    )
    assert {"response", "slack"} <= {line.split()[0] for line in completed.stdout.splitlines() if line}


def test_a_period_too_short_is_measured_and_marked() -> None:
    completed = good(
        invoke(
            "probe",
            "tire",
            "--policy",
            "other",
            "--warm-up",
            "10ms",
            "--nodes",
            40_000,
            "--solver",
            "serial",
            "--period",
            "100us",
            "--duration",
            "50ms",
            "--details",
        )
    )
    text = " ".join(completed.stdout.split())
    assert "500 of 500 (100 %)" in text
    assert "period-short" in text
    assert "longer period" in text


def test_a_requirement_on_the_response_is_judged() -> None:
    words = ("probe", "tire", *SHORT, "--period", "5ms", "--duration", "300ms", "--require")
    completed = invoke(*words, "response<=1us hardness=95%")
    assert "FAILS" in good(completed, 1).stdout


def test_the_state_is_saved_if_requested(tmp_path: Path) -> None:
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for file, solver in zip(files, ("semaphore", "halo"), strict=True):
        good(
            invoke(
                "probe",
                "tire",
                *SHORT,
                "--nodes",
                40,
                "--steps",
                200,
                "--solver",
                solver,
                "--threads",
                2,
                "--state",
                file,
            )
        )
    states = [np.load(file) for file in files]
    assert states[0].shape == (40, 4)
    assert np.array_equal(states[0], states[1])
    assert states[0][:, 1].min() == 0


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--nodes", 4001), "use 4000 or 4004"),
        (("--nodes", 8, "--threads", 5), "5 threads are more than 4 pairs"),
        (("--stiffness", 100), "the stiffness can be at most 8.333 N/m"),
        (("--steps", 5, "--duration", "1s"), "not both"),
        (("--threads", "lots"), "one, cores, hardware-threads or twice"),
        (("--state", "/proc/nothing/here"), "--state /proc/nothing/here: there is no folder"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: tuple[object, ...], reported: str) -> None:
    assert reported in error_line(invoke("probe", "tire", *words), 2)


def test_ctrl_c_shows_what_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "states.csv"  # what is measured is put beside it meanwhile
    process = start(
        "probe",
        "tire",
        *SHORT,
        "--period",
        "5ms",
        "--duration",
        "1min",
        "--state",
        file,
        "--json",
        log=tmp_path / "log",
    )
    try:
        wait_until(
            lambda: (
                sum(
                    stream.read_text().count('"phase":"measure"')
                    for stream in tmp_path.glob(".rtgauge-*/*/steps/.*.tmp/stream.ndjson")
                )
                >= 3
            ),
            "a window",
        )
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    document = json.loads(output)
    assert document["run"]["state"] == "interrupted"
    values = document["steps"][0]["results"][0]["values"]
    assert 0 < values["steps"] < 12_000
    assert file.read_text().count("\n") == 4001
