# SPDX-License-Identifier: MIT
"""What a measurement on Cobalt leaves on its guest where its engine is killed, or the guest loses its power,
in the middle: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.cli import end, good, rtgauge, start, wait_until

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

LONG = ("--duration", "10min")
ENGINE = "rtgauge-engine-cobalt"
TASKS = '[[task]]\nname = "a"\nperiod = "20ms"\nexecution = "2ms"\n'
LEFT = f"""grep -v ROOT/ /proc/xenomai/sched/threads; find /proc/xenomai/registry -type f; cat /proc/xenomai/heap /proc/modules
find /dev/mqueue /dev/shm -type f; grep -rs . /var/lib/rtgauge; cat /proc/sys/kernel/sched_rt_runtime_us; pidof {ENGINE}; true"""
"""Threads, named objects, memory of Cobalt; modules; queues and shared memory of Linux; what a journal still
has to put back; a setting; processes.
"""


def on_guest(target: str, command: str) -> str:
    return good(rtgauge("lab", "shell", target.removeprefix("lab:"), command)).stdout


def measuring(run: subprocess.Popen[str], target: str, log: Path) -> bool:
    """The step itself, not the trial before it; and its threads are Cobalt's."""
    assert run.poll() is None, log.read_text()
    return "[1/1]" in log.read_text() and "cobalt" in on_guest(target, "cat /proc/xenomai/sched/threads")


@pytest.mark.parametrize(
    "words",
    [
        ("wakeup", *LONG),
        ("wakeup", *LONG, "--timer", "timerfd"),
        ("periodic", *LONG),
        ("response", *LONG),
        ("noise", *LONG),
        ("switch", *LONG),
        ("preempt", *LONG),
        *(
            ("semaphore", *LONG, "--method", method)
            for method in ("semaphore", "mutex", "condition", "mqueue", "signal")
        ),
        ("inversion", "--trials", "100"),
        ("tire", "--nodes", "48", *LONG),
        ("taskset", "TASKS", *LONG),
    ],
    ids=" ".join,
)
def test_a_killed_engine_leaves_nothing(xenomai: str, tmp_path: Path, words: tuple[str, ...]):
    before = on_guest(xenomai, LEFT)
    assert ENGINE not in before
    tasks = tmp_path / "tasks.toml"
    tasks.write_text(TASKS)
    log = tmp_path / "log"
    run = start(
        "probe",
        *(tasks if word == "TASKS" else word for word in words),
        "--rt",
        "cobalt",
        "--target",
        xenomai,
        log=log,
    )
    try:
        wait_until(lambda: measuring(run, xenomai, log), "threads of Cobalt")
        on_guest(xenomai, f"kill -9 $(pidof {ENGINE})")
        wait_until(lambda: run.poll() is not None, "the command to end")
        assert run.returncode
        wait_until(lambda: on_guest(xenomai, LEFT) == before, "Cobalt to have nothing of it left")
    finally:
        end(run)


@pytest.mark.parametrize("name", ["periodic", "response"])
@pytest.mark.parametrize("space", ["user", "kernel"])
def test_a_killed_engine_on_the_wire_leaves_nothing(
    xenomai_modules: str, tmp_path: Path, name: str, space: str
):
    test_a_killed_engine_leaves_nothing(
        xenomai_modules, tmp_path, (name, *LONG, "--path", "wire", "--space", space)
    )


def test_a_power_cut_leaves_nothing_and_the_next_run_measures(xenomai: str, tmp_path: Path):
    before = on_guest(xenomai, LEFT)
    log = tmp_path / "log"
    run = start("probe", "response", *LONG, "--rt", "cobalt", "--target", xenomai, log=log)
    try:
        wait_until(lambda: measuring(run, xenomai, log), "threads of Cobalt")
        good(rtgauge("lab", "reset", xenomai.removeprefix("lab:"), timeout=600))
    finally:
        end(run)
    good(
        rtgauge(
            "probe", "response", "--duration", "500ms", "--rt", "cobalt", "--target", xenomai, timeout=600
        )
    )
    assert on_guest(xenomai, LEFT) == before
