# SPDX-License-Identifier: MIT
"""Every probe that Cobalt has, on a guest named `xenomai`: its threads stay with Cobalt, and its answers are
Cobalt's.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import error_line, good, rtgauge, start, wait_until

SHORT = ("--duration", "500ms")


def probe(target: str, *words: str) -> dict[str, Any]:
    """The one step of `rtgauge probe`."""
    document = json.loads(
        good(rtgauge("probe", *words, "--rt", "cobalt", "--target", target, "--json", timeout=600)).stdout
    )
    (step,) = document["steps"]
    return step


def results(step: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [result for result in step["results"] if result["name"] == name]


def on(guest: str, command: str) -> str:
    return good(rtgauge("lab", "shell", guest.removeprefix("lab:"), command)).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("wakeup", *SHORT),
        ("wakeup", *SHORT, "--policy", "rr"),
        ("noise", *SHORT),
        ("switch", *SHORT),
        ("preempt", *SHORT),
        *(
            ("semaphore", *SHORT, "--method", method)
            for method in ("semaphore", "mutex", "condition", "mqueue", "signal")
        ),
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
    assert not any(left_out["reason"] == "affinity" for left_out in step["cpus_not_measured"])


def test_auto_is_cobalt_here_and_the_record_says_so(xenomai: str):
    document = json.loads(
        good(
            rtgauge("probe", "response", *SHORT, "--rt", "auto", "--target", xenomai, "--json", timeout=600)
        ).stdout
    )
    (step,) = document["steps"]
    assert step["key"]["parameters"]["rt"] == step["parameters"]["rt"] == "cobalt"
    (mark,) = [mark for mark in document["run"]["marks"] if mark["name"] == "runtime-chosen"]
    assert "measured on Cobalt" in mark["detail"]


@pytest.mark.parametrize("context", ["irq", "thread"])
def test_the_periodic_task_in_kernel_space(xenomai_modules: str, context: str):
    step = probe(
        xenomai_modules,
        "periodic",
        "--space",
        "kernel",
        "--path",
        "none",
        "--context",
        context,
        "--period",
        "4ms",
        *SHORT,
    )
    (module,) = results(step, "kernel-module")
    assert module["values"]["module"] == "rtgauge_periodic_cobalt"
    assert module["values"]["samples"] > 0
    assert step["tool"].startswith("rtgauge-engine-cobalt ")


ON_THE_WIRE = [(), ("--space", "kernel", "--context", "irq"), ("--space", "kernel", "--context", "thread")]


@pytest.mark.parametrize("name", ["periodic", "response"])
@pytest.mark.parametrize("where", ON_THE_WIRE, ids=["user", "irq", "thread"])
def test_over_the_wire_tasks_stay_with_cobalt(xenomai_modules: str, name: str, where: tuple[str, ...]):
    step = probe(xenomai_modules, name, "--path", "wire", *where, *SHORT)
    (counted,) = results(step, "cokernel")
    assert counted["values"]["mode_switches"] == 0
    (wire,) = results(step, "wire")
    assert wire["values"]["compared"] > 0
    assert wire["values"]["lost"] == wire["values"]["not_compared"] == 0
    own, reference = (
        next(s for s in step["series"] if s["metric"] == metric and s["labels"].get("role") == role)
        for metric, role in (
            (("latency", "self"), ("latency", "wire"))
            if name == "periodic"
            else (("response", "master"), ("response", "wire"))
        )
    )
    assert reference["count"] == own["count"] > 0
    assert (
        reference["min_ns"] < own["min_ns"]
    )  # the reference ends, and for a response begins, nearer to the line
    modules = {result["values"]["module"] for result in results(step, "kernel-module")}
    assert modules == ({f"rtgauge_{name}_cobalt"} if where else set())


@pytest.fixture
def loaded_wire(xenomai_modules: str):
    """The wire's module, loaded by hand, with the pairs that the probes join."""
    folder = next(Path(os.environ["RTGAUGE_KMOD"]).rglob("rtgauge_wire_cobalt.ko")).parent
    for name, parameters in (("rtgauge_core", ""), ("rtgauge_wire_cobalt", "join=0-3,2-1")):
        with (folder / f"{name}.ko").open("rb") as module:
            command = f"cat >/tmp/{name}.ko && insmod /tmp/{name}.ko {parameters}"
            good(rtgauge("lab", "shell", xenomai_modules.removeprefix("lab:"), command, stdin=module))
    yield xenomai_modules
    remove = "rmmod rtgauge_wire_cobalt rtgauge_core 2>/dev/null; grep rtgauge /proc/modules; true"
    wait_until(lambda: on(xenomai_modules, remove) == "", "the modules to be removed")


