# SPDX-License-Identifier: MIT
"""`--explain` and `rtgauge watch` as a user has them: a FIFO hog is named, the machine is as before, and
where nothing can be recorded it is said.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rtgauge.probe.descriptor import TRACE_INSTANCE
from rtgauge.probe.explain_parameters import EXPLAIN_INSTANCE
from tests.e2e.test_permissions import ORDINARY
from tests.support.cli import PATIENCE_S, good, invoke, rtgauge, start, wait_until
from tests.support.messages import missing
from tests.support.trace_instance import engines, instance_of, instances, wait_until_removed

pytestmark = [pytest.mark.root, pytest.mark.tracefs, pytest.mark.real_time]
HOG = """
import os, time
open("/proc/self/comm", "w").write("the-hog")
os.sched_setaffinity(0, {CPU})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
while True:
    time.sleep(0.2)
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
"""
CPU = min(os.sched_getaffinity(0))


@contextmanager
def hog() -> Generator[None]:
    """A task of priority 90 that takes 20 ms of the CPU five times a second."""
    process = subprocess.Popen([sys.executable, "-c", HOG.replace("CPU", str(CPU))])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.alone  # another measurement may delay it for longer
def test_a_hog_is_named_and_the_instance_is_gone(tmp_path: Path) -> None:
    with hog():
        completed = good(
            invoke(
                "probe",
                "wakeup",
                "--cpu",
                CPU,
                "--priority",
                80,
                "--duration",
                "2s",
                "--explain",
                "--save",
                "-o",
                tmp_path,
            )
        )
    assert "the-hog" in completed.stdout
    (record,) = tmp_path.iterdir()
    (step,) = json.loads(good(invoke("show", record, "--json")).stdout)["steps"]
    assert step["explain"]["moments"] > 0
    assert "sched/sched_switch" in step["explain"]["events"]
    assert step["explain"]["cost"] is None or step["explain"]["cost"]["pairs"] >= 4
    (setting,) = step["deployment"]["settings"]
    assert (setting["path"], setting["wanted"], setting["put_back"]) == (
        f"trace:{EXPLAIN_INSTANCE}",
        "present",
        "restored",
    )
    assert "the-hog" in (record / "report.html").read_text()


def test_after_kill_9_no_instance_is_left(tmp_path: Path) -> None:
    process = start("probe", "wakeup", "--duration", "60s", "--explain", log=tmp_path / "log")
    try:
        own = ("wakeup", "--explain-instance")
        wait_until(lambda: bool(engines(process.pid, *own)), "the engine")
        (name,) = {instance_of(pid, "--explain-instance") for pid in engines(process.pid, *own)}
        wait_until(lambda: name in instances(), "the instance")
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        wait_until_removed(name or "")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_without_the_right_to_record_the_rest_is_measured(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    words = (
        "--policy",
        "other",
        "--memory-lock",
        "off",
        "--dma-latency",
        "off",
        "--duration",
        "300ms",
        "--explain",
        "--json",
    )
    completed = rtgauge("probe", "wakeup", *words, before=ORDINARY, cwd="/", env={"HOME": str(tmp_path)})
    (step,) = json.loads(good(completed).stdout)["steps"]
    (mark,) = [mark for mark in step["marks"] if mark["name"] == "not-explained"]
    assert "tracefs: not allowed; run as root" in mark["detail"]
    assert "deployment-incomplete" not in {mark["name"] for mark in step["marks"]}
    assert step["explain"] is None
    assert step["total"]["count"] > 0


def test_without_the_right_to_record_watch_says_what_it_takes(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    completed = rtgauge(
        "watch",
        "--duration",
        "1s",
        "--",
        "touch",
        tmp_path / "started",
        before=ORDINARY,
        cwd="/",
        env={"HOME": str(tmp_path)},
    )
    assert completed.returncode == 3
    assert not (tmp_path / "started").exists()
    assert "tracefs: not allowed; run as root" in completed.stderr
    assert "root on a kernel with CONFIG_FTRACE" in completed.stderr
    assert "trace-parts" not in completed.stderr


LOOP = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(30))
while True:
    time.sleep(0.005)
"""


