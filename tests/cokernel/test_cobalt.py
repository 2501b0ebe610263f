# SPDX-License-Identifier: MIT
"""Every probe that Cobalt has, on a guest named `xenomai`: its threads stay with Cobalt, and its answers are Cobalt's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.cli import good, rtgauge

SHORT = ("--duration", "500ms")


def probe(target: str, *words: str) -> dict[str, Any]:
    """The one step of `rtgauge probe`."""
    document = json.loads(good(rtgauge("probe", *words, "--rt", "cobalt", "--target", target, "--json", timeout=600)).stdout)
    (step,) = document["steps"]
    return step


def results(step: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [result for result in step["results"] if result["name"] == name]


@pytest.mark.parametrize(
    "words",
    [
        ("wakeup", *SHORT),
        ("wakeup", *SHORT, "--policy", "rr"),
        ("noise", *SHORT),
        ("switch", *SHORT),
        ("preempt", *SHORT),
        *(("semaphore", *SHORT, "--method", method) for method in ("semaphore", "mutex", "condition", "mqueue", "signal")),
        ("tire", "--nodes", "48", "--duration", "500ms"),
        ("periodic", *SHORT),
        ("periodic", *SHORT, "--role", "both", "--policy", "rr"),
        ("response", *SHORT),
        ("response", *SHORT, "--interval", "5ms"),
    ],
    ids=" ".join,
)
def test_a_probe_stays_with_cobalt(xenomai: str, words: tuple[str, ...]):
    step = probe(xenomai, *words)
    assert step["tool"].startswith("rtgauge-engine-cobalt ")
    (counted,) = results(step, "cokernel")
    assert counted["values"]["name"] == "cobalt"
    assert counted["values"]["mode_switches"] == 0
    assert not [mark for mark in step["marks"] if mark["name"] == "mode-switches"]
    assert sum(series["count"] + series["missed"] for series in step["series"]) > 0


@pytest.mark.parametrize("context", ["irq", "thread"])
def test_the_periodic_task_in_kernel_space(xenomai_modules: str, context: str):
    step = probe(xenomai_modules, "periodic", "--space", "kernel", "--path", "none", "--context", context, "--period", "4ms", *SHORT)
    (module,) = results(step, "kernel-module")
    assert module["values"]["module"] == "rtgauge_periodic_cobalt"
    assert module["values"]["samples"] > 0
    assert step["tool"].startswith("rtgauge-engine-cobalt ")


def test_locks_against_inversion(xenomai: str):
    answers = {result["labels"]["lock"]: result["values"]["answer"] for result in results(probe(xenomai, "inversion"), "inversion")}
    assert answers["pi-mutex"] == answers["ceiling-mutex"] == "not-starved"
    assert answers["mutex"] == answers["semaphore"] == "starved"
    assert answers["futex"] not in ("starved", "not-starved")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("semaphore", "--method", "pipe"), "Cobalt has no --method pipe"),
        (("inversion", "--lock", "futex"), "Cobalt has no --lock futex"),
        (("taskset", "--task", "name=a,period=10ms,execution=1ms", "--policy", "deadline"), "Cobalt has no --policy deadline"),
        (("wakeup", "--space", "kernel"), "Cobalt has no --space kernel"),
        (("wakeup", "--explain"), "Cobalt has no --explain:"),
        (("response", "--path", "loop:pipe"), "on a co-kernel there is loop:mqueue"),
        (("response", "--trace-parts"), "Cobalt has no --trace-parts:"),
    ],
    ids=["method", "lock", "policy", "space", "explain", "path", "trace-parts"],
)
def test_what_cobalt_lacks_is_refused_before_anything_runs(xenomai: str, words: tuple[str, ...], message: str):
    refused = rtgauge("probe", *words, "--rt", "cobalt", "--target", xenomai)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_the_facts_name_cobalt(xenomai: str):
    extension = json.loads(good(rtgauge("system", "--target", xenomai, "--json")).stdout)["kernel"]["extension"]
    assert extension["name"] == "Xenomai Cobalt"
    assert extension["pipeline"] in ("Dovetail", "I-pipe")
    assert isinstance(extension["gravity"]["user_ns"], int)
