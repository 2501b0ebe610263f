# SPDX-License-Identifier: MIT
"""Every probe that RTAI has, on a guest named `rtai`: its threads stay with RTAI, and its answers are
RTAI's.
"""

from __future__ import annotations

import json
import shlex
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.e2e.test_interrupt import measured_lines
from tests.support.cli import end, good, rtgauge, start, wait_until

if TYPE_CHECKING:
    from pathlib import Path

TASKS = """
[[task]]
name = "fast"
period = "10ms"
execution = "2ms"
priority = 90
[[task]]
name = "slow"
period = "30ms"
execution = "12ms"
priority = 80
"""
SHORT = ("--duration", "300ms")


def probe(target: str, *words: str) -> dict[str, Any]:
    """The one step of `rtgauge probe`."""
    document = json.loads(
        good(rtgauge("probe", *words, "--rt", "rtai", "--target", target, "--json", timeout=600)).stdout
    )
    (step,) = document["steps"]
    return step


@pytest.mark.parametrize(
    "words",
    [
        ("wakeup", *SHORT, "--interval", "5ms"),
        ("switch", *SHORT),
        ("semaphore", *SHORT, "--placement", "same-cpu"),
        ("preempt", *SHORT),
        ("tire", "--nodes", "48", *SHORT),
    ],
    ids=" ".join,
)
def test_a_probe_stays_with_rtai(rtai: str, words: tuple[str, ...]):
    step = probe(rtai, *words)
    assert step["tool"].startswith("rtgauge-engine-rtai ")
    (counted,) = [result for result in step["results"] if result["name"] == "cokernel"]
    assert counted["values"]["name"] == "rtai"
    assert counted["values"]["mode_switches"] == 0
    assert sum(series["count"] + series["missed"] for series in step["series"]) > 0


@pytest.mark.parametrize(
    "words",
    [
        ("wakeup", "--interval", "20ms"),
        ("switch",),
        ("preempt", "--interval", "5ms"),
        ("semaphore", "--placement", "same-cpu"),
    ],
    ids=" ".join,
)
def test_the_named_cpu_is_measured(rtai: str, rtai_cpus: list[int], words: tuple[str, ...]):
    for cpu in rtai_cpus:
        step = probe(rtai, *words, "--cpu", str(cpu), "--rtai-latency", "1us,1us", "--duration", "500ms")
        assert [series["labels"]["cpu"] for series in step["series"]] == [cpu]
        assert step["series"][0]["count"] > 0


def test_locks_against_inversion(rtai: str):
    step = probe(rtai, "inversion", "--trials", "1")
    answers = {
        result["labels"]["lock"]: result["values"]["answer"]
        for result in step["results"]
        if result["name"] == "inversion"
    }
    assert answers["pi-mutex"] == "not-starved"
    assert answers["mutex"] == answers["semaphore"] == "starved"
    assert answers["ceiling-mutex"] == answers["futex"] == "not-available"


def test_a_preemption_is_proven_by_the_clock(rtai: str):
    step = probe(rtai, "preempt", "--interval", "1ms", *SHORT)
    (counted,) = [result["values"] for result in step["results"] if result["name"] == "preemptions"]
    assert 0 < counted["preempted"] <= counted["events"]


def test_a_task_set_has_everything_but_the_number_of_preemptions(rtai: str, tmp_path: Path):
    file = tmp_path / "set.toml"
    file.write_text(TASKS)
    step = probe(rtai, "taskset", str(file), "--execution", "cpu", "--duration", "300ms")
    fast, slow = step["tasks"]
    assert fast["preemptions"] is None
    assert slow["preemptions"] is None
    assert (fast["activations"], slow["activations"]) == (30, 10)
    execution = {
        series["labels"]["task"]: series for series in step["series"] if series["metric"] == "execution"
    }
    assert 2_000_000 * 0.9 < execution["fast"]["mean_ns"] < 2_000_000 * 1.2
    # what it was preempted for is not in it
    assert 12_000_000 * 0.9 < execution["slow"]["mean_ns"] < 12_000_000 * 1.1
    assert not any(series["metric"] == "preemptions" for series in step["series"])


def test_periodic_in_the_kernel_is_a_task_of_rtai(rtai_modules: str):
    words = ("--space", "kernel", "--path", "none", "--period", "20ms", "--duration", "500ms")
    step = probe(rtai_modules, "periodic", *words)
    (module,) = [result["values"] for result in step["results"] if result["name"] == "kernel-module"]
    assert module["module"] == "rtgauge_periodic_rtai"
    assert module["samples"] > 0
    series = {entry["labels"].get("segment", entry["metric"]): entry for entry in step["series"]}
    assert set(series) == {"latency", "jitter", "thread-latency", "service-time"}
    assert series["latency"]["count"] + series["latency"]["missed"] == 50
    assert not any(mark["name"] == "impossible-latency" for mark in step["marks"])
    assert loaded(rtai_modules) == set()


