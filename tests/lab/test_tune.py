# SPDX-License-Identifier: MIT
"""A tuning of a guest, with a power cut in the middle of a trial."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.e2e.cli import end, good, only_error, rtgauge, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

TUNE_S = 1000
MIGRATION = "cat /proc/sys/kernel/timer_migration"
SHORT = ("--load", "idle", "--confirm-load", "cpu", "--cpus", 1, "--duration", "500ms", "--seed", 1)


def tune(lab: Lab, *words: object) -> dict[str, Any]:
    done = rtgauge("tune", *words, "--json", env=lab.env, timeout=TUNE_S)
    assert done.returncode in {0, 1, 4}, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_power_cut_in_a_trial_leaves_nothing_and_the_tuning_goes_on(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    before, out = lab.run_in(MIGRATION), tmp_path / "out"
    words = ("--only", "timer-migration", "--require", "latency<=1us hardness=95%", *SHORT)
    process = start(
        "tune", "--target", "lab:debian", *words, "--budget", "10min", "--out", out,
        log=tmp_path / "log", env=lab.env,
    )  # fmt: skip
    try:
        wait_until(lambda: lab.run_in(MIGRATION) != before, "a trial in force", TUNE_S)
        good(rtgauge("lab", "reset", "debian", env=lab.env))
        process.communicate(timeout=TUNE_S)
    finally:
        end(process)
    assert process.returncode == 3
    assert "rtgauge tune --resume" in only_error((tmp_path / "log").read_text())
    good(rtgauge("restore", "--target", "lab:debian", env=lab.env))
    assert lab.run_in(MIGRATION) == before
    (record,) = out.iterdir()
    result = tune(lab, "--resume", record)
    assert result["tests"][0]["changed"] == ["timer-migration"]
    assert lab.run_in(MIGRATION) == before