@pytest.mark.alone  # another measurement may delay it for longer
def test_watch_starts_a_program_and_names_its_preempter(tmp_path: Path) -> None:
    with hog():
        completed = good(
            invoke(
                "watch",
                "--duration",
                "2s",
                "--save",
                "-o",
                tmp_path,
                "--",
                "taskset",
                "-c",
                CPU,
                sys.executable,
                "-c",
                LOOP,
            )
        )
    assert "fifo 30" in completed.stdout
    (record,) = tmp_path.iterdir()
    assert "the-hog" in good(invoke("show", record, "--why")).stdout
    (step,) = json.loads(good(invoke("show", record, "--json")).stdout)["steps"]
    assert [(setting["path"], setting["put_back"]) for setting in step["deployment"]["settings"]] == [
        (f"trace:{TRACE_INSTANCE}", "restored"),
        (f"trace:{EXPLAIN_INSTANCE}", "restored"),
    ]
    metrics = ["latency", "response", "execution", "period", "overrun", "uncertain", "least-response"]
    assert [series["metric"] for series in step["series"]] == metrics
    assert step["explain"]["moments"] > 0


def test_watch_waits_for_the_named_threads_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rtgauge.cli.watch_command.SETTLE_S", 0.0)
    program = "sleep 0.3; printf late >/proc/$$/comm; while :; do sleep 0.01; done"
    words = ("--threads", "late", "--duration", "300ms", "--no-explain", "--", "sh", "-c", program)
    assert "task late" in good(invoke("watch", *words)).stdout


POLLER = """
import os
os.sched_setaffinity(0, {CPU})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(30))
while True:
    pass
"""


def test_a_pollers_gaps_hold_if_all_its_stops_are_visible(tmp_path: Path) -> None:
    """The record of this machine, which may be virtual or lack events, as a real machine would have written it.
    A bound on gaps needs 5 s.
    """
    program = (sys.executable, "-c", POLLER.replace("CPU", str(max(os.sched_getaffinity(0)))))
    good(invoke("watch", "--duration", "6s", "--no-explain", "--save", "-o", tmp_path, "--", *program))
    (record,) = tmp_path.iterdir()
    (system,) = record.glob("targets/*/system.json")
    (file,) = record.glob("steps/*/step.json")
    facts, step = json.loads(system.read_text()), json.loads(file.read_text())
    facts["machine"]["virtual"] = False
    step["marks"] = []
    for result in step["results"]:
        result["values"] |= {"watched": {"smis": 0}, "thread": {"unknown_stops": 0}}.get(result["name"], {})
    file.write_text(json.dumps(step))
    requirement = ("--require", "gap<=10s")
    system.write_text(json.dumps(facts))
    assert good(invoke("show", record, *requirement)).stdout.startswith("HOLDS")
    facts["machine"]["virtual"] = True
    system.write_text(json.dumps(facts))
    assert "host may have stopped" in good(invoke("show", record, *requirement), 4).stdout
    assert good(invoke("show", record, "--require", "gap<=1ns"), 1).stdout.startswith("FAILS")


def test_a_program_that_does_nothing_is_no_measurement() -> None:
    with subprocess.Popen(["sleep", "1000"]) as idle:
        try:
            completed = good(invoke("watch", "--pid", idle.pid, "--duration", "100ms", "--no-explain"), 3)
        finally:
            idle.kill()
    assert not missing(completed.stdout, "never activated", "watch the program")


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        ((), 2, "say which program to watch"),
        (("--pid", 1, "--", "true"), 2, "say which program to watch"),
        (("--", "/no/such/program"), 2, "cannot be started: no such file"),
        (("--", "true"), 3, "ended at once, with status 0"),
        (("--pid", 4194303), 2, "there is no process"),
        (("--program", "no-such-thing"), 2, "did not find a program named no-such-thing"),
        (("--target", "ssh://nowhere.invalid", "--", "true"), 3, "the host's name is unknown"),
    ],
)
def test_what_watch_refuses(words: tuple[object, ...], status: int, error: str) -> None:
    completed = invoke("watch", *words)
    assert completed.returncode == status
    assert error in completed.stderr
