# SPDX-License-Identifier: MIT
"""Deployments on a kernel with hyper-threads and version 2 control groups: live, after kill -9, and by boot
parameters.
"""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli import end, good, invoke, start, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.conftest import Lab

    Measured = Callable[..., tuple[dict[str, Any], Path]]

SHORT = ("--load", "idle", "--set", "warm-up=100ms", "--set", "interval=10ms")
STATE = (
    "cat /sys/devices/system/cpu/online /sys/devices/system/cpu/smt/control "
    "/sys/fs/cgroup/cpuset.cpus.isolated"
    " /sys/devices/virtual/workqueue/cpumask /proc/sys/kernel/timer_migration "
    "/proc/irq/default_smp_affinity; ls /sys/fs/cgroup"
)
PUT_BACK_S = 120


@pytest.mark.ci
def test_every_deployment_live_and_all_put_back(lab: Lab, measured: Measured) -> None:
    lab.boot("debian")
    before = lab.run_in(STATE)
    document, _ = measured("--deployment", "CHM,HM,HMI,M,MI,Single", "--duration", "1s", *SHORT)
    cpus = {step["key"]["deployment"]: step["cpus"] for step in document["steps"]}
    assert cpus == {"HM": [0, 1, 2, 3], "HMI": [1, 2, 3], "M": [0, 2], "MI": [2], "Single": [0]}
    (left_out,) = document["run"]["left_out"]
    assert left_out["what"].startswith("deployment CHM")
    settings = {
        one["path"]
        for step in document["steps"]
        if step["key"]["deployment"] == "MI"
        for one in step["deployment"]["settings"]
    }
    assert any(path.endswith("cpuset.cpus.partition") for path in settings), settings
    assert lab.run_in(STATE) == before


@pytest.mark.ci
def test_preemption_and_isolation_are_applied_seen_and_restored(lab: Lab) -> None:
    """The kernel marks its preemption model with round brackets, and lists partitions apart from isolcpus=."""
    lab.boot("debian")
    preempt = "cat /sys/kernel/debug/sched/preempt"
    before = lab.run_in(f"{STATE}; {preempt}")
    assert "(full)" not in before
    lab.command("deploy", "apply", "isolate=3,settings=preemptible-kernel")
    assert "(full)" in lab.run_in(preempt)
    facts = json.loads(lab.command("audit", "--facts", "--json").stdout)
    assert (facts["cpu"]["isolated"], facts["kernel"]["preemption"]["model"]) == ("3", "full")
    lab.command("restore", "--applied")
    assert lab.run_in(f"{STATE}; {preempt}") == before


@pytest.mark.ci
def test_after_kill_9_the_guard_puts_everything_back(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    before = lab.run_in(STATE)
    process = start(
        "run", "--target", "lab:debian", "--deployment", "MI", "--duration", "20s", "--hold", "1s", *SHORT,
        "--out", tmp_path / "out",
        env=lab.env, log=tmp_path / "log",
    )  # fmt: skip
    try:
        wait_until(lambda: "rtgauge-isolated" in lab.run_in(STATE), "the deployment", timeout_s=60)
        assert lab.run_in(STATE).splitlines()[:3] == ["0,2", "off", "2"]
        process.send_signal(signal.SIGKILL)
    finally:
        end(process)
    deadline = time.monotonic() + PUT_BACK_S
    while lab.run_in(STATE) != before:
        assert time.monotonic() < deadline, lab.run_in(STATE)
        time.sleep(1)


@pytest.mark.ci
def test_restore_undoes_everything_after_kill_9_of_the_engine(lab: Lab, tmp_path: Path) -> None:
    lab.boot("debian")
    before = lab.run_in(STATE)
    process = start(
        "run", "--target", "lab:debian", "--deployment", "MI", "--duration", "60s", *SHORT, "--out",
        tmp_path / "out", env=lab.env, log=tmp_path / "log"
    )  # fmt: skip
    try:
        wait_until(lambda: "rtgauge-isolated" in lab.run_in(STATE), "the deployment", timeout_s=60)
        # the probe, its guard and the session's guard at once: nobody is left who could put anything back
        lab.run_in("kill -9 $(pidof engine)")
        process.send_signal(signal.SIGKILL)
    finally:
        end(process)
    assert "rtgauge-isolated" in lab.run_in(STATE)
    assert "restored" in lab.command("restore").stdout
    assert lab.run_in(STATE) == before


@pytest.mark.parametrize(
    ("append", "deployment"),
    [
        ("nosmt isolcpus=managed_irq,domain,2 nohz_full=2 rcu_nocbs=2 irqaffinity=0", "MI"),
        ("maxcpus=1 nosmt", "Single"),
    ],
)
def test_a_deployment_by_boot_parameters_is_recognised(lab: Lab, append: str, deployment: str) -> None:
    lab.boot("debian-rt", append)
    facts = json.loads(
        good(invoke("audit", "--facts", "--target", "lab:debian-rt", "--json", env=lab.env)).stdout
    )
    assert facts["deployment"]["name"] == deployment