def test_lines_of_an_rtdm_driver_are_named_by_its_chip(loaded_wire: str):
    """A board's own lines have the interface of those that the wire has."""
    step = probe(loaded_wire, "response", "--path", "rtdm:rtgauge_wire:0,1,2,3", *SHORT)
    (counted,) = results(step, "cokernel")
    assert counted["values"]["mode_switches"] == 0
    assert step["total"]["count"] > 0
    assert not results(step, "wire")
    refused = rtgauge(
        "probe", "response", "--path", "rtdm:rtgauge_wire:0,1,2,30", "--rt", "cobalt", "--target", loaded_wire
    )
    assert "/dev/rtdm/rtgauge_wire/gpio30" in refused.stderr


@pytest.mark.parametrize("context", ["irq", "thread"])
def test_the_kernels_response_task_answers_its_own_stimuli(xenomai_modules: str, context: str):
    step = probe(
        xenomai_modules,
        "response",
        "--space",
        "kernel",
        "--path",
        "none",
        "--context",
        context,
        "--interval",
        "4ms",
        *SHORT,
    )
    (module,) = results(step, "kernel-module")
    assert module["values"]["module"] == "rtgauge_response_cobalt"
    series = {
        summary["labels"].get("segment", summary["labels"].get("role")): summary for summary in step["series"]
    }
    assert series["slave"]["labels"]["from"] == "stimulus"
    assert series["slave"]["count"] + series["slave"]["missed"] > 0
    assert ("thread-latency" in series) == (context == "thread")
    assert series["interrupt-latency"]["min_ns"] <= series["slave"]["min_ns"]


MODULES = "grep rtgauge /proc/modules; true"
THREADS = "grep rtgauge /proc/xenomai/sched/threads; true"


@pytest.mark.parametrize("path", ["none", "wire"])
@pytest.mark.parametrize("name", ["periodic", "response"])
def test_a_kernel_task_has_one_user_and_ends_with_it(
    xenomai_modules: str, tmp_path: Path, name: str, path: str
):
    words = (
        "--rt",
        "cobalt",
        "--space",
        "kernel",
        "--path",
        path,
        "--context",
        "thread",
        "--duration",
        "1h",
        "--target",
        xenomai_modules,
    )
    process = start("probe", name, *words, log=tmp_path / "log")
    wait_until(
        lambda: process.poll() is not None or "rtgauge-task" in on(xenomai_modules, THREADS), "the task"
    )
    assert process.poll() is None, (tmp_path / "log").read_text()
    device = f"/dev/rtgauge_{name}_cobalt"
    assert "busy" in on(xenomai_modules, f"sh -c 'exec 3<>{device}' 2>&1; true").lower()
    process.kill()
    process.wait()
    wait_until(
        lambda: not on(xenomai_modules, MODULES) and "rtgauge" not in on(xenomai_modules, THREADS),
        "the modules to be removed",
    )


def test_kernel_tasks_are_loaded_and_removed_repeatedly(xenomai_modules: str):
    for path in ("none", "wire", "none", "wire"):
        for name in ("periodic", "response"):
            probe(
                xenomai_modules,
                name,
                "--space",
                "kernel",
                "--path",
                path,
                "--context",
                "thread",
                "--duration",
                "100ms",
            )
    assert on(xenomai_modules, MODULES) == ""


def test_modules_of_another_abi_are_refused(xenomai_modules: str, tmp_path: Path):
    for module in Path(os.environ["RTGAUGE_KMOD"]).rglob("*.ko"):
        (tmp_path / module.name).write_bytes(module.read_bytes().replace(b"rtgauge_abi=1", b"rtgauge_abi=9"))
    words = ("probe", "response", "--rt", "cobalt", "--space", "kernel", "--target", xenomai_modules)
    assert "ABI 9" in error_line(rtgauge(*words, env={"RTGAUGE_KMOD": str(tmp_path)}), 3)


STEPS = """
[defaults]
rt = "cobalt"
cpu = "0"
duration = "3s"
[[step]]
probe = "periodic"
space = "kernel"
path = "none"
context = "{context}"
period = "4ms"
[[step]]
probe = "switch"
"""


@pytest.mark.parametrize(
    ("tool", "context", "checked"),
    [("xenomai-latency", "thread", "periodic"), ("xenomai-switchtest", "irq", "switch")],
)
def test_xenomais_own_tools_measure_the_same(
    xenomai_modules: str, tmp_path: Path, tool: str, context: str, checked: str
):
    plan = tmp_path / "plan.toml"
    plan.write_text(STEPS.format(context=context))
    completed = good(
        rtgauge(
            "run",
            plan,
            "--cross-check",
            tool,
            "--target",
            xenomai_modules,
            "--out",
            tmp_path / "out",
            "--json",
            timeout=600,
        )
    )
    document = json.loads(completed.stdout)
    assert not document["run"]["left_out"]
    (step,) = [step for step in document["steps"] if step["key"]["tool"] == tool]
    assert step["key"]["probe"] == checked
    if tool == "xenomai-latency":
        assert step["total"]["count"] > 0
        assert step["parameters"]["context"] == context
    else:
        assert results(step, "switchtest")[0]["values"]["switches"] > 0


