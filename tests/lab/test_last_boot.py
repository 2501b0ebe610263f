# SPDX-License-Identifier: MIT
"""A guest that crashes, and one that is reset while a task holds a CPU: the next boot tells what ran."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli import rtgauge, wait_until

if TYPE_CHECKING:
    from tests.lab.conftest import Lab

RING = "reserve_mem=20M:32M:trace trace_instance=boot_map@trace"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
REBOOT_S = 240
CRASH = "setsid sh -c 'sleep 0.2; echo c >/proc/sysrq-trigger' </dev/null >/dev/null 2>&1 &"
"""Crashes when the command has returned."""
HOG = (
    "sysctl -w kernel.sched_rt_runtime_us=-1; "
    "setsid taskset 2 chrt -f 50 sh -c "
    "'printf hog >/proc/self/comm; sleep 0.1; : >/run/spins; while :; do :; done' "
    "</dev/null >/dev/null 2>&1 & "
    "until [ -e /run/spins ]; do sleep 0.1; done"
)
"""It sleeps once, because the ring has its name as of the last switch to it."""


@pytest.fixture(autouse=True)
def guest(lab: Lab) -> None:
    lab.boot("debian", RING, "2")


def last_boot(lab: Lab, *words: str, status: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lab.command("last-boot", "--json", *words, status=status).stdout)
    return document


def wait_for_reboot(lab: Lab, boot_id: str) -> None:
    def is_up() -> bool:
        completed = rtgauge("lab", "shell", "debian", BOOT_ID, env=lab.env, timeout=150)
        return completed.returncode == 0 and completed.stdout.strip() not in {"", boot_id}

    wait_until(is_up, "the guest to boot again", REBOOT_S)


def reset(lab: Lab) -> None:
    """Reset the guest as a watchdog does. Its memory stays."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(str(lab.home / "rtgauge/lab/machines/debian/qmp"))
        answers = monitor.makefile()
        answers.readline()
        for command in ("qmp_capabilities", "system_reset"):
            monitor.sendall(json.dumps({"execute": command}).encode() + b"\n")
            assert "error" not in json.loads(answers.readline())


def test_a_crash_is_explained_at_the_next_boot(lab: Lab) -> None:
    armed = last_boot(lab, "--arm")
    assert armed["armed"]
    boot_id = lab.run_in(BOOT_ID).strip()
    lab.run_in(CRASH)
    wait_for_reboot(lab, boot_id)
    document = last_boot(lab)
    assert not document["armed"]
    end = document["end"]
    assert (end["ending"], end["why"], end["doubts"]) == ("crash", "sysrq triggered crash", [])
    assert [cpu["cpu"] for cpu in end["cpus"]] == [0, 1]
    assert any(cpu["task"] in {"sh", "dash"} for cpu in end["cpus"])


def test_a_task_that_held_a_cpu_until_a_reset_is_named(lab: Lab) -> None:
    last_boot(lab, "--arm")
    boot_id = lab.run_in(BOOT_ID).strip()
    lab.run_in(HOG)
    reset(lab)
    wait_for_reboot(lab, boot_id)
    end = last_boot(lab)["end"]
    assert end["ending"] == "unknown"
    assert "hog" in {cpu["task"] for cpu in end["cpus"]}


def test_what_was_kept_is_read_again(lab: Lab) -> None:
    last_boot(lab, "--arm")
    boot_id = lab.run_in(BOOT_ID).strip()
    lab.run_in(CRASH)
    wait_for_reboot(lab, boot_id)
    first = last_boot(lab, "--arm")
    second = last_boot(lab)
    assert second["armed"]
    assert first["end"] == second["end"]


def test_a_boot_without_a_ring_says_which_parameters_it_takes(lab: Lab) -> None:
    lab.boot("debian")
    completed = lab.command("last-boot", status=3)
    assert RING in completed.stderr
