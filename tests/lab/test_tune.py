# SPDX-License-Identifier: MIT
"""Tunings of a guest: with a power cut in the middle of a trial, and with a boot before the confirmation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ext.lab.tests.fake_lab import stock_kernel
from tests.support.cli import end, good, only_error, rtgauge, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.conftest import Lab

TUNE_S = 1000
MIGRATION = "cat /proc/sys/kernel/timer_migration"
SHORT = ("--load", "idle", "--confirm-load", "cpu", "--cpu", 1, "--duration", "500ms", "--seed", 1)


def tune(lab: Lab, *words: object) -> dict[str, Any]:
    completed = rtgauge("tune", *words, "--json", env=lab.env, timeout=TUNE_S)
    assert completed.returncode in {0, 1, 4}, completed.stderr
    result: dict[str, Any] = json.loads(completed.stdout)
    return result


def test_a_tuning_survives_a_power_cut_in_a_trial(lab: Lab, tmp_path: Path) -> None:
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
    assert "rtgauge resume" in only_error((tmp_path / "log").read_text())
    good(rtgauge("restore", "--target", "lab:debian", env=lab.env))
    assert lab.run_in(MIGRATION) == before
    (record,) = out.iterdir()
    completed = rtgauge("resume", record, "--json", env=lab.env, timeout=TUNE_S)
    result = json.loads(completed.stdout)
    assert result["tests"][0]["changed"] == ["timer-migration"]
    assert lab.run_in(MIGRATION) == before


HOG = """# busy for a while in each fifth of a second
while :; do
	dd if=/dev/zero of=/dev/null bs=1M count=60 2>/dev/null
	sleep 0.2
done
"""
START_HOG = "::respawn:/usr/bin/chrt -f 98 /usr/bin/taskset 2 /bin/sh /etc/hog\n"


def test_a_kept_setting_is_confirmed_after_another_boot(lab: Lab, tmp_path: Path) -> None:
    """A real-time hog that starts at each boot is moved off the measured CPU, and moved again for the
    confirmation.
    """
    lab.boot("debian")
    inittab = lab.run_in("cat /etc/inittab")
    etc = tmp_path / "overlay/etc"
    etc.mkdir(parents=True)
    (etc / "inittab").write_text(inittab + START_HOG)
    (etc / "hog").write_text(HOG)
    lab.stop()
    kept = stock_kernel()
    files = ("--kernel", next(kept.glob("vmlinuz-*")), "--modules", kept, "--overlay", tmp_path / "overlay")
    good(rtgauge("lab", "add", "hog", *files, env=lab.env))
    lab.boot("hog", smp="2")
    boot = lab.run_in("cat /proc/sys/kernel/random/boot_id")
    result = tune(
        lab, "--target", "lab:hog", "--require", "latency<=1ms hardness=95%", "--only", "rt-tasks-elsewhere",
        "--budget", "1h", "--out", tmp_path / "out", *SHORT,
    )  # fmt: skip
    assert [kept["rule"] for kept in result["kept"]] == ["rt-tasks-elsewhere"]
    assert result["confirmed"] is not None
    assert result["tests"][-1]["changed"] == ["rt-tasks-elsewhere"]
    assert lab.run_in("cat /proc/sys/kernel/random/boot_id") != boot
    lab.stop()
    good(rtgauge("lab", "rm", "hog", env=lab.env))
