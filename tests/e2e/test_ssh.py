# SPDX-License-Identifier: MIT
"""Targets over SSH: a machine behind an sshd of our own that has BusyBox and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from rtgauge.errors import MeasureError
from rtgauge.target.engine_path import engine_path
from rtgauge.target.open_target import open_target
from rtgauge.target.ssh_target import SshTarget
from tests.support.cli import PATIENCE_S, end, error_line, good, invoke, start, wait_until
from tests.support.machine import Machine, client
from tests.support.over_ssh import left_on, over_ssh
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]
QUICK = ("--set", "warm-up=100ms", "--load", "idle", "--duration", "500ms")
UNCHANGED = "/proc/sys/kernel/sched_rr_timeslice_ms"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine that is left as it was by every test."""
    with Machine(tmp_path_factory.mktemp("board"), noise="Welcome to the board") as machine:
        yield machine
        assert left_on(machine) == ""


def test_a_probe(board: Machine) -> None:
    completed = good(
        over_ssh(
            board,
            "probe",
            "wakeup",
            "--target",
            board.target,
            "--duration",
            "500ms",
            "--warm-up",
            "100ms",
            "--json",
        )
    )
    content = document(completed.stdout)
    (step,) = content["steps"]
    assert step["key"]["targets"] == {"self": board.target}
    assert step["total"]["count"] + step["total"]["missed"] == 500 * len(step["cpus"])
    (facts,) = content["systems"].values()
    assert facts["host"] == "board"
    assert left_on(board) == ""


def test_samples_are_fetched(board: Machine, tmp_path: Path) -> None:
    file = tmp_path / "latencies.csv"
    good(
        over_ssh(
            board,
            "probe",
            "wakeup",
            "--target",
            board.target,
            "--count",
            "200",
            "--warm-up",
            "0s",
            "--samples",
            file,
        )
    )
    # one line a sample, and one of names
    assert len(file.read_text().splitlines()) > 100
    assert left_on(board) == ""


def test_clocks_are_those_of_the_target(board: Machine) -> None:
    content = document(
        good(
            over_ssh(board, "probe", "calibrate", "--target", board.target, "--count", "1000", "--json")
        ).stdout
    )
    assert {calibration["clock"] for calibration in content["steps"][0]["calibrations"]} >= {
        "CLOCK_MONOTONIC",
        "CLOCK_REALTIME",
    }


def test_facts_and_audit(board: Machine) -> None:
    facts = document(good(over_ssh(board, "audit", "--facts", "--target", board.target, "--json")).stdout)
    assert facts["host"] == "board"
    audit = over_ssh(board, "audit", "--target", board.target, "--json")
    assert audit.returncode in {0, 1}
    assert document(audit.stdout)
    assert left_on(board) == ""


def test_kernel_space_without_headers_is_one_line(board: Machine) -> None:
    """It has nothing but BusyBox. The kernel is this machine's, which may take no modules at all."""
    line = error_line(
        over_ssh(
            board, "probe", "response", "--space", "kernel", "--target", board.target, "--duration", "1s"
        ),
        3,
    )
    assert (
        f"the headers of the kernel {os.uname().release} are not installed on {board.target}"
        if Path("/proc/modules").exists()
        else "cannot load modules"
    ) in line
    assert left_on(board) == ""


def test_another_machines_deployments_are_shown_without_traces(board: Machine) -> None:
    shown = good(over_ssh(board, "deploy", "show", "--target", board.target)).stdout
    assert "Single" in shown
    line = good(over_ssh(board, "deploy", "cmdline", "Single", "--target", board.target)).stdout
    assert "maxcpus=1" in line
    assert "nothing had to be restored" in good(over_ssh(board, "restore", "--target", board.target)).stdout
    assert f"rtgauge restore --applied --target {board.target}" in error_line(
        over_ssh(board, "deploy", "apply", "as-is", "--target", board.target), 2
    )
    assert left_on(board) == ""


