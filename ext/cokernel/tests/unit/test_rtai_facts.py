# SPDX-License-Identifier: MIT
"""RTAI's own files, as RTAI 5.3.4 on Linux 5.4.301 printed them (ext/cokernel/tests/data)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.system import machines

from rtgauge.system.collect_facts import facts
from rtgauge_ext.cokernel import rtai_facts

CAPTURED = Path(__file__).parents[1] / "data"
HAL, SCHEDULER = ((CAPTURED / f"rtai-{name}.txt").read_text() for name in ("hal", "scheduler"))
INSTALLED = "/usr/realtime/share/rtai/config-rtai-5.3.4"


def extension(files: dict[str, str]) -> dict[str, Any]:
    """As system.json has it."""
    machine_facts = facts(machines.texts(files) | {"/proc/rtai": {"directory": []}})
    return machine_facts.kernel.extension.model_dump()


def test_what_rtai_says_of_itself() -> None:
    modules = (
        "rtai_sched 237568 0 - Live 0xffffffffa006b000\nrtai_hal 434176 1 rtai_sched, Live "
        "0xffffffffa0000000\next4 1 0 - Live 0x0\n"
    )
    core = extension(
        {
            rtai_facts.HAL: HAL,
            rtai_facts.SCHEDULER: SCHEDULER,
            rtai_facts.MODULES: modules,
            INSTALLED: "CONFIG_MODULES=y\n",
        }
    )
    assert core == {
        "name": "RTAI",
        "version": "5.3.4",
        "cpus": "0",
        "isolated_cpus": "",
        "modules": ["rtai_hal", "rtai_sched"],
        "scheduler": "LXRT Real Time",
        "cpu_number": 1,
        "calibration": {
            "time_base_hz": 1_000_000_000,
            "user_latency_ns": 461_512,
            "kernel_latency_ns": 312_521,
            "setup_to_firing_ns": 140,
        },
        "tasks": 0,
        "forced_soft": {"traps": 0, "system_calls": 0},
    }


def test_of_several_cpus_all_are_rtais() -> None:
    core = extension({rtai_facts.SCHEDULER: SCHEDULER.replace("CPUs in system: 1 ", "CPUs in system: 4 ")})
    assert (core["cpus"], core["cpu_number"]) == ("0-3", 4)


def test_isolated_cpus_tasks_and_forced_transitions() -> None:
    task = "5          1000000     No   No  0x1    1:1   0      1    321   ffff88800ea30000   12\n"
    scheduler = SCHEDULER.replace("traps 0, syscalls 0", "traps 2, syscalls 17").replace(
        "TIMED\n", task + "TIMED\n"
    )
    core = extension({rtai_facts.HAL: HAL.replace("RTAI: 0x0", "RTAI: 0xe"), rtai_facts.SCHEDULER: scheduler})
    assert (core["isolated_cpus"], core["tasks"], core["forced_soft"]) == (
        "1-3",
        1,
        {"traps": 2, "system_calls": 17},
    )


def test_nothing_is_guessed() -> None:
    other = INSTALLED.replace("5.3.4", "5.3.3").replace("/usr/realtime", "/usr/local")
    assert extension({INSTALLED: "", other: ""})["version"] == "unknown"
    core = extension({})
    assert core.pop("name") == "RTAI"
    assert set(map(str, core.pop("calibration").values())) == set(map(str, core.values())) == {"unknown"}


@pytest.mark.parametrize("seed", range(200))
def test_hostile_files_never_raise(seed: int) -> None:
    chance = random.Random(seed)
    texts: dict[str, str] = {}
    for path, text in ((rtai_facts.HAL, HAL), (rtai_facts.SCHEDULER, SCHEDULER)):
        letters = list(text)
        for _ in range(chance.randrange(1, 60)):
            at = chance.randrange(len(letters))
            letters[at : at + chance.randrange(9)] = chance.choice(
                ["9" * 30, "-", "\0", "\x1b[2J", "0x", "\n", "ffffffffffffffffffff", ""]
            )
        texts[path] = "".join(letters)
    core = extension(texts)
    assert core["name"] == "RTAI"
    assert all(value == "unknown" or isinstance(value, int) for value in core["calibration"].values())
