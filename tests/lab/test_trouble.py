# SPDX-License-Identifier: MIT
"""What can go wrong with a machine while it is measured: its connection, its disk, its keys, its /tmp."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from ext.lab.tests.fake_lab import stock_kernel
from tests.lab.conftest import BUILD_S
from tests.support.cli import end, error_line, good, only_error, rtgauge, start, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Generator
    from pathlib import Path

    from tests.lab.conftest import Lab

SHORT = ("--load", "idle", "--set", "warm-up=100ms", "--set", "interval=10ms")
DEAF = "killall dropbear; sleep {}; dropbear -s -r /var/lib/rtgauge-lab/host-key"
"""Nobody is let in for so long, and who was in is out."""
UNDER_WAY_S = 120
ENDS_S = 240


@pytest.fixture(autouse=True)
def guest(lab: Lab) -> None:
    lab.boot("debian")


@pytest.fixture
def tmp_as_it_was(lab: Lab) -> Generator[None]:
    lab.run_in("mkdir -p /run/kept-tmp && mount -t tmpfs -o size=3m tmpfs /tmp")
    yield
    lab.run_in("rm -f /tmp/fill /var/tmp/fill /root/fill; umount /tmp")


def under_way(out: Path) -> bool:
    """Whether a step is being measured, and all that is said on the way there is over."""
    return any('"type":"window"' in path.read_text() for path in out.glob("*/steps/.*/stream.ndjson"))


def begin(lab: Lab, folder: Path, *more: object) -> subprocess.Popen[str]:
    """Start a run, and give it once it measures."""
    process = start(
        "run",
        "--target",
        "lab:debian",
        *SHORT,
        "--out",
        folder / "out",
        *more,
        env=lab.env,
        log=folder / "log",
    )
    wait_until(
        lambda: under_way(folder / "out") or process.poll() is not None, "the step to begin", UNDER_WAY_S
    )
    assert process.poll() is None, (folder / "log").read_text()
    return process


def deafen(lab: Lab, seconds: int) -> None:
    lab.run_in(f"setsid sh -c '{DEAF.format(seconds)}' </dev/null >/dev/null 2>&1 &")


def marks(step: dict[str, Any]) -> set[str]:
    return {mark["name"] for mark in step["marks"]} & {
        "picked-up",
        "connection-broken",
        "engine-died",
        "lease-lost",
        "stopped",
    }


def all_there(step: dict[str, Any], seconds: int) -> bool:
    """Every activation of the whole time."""
    return bool(step["total"]["count"] + step["total"]["missed"] == 100 * seconds * len(step["cpus"]))


def test_a_power_cut_in_a_step_is_reported_as_one(lab: Lab, tmp_path: Path) -> None:
    process = begin(lab, tmp_path, "--duration", "60s")
    try:
        good(rtgauge("lab", "reset", "debian", env=lab.env))
        process.communicate(timeout=ENDS_S)
    finally:
        end(process)
    assert process.returncode == 3
    line = only_error((tmp_path / "log").read_text())
    assert "was rebooted meanwhile" in line
    assert "rtgauge resume" in line


@pytest.mark.ci
def test_the_connection_breaks_in_the_middle_and_comes_back(lab: Lab, tmp_path: Path) -> None:
    process = begin(lab, tmp_path, "--duration", "20s", "--json")
    try:
        deafen(lab, 3)
        output, _ = process.communicate(timeout=ENDS_S)
    finally:
        end(process)
    assert process.returncode == 0, (tmp_path / "log").read_text()
    (step,) = json.loads(output)["steps"]
    assert marks(step) == {"connection-broken"}
    assert all_there(step, 20)


def test_the_connection_is_gone_for_long_and_the_run_is_resumed(lab: Lab, tmp_path: Path) -> None:
    process = begin(lab, tmp_path, "--duration", "20s", "--hold", "4min")
    try:
        deafen(lab, 60)
        assert process.wait(ENDS_S) == 3
    finally:
        end(process)
    error = only_error("rtgauge: " + (tmp_path / "log").read_text().partition("rtgauge: ")[2])
    assert "rtgauge resume" in error
    (record,) = (tmp_path / "out").iterdir()
    assert record.name.endswith(".partial")
    assert "rtgauge-lab: ready" in (record / "targets/lab-debian/console.log").read_text()
    wait_until(
        lambda: rtgauge("lab", "shell", "debian", "true", env=lab.env).returncode == 0,
        "the guest to let in again",
        120,
    )
    resumed = good(rtgauge("resume", record, "--json", env=lab.env, timeout=ENDS_S))
    (step,) = json.loads(resumed.stdout)["steps"]
    assert marks(step) == {"picked-up"}
    assert all_there(step, 20)


@pytest.mark.ci
def test_the_disk_of_the_target_is_full_in_the_middle(lab: Lab, tmp_path: Path, tmp_as_it_was: None) -> None:
    process = begin(lab, tmp_path, "--duration", "60s", "--set", "samples=true")
    try:
        lab.run_in("cat /dev/zero >/tmp/fill 2>/dev/null || true")
        assert process.wait(ENDS_S) == 3
    finally:
        end(process)
    log = (tmp_path / "log").read_text()
    assert "the target's disk is full" in log
    assert "rtgauge resume" in log
    assert "Traceback" not in log


def test_a_tmp_that_is_full_or_runs_no_programs_is_gone_around(lab: Lab, tmp_as_it_was: None) -> None:
    for spoil in (
        "cat /dev/zero >/tmp/fill 2>/dev/null || true",
        "rm /tmp/fill; mount -o remount,noexec /tmp",
    ):
        lab.run_in(spoil)
        document = json.loads(
            lab.command("probe", "wakeup", "--duration", "300ms", "--interval", "10ms", "--json").stdout
        )
        assert document["steps"][0]["total"]["count"] > 0
    assert lab.run_in("ls -d /var/tmp/rtgauge-* 2>/dev/null || true") == ""


def test_a_host_key_that_is_not_the_guests(lab: Lab) -> None:
    (known,) = (lab.home / "rtgauge/lab/machines/debian").glob("known_hosts")
    right = known.read_text()
    try:
        known.write_text(re.sub(r"\S{8}$", "AAAAAAAA", right.rstrip()) + "\n")
        line = error_line(rtgauge("audit", "--facts", "--target", "lab:debian", env=lab.env), 3)
        assert "host key" in line
        assert "rtgauge lab stop debian" in line
    finally:
        known.write_text(right)


def test_a_port_in_use_is_named(lab: Lab) -> None:
    port = lab.listed("debian")["running"]["port"]
    good(rtgauge("lab", "build", "debian-rt", env=lab.env, timeout=BUILD_S))
    line = error_line(rtgauge("lab", "boot", "debian-rt", "--accel", "tcg", "--port", port, env=lab.env), 3)
    assert f"port {port} is in use" in line
    assert lab.listed("debian-rt")["running"] is None


def test_a_guest_that_panics_in_a_step_leaves_its_console(lab: Lab, tmp_path: Path) -> None:
    process = begin(lab, tmp_path, "--duration", "60s")
    try:
        lab.run_in("(sleep 1; echo c >/proc/sysrq-trigger) </dev/null >/dev/null 2>&1 &")
        assert process.wait(ENDS_S) == 3
    finally:
        end(process)
        lab.stop()
    (record,) = (tmp_path / "out").iterdir()
    assert "sysrq triggered crash" in (record / "targets/lab-debian/console.log").read_text()
    assert "rtgauge resume" in (tmp_path / "log").read_text()


def test_a_guest_that_never_boots_leaves_the_others_free(lab: Lab, tmp_path: Path) -> None:
    kernel = next(stock_kernel().glob("vmlinuz-*"))
    good(
        rtgauge(
            "lab",
            "add",
            "silent",
            "--kernel",
            kernel,
            "--append",
            "rdinit=/nowhere root=/dev/nothing",
            env=lab.env,
        )
    )
    good(rtgauge("lab", "build", "silent", env=lab.env))
    try:
        words = (
            "run",
            "--target",
            "lab:debian",
            "--target",
            "lab:silent",
            *SHORT,
            "--duration",
            "1s",
            "--out",
            tmp_path / "out",
        )
        line = error_line(rtgauge(*words, env=lab.env, timeout=ENDS_S), 3)
    finally:
        good(rtgauge("lab", "rm", "silent", env=lab.env))
    (record,) = (tmp_path / "out").iterdir()
    console = record / "targets/lab-silent/console.log"
    assert f"its console output is in {console} " in line
    assert f"rtgauge resume {record}" in line
    assert "Kernel panic" in console.read_text()
    assert not (record / "targets/lab-debian").exists()
    lab.command("probe", "wakeup", "--duration", "300ms", "--interval", "10ms")


def test_the_network_load_where_ip_is_busyboxs(lab: Lab, tmp_path: Path) -> None:
    lab.run_in("mount --bind /bin/busybox /usr/bin/ip")
    try:
        command = (
            "run",
            "--load",
            "network",
            "--duration",
            "2s",
            "--set",
            "warm-up=100ms",
            "--set",
            "interval=10ms",
            "--json",
            "--out",
            tmp_path / "out",
        )
        document = json.loads(lab.command(*command).stdout)
    finally:
        lab.run_in("umount /usr/bin/ip")
    (step,) = document["steps"]
    assert not document["run"]["left_out"]
    assert step["load"]["parts"][0]["wanted"]["over"] == "loopback"