@pytest.mark.slow
def test_two_machines_in_one_record_and_compared(board: Machine, tmp_path: Path) -> None:
    with Machine(tmp_path, "cart", busybox=False) as cart:
        plan = tmp_path / "plan.toml"
        plan.write_text(
            f'targets = ["{board.target}/", "{cart.target}"]\n[[step]]\nduration = "400ms"\nwarm-up '
            '= "0s"\n[[step]]\nload = "cpu"\nduration = "400ms"\n'
        )
        env: dict[str, str | None] = {"PATH": f"{client(tmp_path, [board, cart])}:{os.environ['PATH']}"}
        out = tmp_path / "out"
        content = document(good(invoke("run", plan, "--out", out, "--json", env=env)).stdout)
        assert content["run"]["targets"] == [board.target, cart.target]
        assert sorted(facts["host"] for facts in content["systems"].values()) == ["board", "cart"]
        measured = [(step["key"]["targets"]["self"], step["key"]["load"]) for step in content["steps"]]
        # the board has no stress-ng, which is said; the other machine comes after it
        assert measured[0] == (board.target, "idle")
        assert sorted(measured[1:]) == [(cart.target, "cpu"), (cart.target, "idle")]
        assert [missing["what"] for missing in content["run"]["left_out"]] == [f"load cpu on {board.target}"]
        (record,) = out.iterdir()
        assert not list(record.glob("targets/*/session.json"))
        shown = good(invoke("show", record)).stdout
        assert "idle, board" in shown
        assert "cpu, cart" in shown
        compared = good(invoke("compare", record)).stdout
        assert "board" in compared
        assert "cart" in compared
        assert left_on(cart) == ""


def test_this_machine_and_another(board: Machine, tmp_path: Path) -> None:
    completed = over_ssh(
        board,
        "run",
        "--target",
        "local",
        "--target",
        board.target,
        "--out",
        tmp_path / "out",
        "--json",
        *QUICK,
    )
    content = document(good(completed).stdout)
    assert [step["key"]["targets"]["self"] for step in content["steps"]] == ["local", board.target]


def test_a_target_that_is_held_names_who_holds_it(
    board: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{board.client()}:{os.environ['PATH']}")
    with open_target(board.target, "other-run", "the other's label"):
        completed = invoke(
            "run", "--target", board.target, "--out", tmp_path / "out", *QUICK, wait_for_lock=False
        )
    line = error_line(completed, 3)
    assert "held by run other-run" in line
    assert "the other's label" in line
    assert board.target in line
    assert not (tmp_path / "out").exists()


def test_what_a_dead_run_left_is_put_back(board: Machine, tmp_path: Path) -> None:
    """The journal is the target's own: a setting of a run that is dead is put back as the next one begins."""
    here = Path(UNCHANGED).read_text().strip()
    expected = "50" if here != "50" else "60"
    there = board.folder / "root" / "engine"
    there.write_bytes(engine_path().read_bytes())
    there.chmod(0o755)
    try:
        completed = board.run(f"sh -c '/engine set --run dead --owner-pid $$ -- {UNCHANGED} {expected}'")
        assert '"ok":true' in completed
        assert Path(UNCHANGED).read_text().strip() == expected
        finished = over_ssh(
            board, "run", "--target", board.target, "--out", tmp_path / "out", "--json", *QUICK
        )
        marks = document(good(finished).stdout)["run"]["marks"]
        assert [mark["name"] for mark in marks] == ["restored-before"]
        assert Path(UNCHANGED).read_text().strip() == here
    finally:
        Path(UNCHANGED).write_text(here)


def test_ctrl_c_ends_it_there_too_and_it_can_be_resumed(board: Machine, tmp_path: Path) -> None:
    env: dict[str, str | None] = {"PATH": f"{board.client()}:{os.environ['PATH']}"}
    out = tmp_path / "out"
    process = start(
        "run",
        "--target",
        board.target,
        "--out",
        out,
        "--load",
        "idle",
        "--duration",
        "20s",
        *QUICK[:2],
        env=env,
        log=tmp_path / "log",
    )
    try:
        wait_until(
            lambda: '"step": {' in "".join(file.read_text() for file in out.glob("*/targets/*/session.json")),
            "the measurement to begin",
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    finally:
        end(process)
    assert "rtgauge resume" in (tmp_path / "log").read_text()
    assert left_on(board) == ""
    (record,) = out.iterdir()
    run = record / "run.json"
    run.write_text(run.read_text().replace('"duration_ns": 20000000000', '"duration_ns": 300000000'))
    good(over_ssh(board, "resume", record))


NO_TARGETS = (
    "ssh://-oProxyCommand=touch proof",
    "ssh://x;touch proof",
    "ssh://$(touch proof)",
    "ssh://a\nb",
    "ssh://root@",
    "board",
    "lab:none",
    "ssh://a:pw@b",
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *((("probe", "wakeup"), name) for name in NO_TARGETS),
        *(((command,), NO_TARGETS[0]) for command in ("run", "system", "audit")),
    ],
)
def test_what_is_no_target_is_refused(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    error_line(invoke(*command, "--target", name, cwd=tmp_path), 2)
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    assert "twice" in error_line(invoke("run", "--target", "local", "--target", "local", cwd=tmp_path), 2)


def test_resume_takes_no_target(tmp_path: Path) -> None:
    assert "--target" in error_line(invoke("resume", tmp_path, "--target", "local"), 2)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--hold", "0s"),
        *((option, text) for option in ("--hold", "--wait") for text in ("-1s", "8d", "x", "")),
    ],
)
def test_hold_and_wait_are_times(tmp_path: Path, option: str, text: str) -> None:
    assert option in error_line(invoke("run", option, text, cwd=tmp_path), 2)