def loaded(target: str) -> set[str]:
    """RTAI's modules that are loaded on a guest."""
    listed = good(
        rtgauge("lab", "shell", target.removeprefix("lab:"), "cat /proc/modules", timeout=600)
    ).stdout
    return {line.split(" ")[0] for line in listed.splitlines() if line.startswith(("rtai_", "rtgauge_"))}


def test_modules_are_loaded_for_a_step_and_removed(rtai: str):
    step = probe(rtai, "switch", "--rtai-latency", "30us,20us", *SHORT)
    set_for_it = {
        made["path"].rpartition("/")[2]: made["put_back"] for made in step["deployment"]["settings"]
    }
    assert set_for_it == {
        "rtai_hal.ko": "restored",
        "rtai_sched.ko kernel_latency=20000 user_latency=30000": "restored",
    }
    assert loaded(rtai) == set()


def test_modules_of_before_stay_and_the_facts_name_rtai(rtai: str):
    name = rtai.removeprefix("lab:")
    good(
        rtgauge(
            "lab",
            "shell",
            name,
            "cd /opt/rtai/modules && insmod rtai_hal.ko && insmod rtai_sched.ko kernel_latency=9 "
            "user_latency=9",
            timeout=600,
        )
    )
    try:
        step = probe(rtai, "switch", *SHORT)
        assert step["deployment"] is None or step["deployment"]["settings"] == []
        assert loaded(rtai) == {"rtai_hal", "rtai_sched"}
        extension = json.loads(
            good(rtgauge("audit", "--facts", "--target", rtai, "--json", timeout=600)).stdout
        )["kernel"]["extension"]
        assert extension["name"] == "RTAI"
        assert isinstance(extension["calibration"]["user_latency_ns"], int)
        assert {"rtai_hal", "rtai_sched"} <= set(extension["modules"])
    finally:
        good(rtgauge("lab", "shell", name, "rmmod rtai_sched rtai_hal", timeout=600))


SLEEPING = "^[0-9].* 0x5 "
"""A task of RTAI that waits for a time, in the list of /proc/rtai/scheduler: one that is only armed waits for
a semaphore.
"""
WHEN_MEASURING = f'until grep -q "{SLEEPING}" /proc/rtai/scheduler; do sleep 0.1; done; '
KILL = f"until kill -9 $(awk '/{SLEEPING}/ {{print $9}}' /proc/rtai/scheduler); do sleep 0.1; done"
KILL_ENGINE = (
    'for process in /proc/[0-9]*; do ! grep -qs "^rtgauge-engine-" $process/comm || kill -9 '
    "${process#/proc/}; done"
)
IN_USER = ("wakeup", "--interval", "10ms")
DEAF = (
    "killall dropbear; while [ -e /proc/rtai ]; do sleep 0.2; done; dropbear -s -r "
    "/var/lib/rtgauge-lab/host-key"
)
"""Who was in is out, and nobody is let in until the modules are gone."""


def measure_until_it_fails(rtai: str, script: str, log: Path, *words: str) -> None:
    """Start this in the guest, then measure by this probe for what would be ten minutes."""
    good(rtgauge("lab", "shell", rtai.removeprefix("lab:"), script, timeout=600))
    process = start(
        "probe", *(words or IN_USER), "--duration", "10min", "--rt", "rtai", "--target", rtai, log=log
    )
    try:
        process.wait(600)
    finally:
        end(process)
    assert process.returncode


@pytest.mark.parametrize("happens", [KILL, DEAF], ids=["kill -9 of the engine", "a broken connection"])
def test_what_ends_in_the_middle_leaves_no_module_and_no_task(rtai: str, tmp_path: Path, happens: str):
    script = (
        f"echo {shlex.quote(WHEN_MEASURING + happens)} >/tmp/in-the-middle; setsid sh "
        "/tmp/in-the-middle </dev/null >/dev/null 2>&1 &"
    )
    measure_until_it_fails(rtai, script, tmp_path / "log")
    wait_until(lambda: loaded(rtai) == set(), "the modules to be removed")
    assert probe(rtai, "switch", *SHORT)["series"][0]["count"] > 0


def test_kill_9_of_the_engine_while_a_kernel_task_measures(rtai_modules: str, tmp_path: Path):
    script = (
        f"echo {shlex.quote(WHEN_MEASURING + KILL_ENGINE)} >/tmp/in-the-middle; setsid sh "
        "/tmp/in-the-middle </dev/null >/dev/null 2>&1 &"
    )
    measure_until_it_fails(
        rtai_modules,
        script,
        tmp_path / "log",
        "periodic",
        "--space",
        "kernel",
        "--path",
        "none",
        "--period",
        "20ms",
    )
    wait_until(lambda: loaded(rtai_modules) == set(), "the modules to be removed")
    assert probe(rtai_modules, "switch", *SHORT)["series"][0]["count"] > 0


