# SPDX-License-Identifier: MIT
"""Ctrl-C once ends in order and keeps everything, twice ends at once; the engine and the guard may be
killed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import alive, command_line, family, find, the_engine
from tests.support.cli import PATIENCE_S, SHORT, end, only_error, start, wait_until
from tests.support.real_record import document

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

pytestmark = [pytest.mark.engine, pytest.mark.root]

LONG = ("--load", "idle", "--duration", "60s", *SHORT)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "stderr"


@pytest.fixture
def running(tmp_path: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of two long steps that measures."""
    process = start("run", *LONG, "--repeats", 2, "--out", tmp_path / "out", log=log)
    try:
        wait_until(lambda: measured_lines(tmp_path) >= 2, "windows in the stream")
        yield process
    finally:
        end(process)


def measured_lines(tmp_path: Path) -> int:
    """Windows of the measured phase that the step at hand has by now."""
    streams = list(tmp_path.glob("out/*/steps/.*.tmp/stream.ndjson"))
    return streams[0].read_text().count('"phase":"measure"') if streams else 0


def the_record(tmp_path: Path) -> Path:
    (record,) = (tmp_path / "out").iterdir()
    return record


def test_once_keeps_the_step_and_says_how_to_go_on(
    tmp_path: Path, log: Path, running: subprocess.Popen[str]
) -> None:
    below = family(running.pid)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    record = the_record(tmp_path)
    assert record.name.endswith(".partial")
    run = document((record / "run.json").read_text())
    assert run["state"] == "interrupted"
    (name,) = run["steps"]
    step = document((record / "steps" / name / "step.json").read_text())
    assert step["end_reason"] == "stopped"
    assert [mark["severity"] for mark in step["marks"] if mark["name"] == "stopped"] == ["note"]
    assert 0 < step["total"]["count"] + step["total"]["missed"] < 120_000
    assert all(series["count"] + series["missed"] > 0 for series in step["series"])
    assert (record / "report.html").is_file()
    reported = log.read_text()
    assert "stopping cleanly" in reported
    assert f"rtgauge resume {record}" in reported
    assert f"{name} was cut off after " in reported
    assert "Traceback" not in reported
    assert "1 of 2 planned steps" in output
    assert alive(below) == []


def test_twice_ends_at_once(tmp_path: Path, log: Path, running: subprocess.Popen[str]) -> None:
    below = family(running.pid)
    engine = the_engine(running.pid)
    os.kill(engine, signal.SIGSTOP)  # it cannot end in order
    running.send_signal(signal.SIGINT)
    wait_until(lambda: "stopping cleanly" in log.read_text(), "the word of the first Ctrl-C")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    record = the_record(tmp_path)
    assert record.name.endswith(".partial")
    assert f"rtgauge resume {record}" in only_error(log.read_text())
    assert document((record / "run.json").read_text())["steps"] == []
    assert list((record / "steps").iterdir()) == []
    wait_until(lambda: alive(below) == [], "everything to end")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_ends_are_in_order_too(
    tmp_path: Path, log: Path, running: subprocess.Popen[str], number: signal.Signals
) -> None:
    running.send_signal(number)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert document((the_record(tmp_path) / "run.json").read_text())["state"] == "interrupted"
    assert "Traceback" not in log.read_text()


def test_the_engine_killed(tmp_path: Path, log: Path) -> None:
    process = start("run", *LONG, "--json", "--out", tmp_path / "out", log=log)
    try:
        wait_until(lambda: measured_lines(tmp_path) >= 2, "windows in the stream")
        os.kill(the_engine(process.pid), signal.SIGKILL)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 3
    (step,) = document(output)["steps"]
    assert [mark["severity"] for mark in step["marks"] if mark["name"] == "engine-died"] == ["invalid"]
    assert step["end_reason"] == "died"
    assert step["total"]["count"] > 0
    assert "Traceback" not in log.read_text()
    assert (the_record(tmp_path) / "report.html").is_file()


def test_the_guard_of_the_run_killed(tmp_path: Path, log: Path) -> None:
    """Nothing holds the machine for this run any more: the step at hand is kept, the next is not begun."""
    process = start(
        "run",
        "--load",
        "idle",
        "--duration",
        "2s",
        "--repeats",
        20,
        *SHORT,
        "--out",
        tmp_path / "out",
        log=log,
    )
    try:
        wait_until(lambda: measured_lines(tmp_path) >= 1, "a window in the stream")
        (guard,) = [pid for pid in find(process.pid, "--lock") if " -- " not in command_line(pid)]
        os.kill(guard, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 3
    line = only_error(log.read_text())
    assert "guard" in line
    record = the_record(tmp_path)
    assert f"rtgauge resume {record}" in line
    assert 1 <= len(document((record / "run.json").read_text())["steps"]) < 20


def test_the_guard_of_the_run_killed_in_a_long_step(tmp_path: Path, log: Path) -> None:
    """The step is not measured to its end without the machine: what there is is kept."""
    process = start("run", *LONG, "--out", tmp_path / "out", log=log)
    try:
        wait_until(lambda: measured_lines(tmp_path) >= 2, "windows in the stream")
        (guard,) = [pid for pid in find(process.pid, "--lock") if " -- " not in command_line(pid)]
        os.kill(guard, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 3
    assert "rtgauge restore, restores" in only_error(log.read_text())
    record = the_record(tmp_path)
    (name,) = document((record / "run.json").read_text())["steps"]
    step = document((record / "steps" / name / "step.json").read_text())
    assert step["end_reason"] == "stopped"
    assert [mark["severity"] for mark in step["marks"] if mark["name"] == "lease-lost"] == ["invalid"]


@pytest.mark.load
def test_while_a_load_warms_up(tmp_path: Path, log: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text('load-warm-up = "10min"\n[[step]]\nload = "cpu"\n')
    process = start("run", plan, "--out", tmp_path / "out", log=log)
    try:
        wait_until(lambda: find(process.pid, "stress-ng") != [], "the load")
        below = family(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    assert "Traceback" not in log.read_text()
    assert alive(below) == []


@pytest.mark.load
def test_a_load_that_dies_makes_the_step_invalid(tmp_path: Path, log: Path) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text('load-warm-up = "100ms"\n[[step]]\nload = "cpu"\nduration = "4s"\nwarm-up = "100ms"\n')
    process = start("run", plan, "--json", "--out", tmp_path / "out", log=log)
    try:
        wait_until(lambda: measured_lines(tmp_path) >= 1, "a window in the stream")
        for pid in find(process.pid, "stress-ng"):
            if " guard " not in command_line(pid):
                os.kill(pid, signal.SIGKILL)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    (step,) = document(output)["steps"]
    assert [mark["severity"] for mark in step["marks"] if mark["name"] == "load-died"] == ["invalid"]
    assert process.returncode == 3


@pytest.mark.slow
def test_held_for_longer_than_the_lease(tmp_path: Path, log: Path) -> None:
    """Ctrl-Z: the engine does not measure on without its host, and what it had is marked."""
    process = start("run", *LONG, "--repeats", 2, "--out", tmp_path / "out", log=log)
    try:
        wait_until(lambda: measured_lines(tmp_path) >= 2, "windows in the stream")
        below = family(process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: alive(below) == [], "the lease to end")
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 3
    record = the_record(tmp_path)
    assert f"rtgauge resume {record}" in only_error(log.read_text())
    (name,) = document((record / "run.json").read_text())["steps"]
    step = document((record / "steps" / name / "step.json").read_text())
    assert [mark["severity"] for mark in step["marks"] if mark["name"] == "lease-lost"] == ["invalid"]