@pytest.mark.parametrize("how", ["close", "let go"])
def test_settings_are_restored_at_the_end_or_after_the_lease(
    board: Machine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("PATH", f"{board.client()}:{os.environ['PATH']}")
    knob = Path(UNCHANGED)
    here = knob.read_text().strip()
    expected = "50" if here != "50" else "60"
    target = open_target(board.target, "setting", "a test", lease_ns=4_000_000_000)
    assert isinstance(target, SshTarget)
    try:
        with pytest.raises(MeasureError, match="not a path"):
            target.agent("set", "--", "relative", "1")
        (answer,) = target.agent("set", "--", UNCHANGED, expected)
        assert answer["ok"]
        assert knob.read_text().strip() == expected
        target.close() if how == "close" else target.let_go()
        wait_until(lambda: left_on(board) == "", "the session to end")
        assert knob.read_text().strip() == here
    finally:
        target.let_go()
        knob.write_text(here)


@pytest.mark.tracefs
@pytest.mark.real_time
def test_a_program_is_started_there_watched_and_ended(board: Machine) -> None:
    name = f"watched-{os.getpid()}"
    board.run(
        f"printf '#!/bin/sh\\necho begun; while :; do sleep 0.01; done\\n' >/tmp/{name}; chmod +x /tmp/{name}"
    )
    completed = good(
        over_ssh(
            board, "watch", "--target", board.target, "--duration", "1s", "--no-explain", "--", f"/tmp/{name}"
        )
    )
    assert f"task {name[:15]}" in completed.stdout
    late = "sleep 0.3; printf late >/proc/$$/comm; while :; do sleep 0.01; done"
    words = ("--threads", "late", "--duration", "300ms", "--no-explain", "--", "sh", "-c", late)
    with mock.patch("rtgauge.cli.watch_command.SETTLE_S", 0.0):
        assert "task late" in good(over_ssh(board, "watch", "--target", board.target, *words)).stdout
    assert "begun" in completed.stderr
    assert board.run(f"cat /proc/[0-9]*/comm 2>/dev/null | grep -x '{name[:15]}'; rm /tmp/{name}") == ""
    assert "ended at once on" in error_line(
        over_ssh(board, "watch", "--target", board.target, "--", "false"), 3
    )