def test_a_power_cut_in_the_middle_leaves_no_module(rtai: str, tmp_path: Path):
    script = (
        f"echo {shlex.quote(WHEN_MEASURING + 'echo b >/proc/sysrq-trigger')} >/tmp/cut; setsid sh "
        "/tmp/cut </dev/null >/dev/null 2>&1 &"
    )
    exists = "[ -e /proc/sysrq-trigger ]"
    assert rtgauge("lab", "shell", rtai.removeprefix("lab:"), exists, timeout=600).returncode == 0, (
        "the guest's kernel needs CONFIG_MAGIC_SYSRQ"
    )
    measure_until_it_fails(rtai, script, tmp_path / "log")
    assert loaded(rtai) == set()
    assert probe(rtai, "switch", *SHORT)["series"][0]["count"] > 0


def test_ctrl_c_in_the_middle_leaves_no_module(rtai: str, tmp_path: Path):
    words = (
        "run",
        "--load",
        "idle",
        "--duration",
        "10min",
        "--interval",
        "10ms",
        "--set",
        "rt=rtai",
        "--target",
        rtai,
        "--out",
        tmp_path / "out",
    )
    process = start(*words, log=tmp_path / "log")
    try:
        wait_until(
            lambda: measured_lines(tmp_path) >= 1 or process.poll() is not None, "a window in the stream"
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    finally:
        end(process)
    assert loaded(rtai) == set()


def test_what_rtai_lacks_is_refused(rtai: str):
    refused = rtgauge(
        "probe", "semaphore", "--method", "signal", "--rt", "rtai", "--target", rtai, timeout=600
    )
    assert refused.returncode
    assert "RTAI has no --method signal" in refused.stderr


DEFAULTS = """
[defaults]
rt = "rtai"
rtai-latency = "1us,1us"
load = "cpu"
duration = "2s"
[[step]]
"""
WAKEUP = f'{DEFAULTS}probe = "wakeup"\ninterval = "2ms"\n'
SWITCH = f'{DEFAULTS}probe = "switch"\n'
IN_KERNEL = f'{DEFAULTS}probe = "periodic"\nspace = "kernel"\npath = "none"\nperiod = "4ms"\n'


def cross_checked(target: str, tool: str, needed: str, steps: str, folder: Path) -> list[dict[str, Any]]:
    """The steps that RTAI's own program measured.

    Skips the test where the guest's RTAI came without the file that it needs.
    """
    if not good(
        rtgauge(
            "lab",
            "shell",
            target.removeprefix("lab:"),
            f"find /opt/rtai /usr/realtime -name {needed} 2>/dev/null || :",
        )
    ).stdout:
        pytest.skip(f"the guest's RTAI has no {needed} (ext/cokernel/README.md says which version has it)")
    plan = folder / "plan.toml"
    plan.write_text(steps)
    completed = good(
        rtgauge(
            "run",
            plan,
            "--cross-check",
            tool,
            "--target",
            target,
            "--out",
            folder / "out",
            "--json",
            timeout=900,
        )
    )
    document = json.loads(completed.stdout)
    assert document["run"]["left_out"] == []
    assert loaded(target) == set()
    return [step for step in document["steps"] if step["key"]["tool"] == tool]


def test_rtais_latency_measures_the_same(rtai: str, tmp_path: Path):
    (step,) = cross_checked(rtai, "rtai-latency", "latency", WAKEUP, tmp_path)
    assert (step["key"]["probe"], step["parameters"]["space"]) == ("wakeup", "user")
    assert step["total"]["count"] > 0
    assert not any(mark["name"] == "period-assumed" for mark in step["marks"])


def test_rtais_kernel_latency_uses_the_steps_period(rtai_modules: str, tmp_path: Path):
    (step,) = cross_checked(rtai_modules, "rtai-latency", "latency_rt.ko", IN_KERNEL, tmp_path)
    assert (step["parameters"]["space"], step["parameters"]["interval_ns"]) == ("kernel", 2_000_000)
    assert step["total"]["count"] > 0


def test_rtais_switches_measure_the_same(rtai: str, tmp_path: Path):
    (step,) = cross_checked(rtai, "rtai-switches", "switches", SWITCH, tmp_path)
    assert {result["labels"]["by"] for result in step["results"]} == {
        "susp/res",
        "sem sig/wait",
        "rpc/rcv-ret",
    }


def test_ctrl_c_during_rtais_latency_leaves_nothing(rtai: str, tmp_path: Path):
    plan = tmp_path / "plan.toml"
    plan.write_text(WAKEUP)
    words = (
        "run",
        plan,
        "--duration",
        "5s",
        "--cross-check",
        "rtai-latency",
        "--target",
        rtai,
        "--out",
        tmp_path / "out",
    )
    process = start(*words, log=tmp_path / "log")
    name = rtai.removeprefix("lab:")
    try:
        measuring = (
            f'until grep -q "{SLEEPING}" /proc/rtai/scheduler && grep -q "^rtai_mbx " /proc/modules; do '
            "sleep 0.1; done"
        )
        good(rtgauge("lab", "shell", name, measuring, timeout=900))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    finally:
        end(process)
    assert loaded(rtai) == set()
    assert probe(rtai, "switch", *SHORT)["series"][0]["count"] > 0
