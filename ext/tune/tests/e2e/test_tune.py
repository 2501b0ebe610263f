# SPDX-License-Identifier: MIT
"""A real tuning: Ctrl-C and resume, everything put back after kill -9, files to keep, and wrong input."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.processes import command_line, find
from tests.support.cli import PATIENCE_S, end, invoke, only_error, rtgauge, start, wait_until
from tests.support.real_record import document

MIGRATION = Path("/proc/sys/kernel/timer_migration")
TUNE = (
    "tune", "--require", "latency<=1us", "--only", "timer-migration", "--load", "idle", "--confirm-load", "cpu",
    "--seed", 1,
)  # fmt: skip


def a_trial(out: Path) -> bool:
    return any(out.glob("*/steps/*timer-migration*/step.json"))


@pytest.mark.engine
@pytest.mark.root
def test_ctrl_c_keeps_results_and_resume_reaches_an_answer(tmp_path: Path) -> None:
    before, out = MIGRATION.read_text(), tmp_path / "out"
    process = start(*TUNE, "--duration", "100ms", "--budget", "2min", "--out", out, log=tmp_path / "stderr")
    try:
        wait_until(lambda: a_trial(out), "a trial")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode == 130
    assert output.startswith("UNFINISHED")
    assert MIGRATION.read_text() == before
    (record,) = out.iterdir()

    resumed = rtgauge("resume", record, "--wait", "10min", "--json")
    result = document(resumed.stdout)
    assert resumed.returncode == result["status"] == 1
    assert result["outcome"] in {"no gain shown", "better"}
    assert result["before"]["word"] == "fails"
    assert [test["changed"] for test in result["tests"]][:1] == [["timer-migration"]]
    assert MIGRATION.read_text() == before
    (whole,) = out.iterdir()
    assert (whole / "tune.html").is_file()
    shown = invoke("resume", whole, "--json", "--files", tmp_path / "keep")
    assert document(shown.stdout) == {**result, "record": str(whole)}
    assert (tmp_path / "keep").is_dir() == (result["outcome"] == "better")


@pytest.mark.engine
@pytest.mark.root
def test_kill_9_in_a_trial_is_put_back(tmp_path: Path) -> None:
    before, out = MIGRATION.read_text(), tmp_path / "out"
    process = start(*TUNE, "--duration", "1s", "--budget", "5min", "--out", out, log=tmp_path / "stderr")
    try:
        wait_until(lambda: MIGRATION.read_text() != before, "a trial in force")
        process.kill()
        process.wait(timeout=PATIENCE_S)
        assert rtgauge("restore").returncode == 0
    finally:
        end(process)
    assert MIGRATION.read_text() == before


@pytest.mark.engine
@pytest.mark.root
def test_what_a_hung_tuning_has_set_is_put_back_by_the_guard(tmp_path: Path) -> None:
    before, out = MIGRATION.read_text(), tmp_path / "out"
    process = start(*TUNE, "--duration", "1s", "--budget", "5min", "--out", out, log=tmp_path / "stderr")
    try:
        wait_until(lambda: MIGRATION.read_text() != before, "a trial in force")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: MIGRATION.read_text() == before, "the guard to put it back", 2 * PATIENCE_S)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert MIGRATION.read_text() == before


@pytest.mark.engine
@pytest.mark.root
@pytest.mark.alone
def test_a_hanging_trial_is_undone_and_the_search_continues(tmp_path: Path) -> None:
    before, out = MIGRATION.read_text(), tmp_path / "out"
    process = start(*TUNE, "--duration", "1s", "--budget", "5min", "--out", out, log=tmp_path / "stderr")
    try:
        wait_until(lambda: hung(process.pid, before), "a trial that hangs")
        wait_until(lambda: MIGRATION.read_text() == before, "the trial to be put back", 2 * PATIENCE_S)
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    assert process.returncode in {1, 4}
    assert "Left out: deployment settings=timer-migration" in output
    assert MIGRATION.read_text() == before


def hung(pid: int, as_is: str) -> bool:
    """Stop the engine of a trial, so that it never ends by itself; False if no trial is in force."""
    engines = [
        actual for actual in find(pid, "rtgauge-engine wakeup") if " guard " not in command_line(actual)
    ]
    if MIGRATION.read_text() == as_is or len(engines) != 1:
        return False
    with suppress(ProcessLookupError):
        os.kill(engines[0], signal.SIGSTOP)
        if MIGRATION.read_text() != as_is:
            return True
        os.kill(engines[0], signal.SIGCONT)
    return False


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "say which requirement the machine must meet"),
        (("--require", "latency<=1us", "--budget", "10s"), "too short for one test"),
        (("--require", "jitter<=1us"), "tune judges by latency"),
        (("--require", "latency<=1us", "--only", "thpp"), "'thpp' is not a setting"),
        (("--require", "latency<=1us", "--cpu", "x"), "give CPUs such as"),
        (("--require", "latency<=1us", "--confirm-load", "cpu"), "a load that --load does not"),
        (("--require", "latency<=1us", "--budget", "0"), "--budget 0s is too short for one test"),
        (("--require", "latency<=1us", "--cpu", "4000"), "CPU 4000 is not online; choose from 0"),
        (("--require", "latency<=1us", "--load", "cpu,nosuch"), "--load: unknown load 'nosuch'"),
        (("--require", "latency<=1us", "--duration", "0s"), "--duration 0s is too short to measure anything"),
        (("--require", "latency<=1us", "--confirm-load", ","), "--confirm-load ',' does not contain a name"),
        (("--isolate", "foo"), "--isolate: 'foo' is not a whole number"),
        (("--isolate", "4096"), "at least one must remain"),
    ],
)
def test_wrong_input_is_one_line(words: tuple[str, ...], why: str) -> None:
    completed = invoke("tune", *words)
    assert completed.returncode == 2
    assert why in only_error(completed.stderr)


@pytest.mark.engine
def test_a_dry_run_lists_what_could_be_tried_and_changes_nothing(tmp_path: Path) -> None:
    completed = invoke("tune", "--dry-run", "--only", "timer-migration", cwd=tmp_path)
    assert completed.returncode == 0
    assert "Never touched" in completed.stdout
    assert not any(tmp_path.iterdir())


SYSCTL = Path("/etc/sysctl.d/rtgauge-tune.conf")


@pytest.mark.engine
@pytest.mark.root
def test_what_was_kept_is_applied_drifts_and_is_removed(tmp_path: Path) -> None:
    before = MIGRATION.read_text()
    kept = {"0": "1", "1": "0"}[before.strip()]
    text = f"# before: {before.strip()}\nkernel.timer_migration = {kept}\n"
    (tmp_path / "rtgauge-tune.conf").write_text(text)
    try:
        applied = rtgauge("tune", "apply", tmp_path)
        assert applied.returncode == 0, applied.stderr
        assert MIGRATION.read_text().strip() == kept
        assert SYSCTL.read_text().endswith(text)
        assert f"applied  {MIGRATION} = {kept} (before: {before.strip()})" in applied.stdout
        assert rtgauge("audit", "--profile", tmp_path).returncode == 0
        again = rtgauge("tune", "apply", tmp_path)
        assert "rtgauge restore --applied" in only_error(again.stderr)
        MIGRATION.write_text(before)
        drifted = rtgauge("audit", "--profile", tmp_path)
        assert drifted.returncode == 1
        assert f"{MIGRATION} is {before.strip()}; rtgauge tune kept {kept}" in drifted.stdout
        MIGRATION.write_text(kept)
    finally:
        removed = rtgauge("restore", "--applied")
    assert "restored 1 setting" in removed.stdout
    assert MIGRATION.read_text() == before
    assert not SYSCTL.exists()
    again = rtgauge("restore", "--applied")
    assert (again.returncode, again.stderr) == (0, "")


PROGRAM = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
while True:
    time.sleep(0.002)
"""


@pytest.mark.engine
@pytest.mark.root
def test_a_program_of_the_users_decides(tmp_path: Path) -> None:
    completed = rtgauge(
        "tune", "--require", "response<=1ns", "--only", "timer-slack,program-priority", "--duration", "200ms",
        "--budget", "2min", "--json", "--out", tmp_path, "--", sys.executable, "-c", PROGRAM,
    )  # fmt: skip
    result = document(completed.stdout)
    assert result["before"]["word"] == "fails"
    assert {name for test in result["tests"] for name in test["changed"]} == {
        "timer-slack",
        "program-priority",
    }
