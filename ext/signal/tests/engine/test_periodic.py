# SPDX-License-Identifier: MIT
"""periodic: every half-period is accounted for, by the task itself and by the other end of the line."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.stream import CPUS, POLICY, Live, Stream, children, refused, run

pytestmark = pytest.mark.engine
PATHS = ["loop:eventfd", "loop:pipe", "loop:socketpair", "loop:mqueue", "loop:udp"]


def periodic(engine: Path, *words: str, **options: Any) -> Stream:
    return run(engine, "periodic", "--go", f"--policy={POLICY}", "--warm-up-ns=20000000", *words, **options)


def summaries(stream: Stream) -> dict[tuple[str, str], dict[str, Any]]:
    """(metric, role) -> summary, checked against its windows."""
    actual = {}
    for line in stream.all("series"):
        (summary,) = [item for item in stream.all("summary") if item["series"] == line["series"]]
        windows = stream.windows(line["series"])
        assert sum(window["count"] for window in windows) == summary["count"]
        assert sum(count for window in windows for _, count in window["bins"]) == summary["count"]
        assert all(
            [at for at, _ in window["bins"]] == sorted(at for at, _ in window["bins"]) for window in windows
        )
        assert sum(window["sum_ns"] for window in windows) == summary["sum_ns"]
        actual[line["metric"], line["labels"]["role"]] = summary
    return actual


def results(stream: Stream) -> dict[str, dict[str, int]]:
    return {line["labels"]["role"]: line["values"] for line in stream.all("result")}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("timer", ["nanosleep", "timerfd"])
def test_every_half_period_is_accounted_for(engine: Path, path: str, timer: str) -> None:
    stream = periodic(engine, f"--path={path}", f"--timer={timer}", "--count=300", "--period-ns=2000000")
    assert (stream.reason, stream.status) == ("count", 0)
    actual = summaries(stream)
    assert list(actual) == [
        ("latency", "self"),
        ("jitter", "self"),
        ("latency", "observer"),
        ("jitter", "observer"),
    ]
    own = actual["latency", "self"]
    assert own["count"] + own["missed"] == 300
    reported = results(stream)
    assert reported["self"]["edges"] == reported["observer"]["edges"]
    assert reported["observer"]["lost"] == 0
    assert actual["jitter", "observer"]["count"] <= actual["latency", "observer"]["count"] <= own["count"]
    assert actual["latency", "self"]["min_ns"] >= 0
    if not reported["observer"]["double-edge"]:
        assert actual["latency", "observer"]["count"] == own["count"]


def test_a_miss_at_the_end_of_the_warm_up_is_counted_once(engine: Path) -> None:
    words = ("--path=loop:eventfd", "--warm-up-ns=100000000", "--count=300", "--period-ns=2000000")
    with Live(engine, "periodic", f"--policy={POLICY}", *words) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        live.signal(signal.SIGSTOP)
        time.sleep(0.25)
        live.signal(signal.SIGCONT)
        stream = live.finish()
    assert (stream.reason, stream.status) == ("count", 0)
    own = summaries(stream)["latency", "self"]
    assert own["count"] + own["missed"] == 300
    assert (own["lost"], own["impossible"]) == (0, 0)
    assert len(stream.windows(0)) == 1


def test_jitter_is_the_difference_of_successive_edges(engine: Path, tmp_path: Path) -> None:
    """With raw samples: the signed jitter of each edge is the change of the latency, plus the half-periods
    that were missed.
    """
    stream = periodic(
        engine,
        "--count=200",
        "--period-ns=2000000",
        f"--samples-dir={tmp_path}",
        "--role=master",
        "--path=loop:eventfd",
        "--role=both",
    )
    numbers = {(line["metric"], line["labels"]["role"]): line["series"] for line in stream.all("series")}
    own = np.fromfile(tmp_path / f"samples-{numbers['latency', 'self']}.i64", dtype="<i8")[8:]
    jitter = np.fromfile(tmp_path / f"samples-{numbers['jitter', 'self']}.i64", dtype="<i8")[8:].reshape(
        -1, 2
    )
    missed = (np.maximum(own, 1) - 1) // 1_000_000
    expected = np.diff(own) + missed[:-1] * 1_000_000
    assert (jitter[:, 1] == expected).all()
    assert (jitter[:, 1] < 0).any()


def test_roles_that_are_alone(engine: Path) -> None:
    path = "--path=udp:127.0.0.1:17226"
    for _ in range(10):
        with Live(
            engine,
            "periodic",
            f"--policy={POLICY}",
            "--role=slave",
            path,
            "--warm-up-ns=0",
            "--period-ns=2000000",
            f"--cpu={CPUS[-1]}",
        ) as observer:
            observer.read_until("armed")
            observer.send("go\n")
            observer.read_until("started")
            stream = periodic(
                engine, path, "--role=master", "--count=100", "--period-ns=2000000", f"--cpu={CPUS[0]}"
            )
            observed = observer.finish()
        # once more where the machine stood still, and there were few edges to see
        if summaries(stream)["latency", "self"]["missed"] < 20:
            break
    assert list(summaries(stream)) == [("latency", "self"), ("jitter", "self")]
    assert list(summaries(observed)) == [("jitter", "observer")]
    assert (observed.reason, observed.status) == ("count", 0)
    reported = results(observed)["observer"]
    assert reported["edges"] + reported["lost"] == results(stream)["self"]["edges"]
    assert summaries(observed)["jitter", "observer"]["count"] >= 50


def test_an_observer_alone_of_nothing(engine: Path) -> None:
    stream = periodic(engine, "--path=udp:127.0.0.1:17227", "--role=slave", "--duration-ns=200000000")
    assert stream.reason == "duration"
    assert "no-stimulus" in stream.marks


def test_an_observer_that_dies_is_reported(engine: Path) -> None:
    with Live(engine, "periodic", f"--policy={POLICY}", "--period-ns=2000000", "--warm-up-ns=0") as live:
        live.read_until("armed")
        (child,) = children(live.process.pid)
        live.send("go\n")
        live.read_until("window")
        os.kill(child, signal.SIGKILL)
        stream = live.finish()
    assert (stream.reason, stream.status) == ("slave-died", 0)
    assert "slave-died" in stream.marks
    assert summaries(stream)["latency", "self"]["count"] > 0


def test_foreign_signals_and_a_stop(engine: Path) -> None:
    with Live(engine, "periodic", f"--policy={POLICY}", "--period-ns=20000000", "--warm-up-ns=0") as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        live.storm(30)
        live.send("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    assert summaries(stream)["latency", "self"]["impossible"] == 0


@pytest.mark.parametrize(
    ("code", "status", "words", "reported"),
    [
        ("interval", 2, ["--period-ns=2001"], "even"),
        ("usage", 2, ["--period-ns=100"], "must be"),
        ("path", 2, ["--path=loop:x"], "loop:eventfd"),
        ("path", 2, ["--path=gpio:gpiochip0:1", "--role=both"], "OUT,IN"),
        ("path", 3, ["--path=gpio:gpiochip99:1", "--role=master"], "no GPIO chip"),
        ("path", 2, ["--path=wire:0"], "uses its own"),
        ("path", 2, ["--path=wire", "--role=master"], "--role both"),
        ("path", 2, ["--path=loop:pipe", "--space=kernel"], "choose wire (--role both)"),
        ("path", 2, ["--path=wire", "--space=kernel", "--role=slave"], "measures the master"),
        ("path", 2, ["--path=none", "--space=kernel"], "--role master"),
        ("usage", 2, ["--path=wire", "--space=kernel", "--timer=timerfd"], "in user space"),
        ("usage", 2, ["--path=wire", "--space=kernel", "--context=irq-thread"], "irq-thread"),
    ],
)
def test_what_is_refused(engine: Path, code: str, status: int, words: list[str], reported: str) -> None:
    assert reported in refused(engine, code, status, "periodic", "--go", f"--policy={POLICY}", *words)


@pytest.mark.parametrize(
    ("words", "module"),
    [(["--path=wire"], "wire"), (["--path=none", "--space=kernel", "--role=master"], "periodic")],
)
def test_a_module_that_is_not_loaded_is_named(engine: Path, words: list[str], module: str) -> None:
    assert f"rtgauge_{module} is not loaded" in refused(
        engine, "kernel-module", 3, "periodic", "--go", f"--policy={POLICY}", *words
    )
