# SPDX-License-Identifier: MIT
"""Master and slave of a signal probe on two machines: a cable to a machine behind an sshd of our own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.processes import alive, all_pids, command_line, family, find
from tests.e2e.test_ssh import left_on
from tests.support.cli import (
    PATIENCE_S,
    CommandResult,
    end,
    error_line,
    good,
    invoke,
    only_error,
    start,
    wait_until,
)
from tests.support.machine import Machine
from tests.support.messages import missing
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]
PORT = 7000
SHORT = ("--set", "warm-up=100ms", "--load", "idle")


class Board:
    """A machine, and the addresses of the cable to it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.here, self.there = machine.wire()
        self.env: dict[str, str | None] = {"PATH": f"{machine.client()}:{os.environ['PATH']}"}

    @property
    def target(self) -> str:
        return self.machine.target

    def slave_there(self) -> tuple[str, ...]:
        """What a probe is told where the slave is on the board."""
        return ("--target", self.target, "--peer", "local", "--path", f"udp:{self.there}:{PORT}")

    def rtgauge(self, *words: object, **options: Any) -> CommandResult:
        return invoke(*words, env=self.env, **options)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    with Machine(tmp_path_factory.mktemp("board")) as machine:
        yield Board(machine)


@pytest.fixture(autouse=True)
def nothing_left(board: Board) -> Iterator[None]:
    yield
    assert left_on(board.machine) == ""


def series(step: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (series["metric"], series["labels"]["role"], series["labels"]["machine"]): series
        for series in step["series"]
    }


def values(step: dict[str, Any], role: str) -> dict[str, Any]:
    (actual,) = [result["values"] for result in step["results"] if result["labels"]["role"] == role]
    return actual


def start_long(board: Board, folder: Path) -> subprocess.Popen[str]:
    """A response whose slave is on the board, for longer than anybody waits."""
    words = (
        "--set",
        "probe=response",
        "--set",
        "peer=local",
        "--set",
        f"path=udp:{board.there}:{PORT}",
        "--set",
        "interval=5ms",
    )
    return start(
        "run",
        *words,
        "--target",
        board.target,
        "--duration",
        "60s",
        *SHORT,
        "--json",
        "--out",
        folder / "out",
        env=board.env,
        log=folder / "log",
    )


def wait_measured(folder: Path) -> None:
    """Until the first window of the measured phase."""
    wait_until(
        lambda: any(
            '"phase":"measure"' in path.read_text() for path in folder.glob("out/*/steps/.*/stream.ndjson")
        ),
        "a window",
    )


def test_a_slave_on_another_machine(board: Board) -> None:
    completed = board.rtgauge(
        "probe",
        "response",
        *board.slave_there(),
        "--interval",
        "2ms",
        "--cycles",
        400,
        "--require",
        "response<=10s",
        "--json",
    )
    # too few to tell, or a stimulus was skipped on a busy machine
    good(completed, completed.returncode if completed.returncode in {1, 4} else 4)
    content = document(completed.stdout)
    (step,) = content["steps"]
    assert step["key"]["targets"] == {"self": board.target, "master": "local"}
    assert step["key"]["parameters"]["role"] == "slave"
    assert {facts["host"] for facts in content["systems"].values()} == {"board", os.uname().nodename}
    # the machine that is examined comes first
    assert list(content["systems"])[-1] == "local"
    master, slave = (
        series(step)["response", "master", "local"],
        series(step)["response", "slave", board.target],
    )
    reported = values(step, "master")
    assert reported["stimuli"] == 400
    # what was measured by the master is what the step is about
    assert step["total"]["count"] == master["count"] == reported["answers"]
    # it had the warm-up too, and may have lost a few of those
    assert 400 - reported["lost"] <= values(step, "slave")["answers"] <= 400 + 200
    assert 0 < slave["count"] <= values(step, "slave")["answers"]
    assert slave["p50_ns"] < master["p50_ns"]
    assert (step["end_reason"], step["peer"]["target"], step["peer"]["role"]) == ("count", "local", "master")
    assert step["peer"]["series"] == [master["series"]]
    assert step["peer"]["clock_uncertainty_ns"] > 0
    assert {verdict["step"] for verdict in content["run"]["verdicts"]} == {None, step["id"]}


def test_a_task_here_that_is_observed_there(board: Board) -> None:
    words = (
        "--peer",
        board.target,
        "--path",
        f"udp:{board.there}:{PORT}",
        "--period",
        "4ms",
        "--duration",
        "800ms",
        "--warm-up",
        "100ms",
        "--json",
    )
    (step,) = document(good(board.rtgauge("probe", "periodic", *words)).stdout)["steps"]
    assert step["key"]["targets"] == {"self": "local", "slave": board.target}
    actual = series(step)
    assert set(actual) == {
        ("latency", "self", "local"),
        ("jitter", "self", "local"),
        ("jitter", "observer", board.target),
    }
    assert step["total"]["metric"] == "latency"
    assert actual["latency", "self", "local"]["count"] + actual["latency", "self", "local"]["missed"] == 400
    assert values(step, "observer")["edges"] > 0


