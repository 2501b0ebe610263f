# SPDX-License-Identifier: MIT
"""Every probe that RTAI has, on a guest named `rtai` whose modules are loaded: its threads stay with RTAI, and its answers are RTAI's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cli import good, rtgauge

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
    document = json.loads(good(rtgauge("probe", *words, "--rt", "rtai", "--target", target, "--json", timeout=600)).stdout)
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


def test_locks_against_inversion(rtai: str):
    step = probe(rtai, "inversion", "--trials", "1")
    answers = {result["labels"]["lock"]: result["values"]["answer"] for result in step["results"] if result["name"] == "inversion"}
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
    execution = {series["labels"]["task"]: series for series in step["series"] if series["metric"] == "execution"}
    assert 2_000_000 * 0.9 < execution["fast"]["mean_ns"] < 2_000_000 * 1.2
    # what it was preempted for is not in it
    assert 12_000_000 * 0.9 < execution["slow"]["mean_ns"] < 12_000_000 * 1.1
    assert not any(series["metric"] == "preemptions" for series in step["series"])


def test_what_rtai_lacks_is_refused(rtai: str):
    refused = rtgauge("probe", "semaphore", "--method", "signal", "--rt", "rtai", "--target", rtai, timeout=600)
    assert refused.returncode
    assert "RTAI has no --method signal" in refused.stderr


def test_the_facts_name_rtai(rtai: str):
    extension = json.loads(good(rtgauge("system", "--target", rtai, "--json", timeout=600)).stdout)["kernel"]["extension"]
    assert extension["name"] == "RTAI"
    assert isinstance(extension["calibration"]["user_latency_ns"], int)
    assert {"rtai_hal", "rtai_sched"} <= set(extension["modules"])
