# SPDX-License-Identifier: MIT
"""A connection that breaks, or an rtgauge that dies: the measurement goes on, is picked up, or ends by its
lease with everything put back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_ssh import left_on
from tests.support.cli import PATIENCE_S, end, error_line, good, invoke, only_error, start, wait_until
from tests.support.machine import Machine
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.slow]
SHORT = ("--set", "warm-up=100ms", "--set", "interval=1ms")


def environment(machine: Machine) -> dict[str, str | None]:
    return {"PATH": f"{machine.client()}:{os.environ['PATH']}"}


def begin(
    machine: Machine,
    folder: Path,
    *,
    duration: str = "5s",
    load: str = "idle",
    wait: str = "1min",
    more: tuple[str, ...] = (),
) -> subprocess.Popen[str]:
    """A run in the middle of its measurement."""
    words = [
        "run",
        "--target",
        machine.target,
        "--out",
        folder / "out",
        "--load",
        load,
        "--duration",
        duration,
        "--hold",
        wait,
        *SHORT,
        *more,
    ]
    process = start(*words, env=environment(machine), log=folder / "log")
    try:
        # What is said on the way there is over then: the engine was told to go, and no other command uses the
        # connection.
        wait_until(
            lambda: any(
                '"type":"window"' in file.read_text()
                for file in (folder / "out").glob("*/steps/.*/stream.ndjson")
            ),
            "a window",
        )
    except BaseException:
        end(process)
        raise
    return process


def resume(machine: Machine, folder: Path) -> dict[str, Any]:
    return document(
        good(invoke("resume", "--out", folder / "out", "--json", env=environment(machine))).stdout
    )


def marks(step: dict[str, Any]) -> set[str]:
    return {mark["name"] for mark in step["marks"]} & {
        "picked-up",
        "connection-broken",
        "engine-died",
        "load-died",
        "lease-lost",
        "stopped",
    }


def complete(step: dict[str, Any], seconds: int) -> bool:
    """Every activation of the whole time, in all that was kept."""
    return bool(step["total"]["count"] + step["total"]["missed"] == 1000 * seconds * len(step["cpus"]))


def test_the_connection_breaks_and_comes_back(tmp_path: Path) -> None:
    with Machine(tmp_path) as board:
        process = begin(board, tmp_path, more=("--json", "--set", "samples=true"))
        try:
            board.break_connections()
            output, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            end(process)
        assert process.returncode == 0, (tmp_path / "log").read_text()
        (step,) = document(output)["steps"]
        assert marks(step) == {"connection-broken"}
        assert complete(step, 5)
        assert left_on(board) == ""


@pytest.mark.load
@pytest.mark.parametrize("load", ["idle", "cpu"])
def test_killed_and_picked_up(tmp_path: Path, load: str) -> None:
    with Machine(tmp_path, busybox=load == "idle") as board:
        process = begin(board, tmp_path, load=load, duration="6s", more=("--set", "samples=true"))
        process.send_signal(signal.SIGKILL)
        end(process)
        resumed = resume(board, tmp_path)
        (step,) = resumed["steps"]
        assert marks(step) == {"picked-up"}
        assert complete(step, 6)
        assert step["series"][0]["exact_quantiles"]
        if load == "cpu":
            (part,) = step["load"]["parts"]
            assert part["ended_early"] is None
            assert part["reached"]["cpu_share"] > 0
        (record,) = (tmp_path / "out").iterdir()
        assert record.name == resumed["run"]["id"]
        assert left_on(board) == ""


def test_a_measurement_is_picked_up_after_a_long_absence(tmp_path: Path) -> None:
    with Machine(tmp_path) as board:
        process = begin(board, tmp_path, wait="2min")
        try:
            board.stop_sshd()
            assert process.wait(PATIENCE_S) == 3
        finally:
            end(process)
        error = only_error((tmp_path / "log").read_text().partition("rtgauge: ")[2].join(["rtgauge: ", ""]))
        assert "cannot be reached" in error
        assert "rtgauge resume" in error
        board.start_sshd()
        (step,) = resume(board, tmp_path)["steps"]
        assert marks(step) == {"picked-up"}
        assert complete(step, 5)
        assert left_on(board) == ""


def test_a_run_that_goes_on_is_not_resumed(tmp_path: Path) -> None:
    with Machine(tmp_path) as board:
        process = begin(board, tmp_path, duration="10min")
        try:
            completed = invoke(
                "resume", "--out", tmp_path / "out", env=environment(board), wait_for_lock=False
            )
            assert "already follows the program" in error_line(completed, 3)
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)
            end(process)


def test_nobody_comes_back_and_the_lease_puts_everything_back(tmp_path: Path) -> None:
    with Machine(tmp_path) as board:
        process = begin(board, tmp_path, duration="3s", wait="2s")
        process.send_signal(signal.SIGKILL)
        end(process)
        wait_until(lambda: left_on(board) == "", "the lease to run out")
        # What was lost with it is measured again.
        (step,) = resume(board, tmp_path)["steps"]
        assert marks(step) == set()
        assert complete(step, 3)
        assert left_on(board) == ""


def test_a_session_file_that_is_damaged_is_no_session(tmp_path: Path) -> None:
    with Machine(tmp_path) as board:
        process = begin(board, tmp_path, duration="2s", wait="1s")
        process.send_signal(signal.SIGKILL)
        end(process)
        (file,) = (tmp_path / "out").glob("*/targets/*/session.json")
        file.write_text('{"session": {"name": "$(touch /tmp/proof)"}, "step": [')
        wait_until(lambda: left_on(board) == "", "the lease to run out")
        (step,) = resume(board, tmp_path)["steps"]
        assert complete(step, 2)
        assert board.run("ls /tmp") == ""


def test_a_session_that_a_record_names_elsewhere_is_not_run(tmp_path: Path) -> None:
    """A record from elsewhere names a folder with a program that it wants run, and one that it wants
    removed.
    """
    with Machine(tmp_path) as board:
        process = begin(board, tmp_path, duration="2s", wait="1s")
        process.send_signal(signal.SIGKILL)
        end(process)
        wait_until(lambda: left_on(board) == "", "the lease to run out")
        board.run("umask 077; mkdir -p /tmp/evil/session /tmp/precious; echo x >/tmp/precious/file")
        board.run("printf '#!/bin/sh\\ntouch /tmp/proof' >/tmp/evil/engine; chmod 700 /tmp/evil/engine")
        (file,) = (tmp_path / "out").glob("*/targets/*/session.json")
        written = json.loads(file.read_text())
        written["session"] |= {"name": "/tmp/evil", "folder": "/tmp/evil"}
        written["step"] |= {
            "files": "/tmp/precious",
            "program": {"name": "../evil", "folder": "/tmp/evil", "pid": 1},
        }
        file.write_text(json.dumps(written))
        (step,) = resume(board, tmp_path)["steps"]
        assert complete(step, 2)
        assert board.run("ls /tmp /tmp/precious").split() == [
            "/tmp:",
            "evil",
            "precious",
            "/tmp/precious:",
            "file",
        ]


def test_the_target_runs_out_of_room_in_the_middle(tmp_path: Path) -> None:
    with Machine(tmp_path, tmp="size=3m") as board:
        process = begin(board, tmp_path, duration="20s")
        try:
            board.run("cat /dev/zero >/tmp/fill 2>/dev/null")
            assert process.wait(PATIENCE_S) == 3
        finally:
            end(process)
        log = (tmp_path / "log").read_text()
        assert "the target's disk is full" in log
        assert "Traceback" not in log
        assert "rtgauge resume" in log
        board.run("rm /tmp/fill")
        assert left_on(board) == ""