@pytest.mark.slow
def test_a_plan_with_a_load_on_the_target_alone(board: Board, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[defaults]\nprobe = "response"\nrole = "slave"\npeer = "{board.target}/"\npath = '
        f'"udp:{board.here}:{PORT}"\nduration = "1s"\nwarm-up = "100ms"\n'
        'samples = true\n[[step]]\n[[step]]\nload = "cpu"\n'
    )
    content = document(good(board.rtgauge("run", plan, "--out", tmp_path / "out", "--json")).stdout)
    # the board has no stress-ng: that it is loaded shows that the load ran here
    assert sorted(step["key"]["load"] for step in content["steps"]) == ["cpu", "idle"]
    (record,) = (tmp_path / "out").iterdir()
    for step in content["steps"]:
        master, slave = (
            series(step)["response", "master", board.target],
            series(step)["response", "slave", "local"],
        )
        assert (master["exact_quantiles"], slave["exact_quantiles"]) == (True, False)
        folder = record / "steps" / step["id"]
        assert {path.name for path in folder.glob("samples-*")} == {f"samples-{master['series']}.i64"}
        assert (folder / "stream-slave.ndjson").read_text().count('"type":"end"') == 1
    shown = good(invoke("show", record, "--details")).stdout
    assert "slave on local" in shown
    page = (record / "report.html").read_text()
    assert f"master on {board.target}" in page
    assert "median" in good(invoke("show", "--frequency", record)).stdout.lower()


def test_a_slave_that_is_killed_ends_the_step_and_is_named(board: Board, tmp_path: Path) -> None:
    process = start_long(board, tmp_path)
    try:
        wait_measured(tmp_path)
        engines = [
            pid
            for pid in all_pids()
            if {"--role=slave", f"--path=udp:{board.there}:{PORT}"} <= set(command_line(pid).split())
            and " guard " not in command_line(pid)
        ]
        assert engines
        for pid in engines:
            os.kill(pid, signal.SIGKILL)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 3
    (step,) = document(output)["steps"]
    (mark,) = [mark for mark in step["marks"] if mark["name"] == "slave-died"]
    assert mark["severity"] == "invalid"
    assert board.target in mark["detail"]
    assert step["end_reason"] == "slave-died"
    assert step["total"]["count"] > 0


def test_ctrl_c_keeps_what_both_measured(board: Board, tmp_path: Path) -> None:
    process = start_long(board, tmp_path)
    try:
        wait_measured(tmp_path)
        below = family(process.pid)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    (step,) = document(output)["steps"]
    assert {"stopped"} <= {mark["name"] for mark in step["marks"]}
    assert "slave-died" not in {mark["name"] for mark in step["marks"]}
    assert series(step)["response", "slave", board.target]["count"] > 0
    assert alive(below) == []


def test_a_refusal_of_one_end_comes_before_measuring(board: Board, tmp_path: Path) -> None:
    words = ("--set", "probe=response", "--set", "peer=local", "--set", "path=udp:192.0.2.1:7000")
    line = error_line(
        board.rtgauge("run", *words, "--target", board.target, "--out", tmp_path / "out", *SHORT), 3
    )
    assert f"the slave on {board.target}" in line
    assert "address of the machine" in line
    assert not (tmp_path / "out").exists()


def test_a_path_that_leads_nowhere(board: Board) -> None:
    words = (
        "--target",
        board.target,
        "--peer",
        "local",
        "--path",
        f"udp:{board.there}:{PORT}",
        "--peer-path",
        f"udp:{board.there}:{PORT + 1}",
    )
    line = error_line(
        board.rtgauge("probe", "response", *words, "--interval", "20ms", "--timeout", "20ms"), 3
    )
    assert not missing(
        line, "stimuli", f"slave on {board.target}", f"on the peer: udp:{board.there}:{PORT + 1}"
    )


def test_the_peer_breaks_off_for_good(board: Board, tmp_path: Path) -> None:
    """The machine that is not examined: nothing of the step is kept, the target is left as it was, and the
    step is measured by `resume`.
    """
    out, log, plan = tmp_path / "out", tmp_path / "log", tmp_path / "plan.toml"
    plan.write_text(
        'order = "as-written"\n[defaults]\nprobe = "response"\nrole = "slave"\npeer = '
        f'"{board.target}"\npath = "udp:{board.here}:{PORT}"\ninterval = "5ms"\n'
        'warm-up = "100ms"\n[[step]]\nduration = "1s"\n[[step]]\nduration = "10min"\n'
    )
    process = start("run", plan, "--out", out, env=board.env, log=log)
    try:
        wait_until(lambda: any(out.glob("*/steps/0*")), "the first step")
        board.machine.stop_sshd()
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
        board.machine.start_sshd()
    assert process.returncode == 3
    line = only_error(log.read_text())
    assert "rtgauge resume" in line
    (record,) = out.iterdir()
    assert not find(process.pid, "--role")
    run = record / "run.json"
    run.write_text(run.read_text().replace('"duration_ns": 600000000000', '"duration_ns": 2000000000'))
    resumed = document(good(board.rtgauge("resume", record, "--json")).stdout)
    assert [step["end_reason"] for step in resumed["steps"]] == ["duration", "duration"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--peer", "local", "--path", "udp:127.0.0.1:7000"), "both the target and the peer"),
        (("--peer", "ssh://-oProxyCommand=reboot", "--path", "udp:127.0.0.1:7000"), "is not an address"),
        (("--peer", "ssh://box;reboot", "--path", "udp:127.0.0.1:7000"), "is not an address"),
        (("--peer", "ssh://box", "--path", "loop:pipe"), "does not leave the machine"),
        (
            ("--peer", "ssh://box", "--path", "udp:127.0.0.1:7000", "--peer-path", "loop:pipe"),
            "does not leave the machine",
        ),
        (("--peer", "ssh://box", "--path", "udp:127.0.0.1:7000", "--role", "both"), "plays only one role"),
        (("--peer-path", "udp:127.0.0.1:7000"), "add peer"),
        (("--peer-cpu", "1"), "add peer"),
        (
            ("--peer", "ssh://box", "--path", "udp:127.0.0.1:7000", "--role", "master", "--trace-parts"),
            "trace-parts splits the response of the slave",
        ),
    ],
)
def test_wrong_words(words: tuple[str, ...], reported: str) -> None:
    assert reported in error_line(invoke("probe", "response", *words), 2)
