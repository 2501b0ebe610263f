# SPDX-License-Identifier: MIT
"""Real kernels: what they are is seen, what is measured says that it is emulated, no verdict is based on it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cli import error_line, good, rtgauge
from tests.support.lab import stock_kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.conftest import Lab

    Measured = Callable[..., tuple[dict[str, Any], Path]]

GUESTS = ("debian", "debian-rt", "debian-arm64", "debian-rt-arm64")
SHORT = ("--duration", "2s", "--set", "warm-up=100ms", "--set", "interval=10ms")


@pytest.fixture(scope="module", params=GUESTS)
def name(request: pytest.FixtureRequest) -> str:
    """Each guest in turn; of this scope, so that all tests of a guest follow one another and it is booted once."""
    return str(request.param)


def architecture(name: str) -> str:
    return "aarch64" if name.endswith("-arm64") else "x86_64"


@pytest.mark.ci
def test_facts_and_audit_know_the_guest(lab: Lab, name: str) -> None:
    lab.boot(name)
    facts = json.loads(good(rtgauge("system", "--target", f"lab:{name}", "--json", env=lab.env, timeout=120)).stdout)
    assert facts["host"] == name
    assert facts["machine"]["virtual"] is True
    assert facts["machine"]["emulated"] is True
    assert facts["kernel"]["architecture"] == architecture(name)
    assert (facts["kernel"]["preemption"]["model"] == "PREEMPT_RT") == ("rt" in name)
    assert facts["cpu"]["online"] == "0-3"
    done = rtgauge("audit", "--target", f"lab:{name}", "--json", "--all", env=lab.env, timeout=120)
    good(done, 1)
    found = {finding["rule"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["not-emulated"]["result"] == "differs"


@pytest.mark.ci
def test_wakeup_idle_and_loaded(lab: Lab, measured: Measured, name: str) -> None:
    lab.boot(name)
    document, record = measured("--load", "idle,cpu", "--require", "period=10ms latency<=5s", *SHORT, status=4)
    assert [step["key"]["load"] for step in document["steps"]] == ["idle", "cpu"]
    for step in document["steps"]:
        assert step["total"]["count"] + step["total"]["missed"] >= 100
        assert step["key"]["targets"] == {"self": f"lab:{name}"}
    assert not document["run"]["left_out"]
    assert "rtgauge-lab: ready" in (record / f"targets/lab-{name}/console.log").read_text()
    assert {verdict["word"] for verdict in document["run"]["verdicts"]} == {"cannot tell"}


def test_the_network_and_scheduler_loads_run_in_a_guest(lab: Lab, measured: Measured) -> None:
    lab.boot("debian")
    document, _ = measured("--load", "network,scheduler", *SHORT)
    assert {step["key"]["load"] for step in document["steps"]} == {"network", "scheduler"}
    assert not document["run"]["left_out"]


def test_a_guest_boots_with_a_command_line_and_hyper_threads(lab: Lab) -> None:
    lab.boot("debian", "isolcpus=3 nosmt")
    facts = json.loads(good(rtgauge("system", "--target", "lab:debian", "--json", env=lab.env, timeout=120)).stdout)
    assert facts["cpu"]["online"] == "0,2"
    assert facts["cpu"]["smt_active"] is False
    assert "isolcpus=3 nosmt" in facts["kernel"]["cmdline"]


def power_cut(lab: Lab, name: str) -> None:
    """And wait until the guest answers again."""
    before = lab.run_in("cat /proc/sys/kernel/random/boot_id").strip()
    good(rtgauge("lab", "reset", name, env=lab.env))
    deadline = time.monotonic() + 180
    while True:
        done = rtgauge("lab", "shell", name, "cat /proc/sys/kernel/random/boot_id", env=lab.env)
        if done.returncode == 0 and done.stdout.strip() != before:
            return
        assert time.monotonic() < deadline, done.stderr


def test_a_power_cut_keeps_the_disk_and_the_host_key(lab: Lab) -> None:
    lab.boot("debian")
    lab.run_in("echo kept >/var/kept; sync; echo lost >/tmp/lost")
    power_cut(lab, "debian")
    assert lab.run_in("cat /var/kept; ls /tmp").split() == ["kept"]


@pytest.mark.ci
def test_the_next_run_puts_back_what_a_power_cut_has_left(lab: Lab, measured: Measured, engine: Path) -> None:
    lab.boot("debian")
    with engine.open("rb") as program:
        good(rtgauge("lab", "shell", "debian", "cat >/tmp/engine && chmod 700 /tmp/engine", env=lab.env, stdin=program))
    lab.run_in("echo old >/var/setting; sync")
    lab.run_in("sleep 600 </dev/null >/dev/null 2>&1 & /tmp/engine set --run cut --owner-pid $! -- /var/setting new /proc/sys/vm/stat_interval 7; sync")
    assert lab.run_in("cat /var/setting").strip() == "new"
    power_cut(lab, "debian")
    _, record = measured("--load", "idle", *SHORT)
    (mark,) = [mark for mark in json.loads((record / "run.json").read_text())["marks"] if mark["name"] == "restored-before"]
    assert "1 restored" in mark["detail"]
    assert "1 dropped-after-reboot" in mark["detail"]
    assert lab.run_in("cat /var/setting").strip() == "old"


def test_emulated_and_real_are_not_compared_unless_forced(lab: Lab, measured: Measured, tmp_path: Path) -> None:
    lab.boot("debian")
    _, there = measured("--load", "idle", *SHORT)
    good(rtgauge("run", "--load", "idle", "--out", tmp_path / "local", *SHORT))
    (here,) = (tmp_path / "local").iterdir()
    assert "emulated" in error_line(rtgauge("compare", here, there), 2)
    compared = good(rtgauge("compare", here, there, "--force", "--no-intervals", "--json")).stdout
    assert "emulated" in compared


def test_a_guest_that_runs_is_listed_and_not_booted_twice(lab: Lab) -> None:
    lab.boot("debian")
    listed = lab.listed("debian")
    assert listed["running"]["accelerator"] == "tcg"
    # several words are a program and its arguments, one is a line for the shell
    assert lab.run_in("sh", "-c", "echo one  $((1 + 1))") == "one 2\n"
    assert lab.run_in("echo three | cat") == "three\n"
    assert "already running" in error_line(rtgauge("lab", "boot", "debian", env=lab.env), 2)
    assert "is running" in error_line(rtgauge("lab", "rm", "debian", env=lab.env), 2)


def test_a_kernel_of_ones_own(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    lab.stop()
    kept = stock_kernel()
    (tmp_path / "overlay/etc").mkdir(parents=True)
    (tmp_path / "overlay/etc/own").write_text("mine\n")
    kernel = next(kept.glob("vmlinuz-*"))
    good(rtgauge("lab", "add", "own", "--kernel", kernel, "--modules", kept, "--overlay", tmp_path / "overlay", "--append", "quiet", env=lab.env))
    lab.boot("own")
    assert lab.run_in("cat /etc/own; cat /proc/cmdline").split()[0] == "mine"
    lab.stop()
    good(rtgauge("lab", "rm", "own", env=lab.env))
    assert "no guest 'own'" in error_line(rtgauge("lab", "boot", "own", env=lab.env), 2)


def test_a_kernel_that_does_not_come_up_shows_its_console(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    lab.stop()
    kernel = next(stock_kernel().glob("vmlinuz-*"))
    good(rtgauge("lab", "add", "broken", "--kernel", kernel, "--append", "rdinit=/nowhere root=/dev/nothing", env=lab.env))
    line = error_line(rtgauge("lab", "boot", "broken", "--accel", "tcg", env=lab.env, timeout=240), 3)
    assert "panicked" in line
    assert "console" in line
    assert lab.listed("broken")["running"] is None
