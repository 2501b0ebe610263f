# SPDX-License-Identifier: MIT
"""A real tuning: Ctrl-C and resume, everything put back after kill -9, files to keep, and wrong input."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.cli import PATIENCE_S, end, invoke, only_error, rtgauge, start, wait_until
from tests.e2e.conftest import document

MIGRATION = Path("/proc/sys/kernel/timer_migration")
TUNE = (
    "tune", "--require", "latency<=1us", "--only", "timer-migration", "--load", "idle", "--confirm-load", "cpu",
    "--seed", 1,
)  # fmt: skip


def a_trial(out: Path) -> bool:
    return any(out.glob("*/steps/*timer-migration*/step.json"))


@pytest.mark.engine
@pytest.mark.root
def test_ctrl_c_keeps_what_was_measured_and_resume_goes_on_to_an_answer(tmp_path: Path) -> None:
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

    resumed = rtgauge("tune", "--resume", record, "--wait", "10min", "--json")
    result = document(resumed.stdout)
    assert resumed.returncode == result["status"] == 1
    assert result["outcome"] in {"nothing helps", "better"}
    assert result["before"]["word"] == "fails"
    assert [test["changed"] for test in result["tests"]][:1] == [["timer-migration"]]
    assert MIGRATION.read_text() == before
    (whole,) = out.iterdir()
    assert (whole / "tune.html").is_file()
    shown = invoke("tune", "--resume", whole, "--json", "--files", tmp_path / "keep")
    assert document(shown.stdout) == {**result, "record": str(whole)}
    assert (tmp_path / "keep").is_dir()


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


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "say what the machine has to keep"),
        (("--require", "latency<=1us", "--budget", "10s"), "too short for one test"),
        (("--require", "jitter<=1us"), "tune measures latency"),
        (("--require", "latency<=1us", "--only", "thpp"), "no setting 'thpp'"),
        (("--require", "latency<=1us", "--cpus", "x"), "give CPUs such as"),
        (("--require", "latency<=1us", "--confirm-load", "cpu"), "a load that --load does not"),
        (("--resume", "/nowhere"), "/nowhere"),
    ],
)
def test_wrong_input_is_one_line(words: tuple[str, ...], why: str) -> None:
    done = invoke("tune", *words)
    assert done.returncode == 2
    assert why in only_error(done.stderr)


@pytest.mark.engine
def test_a_dry_run_lists_what_could_be_tried_and_changes_nothing(tmp_path: Path) -> None:
    done = invoke("tune", "--dry-run", "--only", "timer-migration", cwd=tmp_path)
    assert done.returncode == 0
    assert "Never touched" in done.stdout
    assert not any(tmp_path.iterdir())