def test_locks_against_inversion(xenomai: str):
    answers = {
        result["labels"]["lock"]: result["values"]["answer"]
        for result in results(probe(xenomai, "inversion"), "inversion")
    }
    assert answers["pi-mutex"] == answers["ceiling-mutex"] == "not-starved"
    assert answers["mutex"] == answers["semaphore"] == "starved"
    assert answers["futex"] not in ("starved", "not-starved")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("semaphore", "--method", "pipe"), "Cobalt has no --method pipe"),
        (("inversion", "--lock", "futex"), "Cobalt has no --lock futex"),
        (("wakeup", "--policy", "deadline"), "Cobalt has no --policy deadline"),
        (("wakeup", "--space", "kernel"), "Cobalt has no --space kernel"),
        (("wakeup", "--explain"), "Cobalt has no --explain;"),
        (
            ("response", "--path", "loop:pipe"),
            "on a co-kernel choose loop:mqueue, wire or rtdm:CHIP:LINES",
        ),
        (
            ("response", "--path", "rtdm:rtgauge_wire:0,1"),
            "--role both needs the lines OUT,IN,SLAVE_OUT,SLAVE_IN",
        ),
        (("response", "--trace-parts"), "Cobalt has no --trace-parts;"),
    ],
    ids=["method", "lock", "policy", "space", "explain", "path", "lines", "trace-parts"],
)
def test_what_cobalt_lacks_is_refused_before_anything_runs(
    xenomai: str, words: tuple[str, ...], message: str
):
    refused = rtgauge("probe", *words, "--rt", "cobalt", "--target", xenomai)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_the_facts_name_cobalt(xenomai: str):
    extension = json.loads(good(rtgauge("audit", "--facts", "--target", xenomai, "--json")).stdout)["kernel"][
        "extension"
    ]
    assert extension["name"] == "Xenomai Cobalt"
    assert extension["pipeline"] in ("Dovetail", "I-pipe")
    assert isinstance(extension["gravity"]["user_ns"], int)


CLOCK = "/proc/xenomai/clock/coreclk"
UNUSUAL = "1000i 3000k 3500u"
"""A gravity that neither Xenomai's default nor, but for chance, autotune gives."""


def gravity(guest: str) -> str:
    return on(guest, f"head -n 1 {CLOCK}")


@pytest.fixture
def unusual(xenomai: str):
    """The guest with an unusual gravity, as it reads; its own is there again at the end."""
    words = [word.partition("=")[2] for word in gravity(xenomai).split()[1:]]
    on(xenomai, f"echo '{UNUSUAL}' >{CLOCK}")
    yield gravity(xenomai)
    on(xenomai, "echo '{}i {}k {}u' >{}".format(*words, CLOCK))


def test_autotune_is_run_and_the_gravity_of_before_put_back(xenomai: str, unusual: str):
    step = probe(xenomai, "calibrate", "--duration", "500ms")
    before, after = (result["values"] for result in results(step, "gravity"))
    assert before == {"irq_ns": 1000, "kernel_ns": 3000, "user_ns": 3500}
    assert all(ns >= 0 for ns in after.values())
    assert {series["labels"]["role"] for series in step["series"]} == {"before-autotune", "after-autotune"}
    assert all(series["count"] + series["missed"] > 0 for series in step["series"])
    assert {counted["values"]["mode_switches"] for counted in results(step, "cokernel")} == {0}
    assert gravity(xenomai) == unusual


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_the_gravity_is_restored_after_a_cut_calibration(
    xenomai: str, unusual: str, tmp_path: Path, end: signal.Signals
):
    """Also where it would have been kept."""
    log = tmp_path / "log"
    process = start(
        "probe", "calibrate", "--rt", "cobalt", "--keep", "--duration", "200ms", "--target", xenomai, log=log
    )
    running = "grep -lx autotune /proc/[0-9]*/comm 2>/dev/null; true"
    # autotune begins with gravity 0 of the interrupt handler
    wait_until(
        lambda: (
            process.poll() is not None or (bool(on(xenomai, running)) and "irq=1000 " not in gravity(xenomai))
        ),
        "autotune to begin",
    )
    assert process.poll() is None, log.read_text()
    process.send_signal(end)
    process.wait()
    wait_until(lambda: not on(xenomai, running) and gravity(xenomai) == unusual, "the gravity of before")
