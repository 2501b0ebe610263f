# SPDX-License-Identifier: MIT
"""wakeup: what it counts, how it is told to begin and to end, what it writes."""

from __future__ import annotations

import itertools
import os
import signal
import struct
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rtgauge.record.histogram import bin_of
from tests.engine.stream import CPUS, POLICY, Live, Stream, run, wakeup

pytestmark = pytest.mark.engine
two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
US, MS, SECOND = 10**3, 10**6, 10**9


def activations(stream: Stream, series: int) -> int:
    summary = next(line for line in stream.all("summary") if line["series"] == series)
    assert (summary["lost"], summary["impossible"]) == (0, 0), summary
    return summary["count"] + summary["missed"]


def check_windows(stream: Stream, series: int) -> None:
    """Windows follow each other, hold every release in them, and add up to the summary."""
    hello, summary = (
        stream.one("hello"),
        next(line for line in stream.all("summary") if line["series"] == series),
    )
    interval = hello["parameters"]["interval_ns"]
    start = next(line["start_ns"] for line in stream.all("started") if line["series"] == series)
    at = start
    for phase in ("warm-up", "measure"):
        windows = stream.windows(series, phase)
        for index, window in enumerate(windows):
            assert window["index"] == index
            assert window["start_ns"] == at
            assert at < window["end_ns"] <= at + hello["parameters"]["window_ns"]
            at = window["end_ns"]
            releases = -(-(window["end_ns"] - start) // interval) - -(
                -(window["start_ns"] - start) // interval
            )
            assert window["count"] + window["missed"] == releases
            assert sum(count for _, count in window["bins"]) == window["count"]
            assert sum(count for _, count in window["missed_bins"]) == window["missed"]
            assert [pair[0] for pair in window["bins"]] == sorted({pair[0] for pair in window["bins"]})
            if window["count"]:
                assert int(bin_of(window["min_ns"])) == window["bins"][0][0]
                assert int(bin_of(window["max_ns"])) == window["bins"][-1][0]
        whole = summary if phase == "measure" else summary["warm_up"]
        assert sum(window["count"] for window in windows) == whole["count"]
        assert sum(window["missed"] for window in windows) == whole["missed"]
        assert (
            max((window["max_ns"] for window in windows if window["count"]), default=None) == whole["max_ns"]
        )
    assert sum(window["sum_ns"] for window in stream.windows(series)) == summary["sum_ns"]
    assert (
        min((window["min_ns"] for window in stream.windows(series) if window["count"]), default=None)
        == summary["min_ns"]
    )


@pytest.mark.parametrize(
    ("interval_ns", "duration_ns"),
    [
        (MS, 1300 * MS),
        (200 * US, 700 * MS),
        (100 * US, 1100 * MS),
        (20 * US, 500 * MS),
        (333 * US, 700 * MS),
        (333 * US, 700_000_001),
        (MS, 1_000_000_001),
        (1_234_567, 999_999_999),
        (700 * MS, 1500 * MS),
        (1100 * MS, 1 * SECOND),
    ],
)
def test_count_and_missed_are_the_durations_activations(
    engine: Path, interval_ns: int, duration_ns: int
) -> None:
    stream = wakeup(engine, f"--interval-ns={interval_ns}", f"--duration-ns={duration_ns}")
    assert (stream.reason, stream.status) == ("duration", 0)
    assert stream.one("hello")["cpus"] == CPUS
    for series in range(len(CPUS)):
        assert activations(stream, series) == -(-duration_ns // interval_ns)
        check_windows(stream, series)
        windows = stream.windows(series)
        assert windows[-1]["end_ns"] - windows[0]["start_ns"] == duration_ns


@pytest.mark.parametrize(
    ("window_ns", "windows"), [(10 * MS, 30), (250 * MS, 2), (70 * MS, 5), (3600 * SECOND, 1)]
)
def test_windows_may_be_shorter_and_longer(engine: Path, window_ns: int, windows: int) -> None:
    stream = wakeup(engine, f"--window-ns={window_ns}", "--duration-ns=300000000")
    for series in range(len(CPUS)):
        assert activations(stream, series) == 300
        check_windows(stream, series)
        assert len(stream.windows(series)) == windows


@pytest.mark.parametrize("count", [1, 999, 1000, 2500])
def test_a_count_is_exact(engine: Path, count: int) -> None:
    stream = wakeup(engine, "--interval-ns=500000", f"--count={count}")
    assert (stream.reason, stream.status) == ("count", 0)
    for series in range(len(CPUS)):
        assert activations(stream, series) == count
        check_windows(stream, series)


def test_the_stream_has_its_order(engine: Path) -> None:
    stream = wakeup(engine, "--count=200")
    kinds = [
        kind
        for kind, _ in itertools.groupby(
            line["type"] for line in stream.lines if line["type"] not in {"mark", "window", "outlier"}
        )
    ]
    assert kinds == ["hello", "series", "armed", "started", "summary", "end"]
    hello = stream.one("hello")
    assert (hello["version"], hello["probe"], hello["clock"]["name"]) == (2, "wakeup", "CLOCK_MONOTONIC")
    assert {"wakeup", "calibrate", "read", "set", "restore", "guard"} <= set(hello["capabilities"])
    assert hello["boot_id"] == open("/proc/sys/kernel/random/boot_id").read().strip()  # noqa: PTH123, SIM115
    assert (
        hello["parameters"]
        | {
            "count": 200,
            "interval_ns": MS,
            "priority": 98,
            "policy": POLICY,
            "timer": "nanosleep",
            "phase": "random",
        }
        == hello["parameters"]
    )
    assert [line["labels"] for line in stream.all("series")] == [{"cpu": cpu} for cpu in CPUS]
    for series in range(len(CPUS)):
        values = [line["value_ns"] for line in stream.all("outlier") if line["series"] == series]
        assert 0 < len(values) <= 20
        assert values == sorted(values, reverse=True)
        assert values[0] == next(line["max_ns"] for line in stream.all("summary") if line["series"] == series)


def test_the_warm_up_is_counted_and_kept_apart(engine: Path) -> None:
    stream = run(
        engine,
        "wakeup",
        "--go",
        f"--policy={POLICY}",
        "--interval-ns=300000",
        "--warm-up-ns=1250000000",
        "--count=500",
    )
    for series in range(len(CPUS)):
        summary = next(line for line in stream.all("summary") if line["series"] == series)
        assert summary["warm_up"]["count"] + summary["warm_up"]["missed"] == -(-1250 * MS // (300 * US))
        assert len(stream.windows(series, "warm-up")) == 2
        assert activations(stream, series) == 500
        check_windows(stream, series)
    stream = run(engine, "wakeup", "--go", f"--policy={POLICY}", "--warm-up-ns=0", "--count=50")
    assert not [line for line in stream.all("window") if line["phase"] == "warm-up"]
    assert stream.all("summary")[0]["warm_up"] == {"count": 0, "missed": 0, "max_ns": None}


@pytest.mark.parametrize("timer", ["nanosleep", "timerfd"])
@pytest.mark.parametrize(
    "policy",
    [
        "other",
        pytest.param("fifo", marks=pytest.mark.real_time),
        pytest.param("rr", marks=pytest.mark.real_time),
    ],
)
def test_every_timer_under_every_policy(engine: Path, timer: str, policy: str) -> None:
    stream = wakeup(engine, f"--timer={timer}", "--count=300", "--priority=42", policy=policy)
    assert (stream.reason, stream.status) == ("count", 0)
    parameters = stream.one("hello")["parameters"]
    assert (parameters["timer"], parameters["policy"], parameters["priority"]) == (timer, policy, 42)
    for series in range(len(CPUS)):
        assert activations(stream, series) == 300


@pytest.mark.real_time
def test_the_measuring_thread_has_its_policy_and_its_cpu(engine: Path) -> None:
    with Live(engine, "wakeup", f"--cpu={CPUS[-1]}", "--policy=rr", "--priority=37") as live:
        live.read_until("armed")
        actual = [
            tid
            for tid in map(int, os.listdir(f"/proc/{live.process.pid}/task"))  # noqa: PTH208
            if tid != live.process.pid
            and os.sched_getscheduler(tid) == os.SCHED_RR
            and os.sched_getparam(tid).sched_priority == 37
        ]
        assert len(actual) == 1
        assert os.sched_getaffinity(actual[0]) == {CPUS[-1]}
        assert os.sched_getscheduler(live.process.pid) == os.SCHED_OTHER
        if len(CPUS) > 1:
            assert CPUS[-1] not in os.sched_getaffinity(live.process.pid)
        live.send("stop\n")
        assert live.finish().reason == "stopped"


@two_cpus
def test_a_fixed_phase_is_one_for_all(engine: Path) -> None:
    starts = {line["start_ns"] for line in wakeup(engine, "--phase=fixed", "--count=50").all("started")}
    assert len(starts) == 1
    phases: set[int] = set()
    for _ in range(3):
        phases |= {
            line["start_ns"] % MS for line in wakeup(engine, "--phase=random", "--count=20").all("started")
        }
    assert len(phases) >= 3 * len(CPUS) - 1


@two_cpus
def test_cpus_not_measured_are_named(engine: Path) -> None:
    stream = wakeup(engine, f"--cpu={CPUS[0]}", "--count=50")
    hello = stream.one("hello")
    assert hello["cpus"] == CPUS[:1]
    assert {"cpu": CPUS[1], "reason": "not-asked"} in hello["cpus_not_measured"]
    assert len(stream.all("summary")) == 1
    stream = wakeup(engine, "--count=50", prefix=["taskset", "-c", str(CPUS[1])])
    hello = stream.one("hello")
    assert hello["cpus"] == CPUS[1:2]
    assert {"cpu": CPUS[0], "reason": "affinity"} in hello["cpus_not_measured"]
    # An affinity is left on demand.
    stream = wakeup(engine, "--count=50", f"--cpu={CPUS[0]}", prefix=["taskset", "-c", str(CPUS[1])])
    assert (stream.one("hello")["cpus"], stream.reason) == (CPUS[:1], "count")


def test_it_waits_for_go_and_obeys_stop(engine: Path) -> None:
    with Live(engine, "wakeup", f"--policy={POLICY}", "--warm-up-ns=0") as live:
        live.read_until("armed")
        live.send("nonsense\n" + "x" * 500 + "go\ngo on\n g")
        assert live.quiet_for(0.4)
        live.send("o\n")  # " go" is no word
        assert live.quiet_for(0.3)
        live.send("g")
        assert live.quiet_for(0.2)
        live.send("o\n")
        live.read_until("window")
        live.send("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    for series in range(len(CPUS)):
        assert activations(stream, series) >= 1000
        check_windows(stream, series)


@pytest.mark.parametrize("how", ["stop", "end of input", "SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("when", ["before go", "after go"])
def test_every_way_to_stop(engine: Path, how: str, when: str) -> None:
    with Live(engine, "wakeup", f"--policy={POLICY}", "--warm-up-ns=100000000") as live:
        live.read_until("armed")
        if when == "after go":
            live.send("go\n")
            live.read_until("window")
        if how == "stop":
            live.send("stop\n")
        elif how == "end of input":
            assert live.process.stdin
            live.process.stdin.close()
        else:
            live.signal(signal.Signals[how])
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    assert len(stream.all("summary")) == (len(CPUS) if when == "after go" else 0)
    if when == "after go":
        for series in range(len(CPUS)):
            activations(stream, series)
            check_windows(stream, series)


def test_many_signals_make_no_impossible_latency(engine: Path) -> None:
    """A signal may interrupt the sleep of no measuring thread before its time."""
    with Live(engine, "wakeup", f"--policy={POLICY}", "--duration-ns=1000000000", "--warm-up-ns=0") as live:
        live.read_until("armed")
        live.send("go\n")
        live.storm(60)
        stream = live.finish()
    assert stream.reason == "duration"
    for series in range(len(CPUS)):
        assert activations(stream, series) == 1000


def test_an_ignored_hangup_stays_ignored(engine: Path) -> None:
    with Live(
        engine,
        "wakeup",
        f"--policy={POLICY}",
        "--count=300",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as live:
        live.read_until("armed")
        live.signal(signal.SIGHUP)
        live.send("go\n")
        live.read_until("started")
        live.signal(signal.SIGHUP)
        assert live.finish().reason == "count"


@pytest.mark.parametrize("timer", ["nanosleep", "timerfd"])
def test_a_long_interval_is_no_reason_to_wait_for_the_end(engine: Path, timer: str) -> None:
    with Live(
        engine,
        "wakeup",
        f"--policy={POLICY}",
        "--interval-ns=600000000000",
        f"--timer={timer}",
        "--phase=fixed",
        "--warm-up-ns=0",
    ) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        time.sleep(0.5)
        live.send("stop\n")
        stream = live.finish()
    assert stream.reason == "stopped"
    for series in range(len(CPUS)):
        assert activations(stream, series) == 1
        check_windows(stream, series)


def test_a_threshold_ends_the_measured_phase(engine: Path) -> None:
    stream = wakeup(engine, "--stop-at-ns=1", "--duration-ns=60000000000")
    assert (stream.reason, stream.status) == ("threshold", 0)
    outliers = stream.all("outlier")
    assert max(line["value_ns"] for line in outliers) > 1
    for series in range(len(CPUS)):
        check_windows(stream, series)
        summary = next(line for line in stream.all("summary") if line["series"] == series)
        # The threshold does not speak of the warm-up.
        assert summary["warm_up"]["count"] + summary["warm_up"]["missed"] >= 49
    stream = wakeup(engine, f"--stop-at-ns={10 * SECOND}", "--count=200")
    assert stream.reason == "count"


def unpack(path: Path) -> tuple[tuple[Any, ...], list[int]]:
    data = path.read_bytes()
    return struct.unpack_from("<8sIIiIqqqqq", data), list(
        struct.unpack(f"<{(len(data) - 64) // 8}q", data[64:])
    )


@pytest.mark.parametrize("interval_ns", [333 * US, 20 * US])
def test_the_samples_file_agrees_with_the_stream(engine: Path, tmp_path: Path, interval_ns: int) -> None:
    stream = wakeup(
        engine, f"--interval-ns={interval_ns}", "--duration-ns=1200000000", f"--samples-dir={tmp_path}"
    )
    assert stream.reason == "duration"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"samples-{series}.i64" for series in range(len(CPUS))
    ]
    warm_up = -(-50 * MS // interval_ns)
    total = warm_up + -(-1200 * MS // interval_ns)
    for series, cpu in enumerate(CPUS):
        header, samples = unpack(tmp_path / f"samples-{series}.i64")
        start = next(line["start_ns"] for line in stream.all("started") if line["series"] == series)
        assert header == (
            b"rtgauge\x01",
            64,
            series,
            cpu,
            0,
            interval_ns,
            start,
            warm_up * interval_ns,
            0,
            1200 * MS,
        )
        release, missed, values = 0, 0, []
        for sample in samples:
            if release >= warm_up:
                values.append(sample)
            following = min(total, release + 1 + ((sample - 1) // interval_ns if sample > interval_ns else 0))
            missed += sum(1 for position in range(release + 1, following) if position >= warm_up)
            release = following
        assert release == total
        summary = next(line for line in stream.all("summary") if line["series"] == series)
        assert (len(values), missed, sum(values)) == (summary["count"], summary["missed"], summary["sum_ns"])
        assert (min(values), max(values)) == (summary["min_ns"], summary["max_ns"])
        bins: Counter[int] = Counter()
        for window in stream.windows(series):
            bins.update(dict(window["bins"]))
        assert bins == Counter(bin_of(values).tolist())


def test_samples_never_go_over_a_file_that_is_there(engine: Path, tmp_path: Path) -> None:
    (tmp_path / "samples-0.i64").write_text("mine")
    stream = wakeup(engine, "--count=10", f"--samples-dir={tmp_path}")
    assert stream.one("error")["code"] == "output"
    assert (tmp_path / "samples-0.i64").read_text() == "mine"


def test_the_longest_times_do_not_overflow(engine: Path) -> None:
    longest = (2**63 - 1) // 4
    for words in (
        [f"--duration-ns={longest}"],
        [f"--count={longest // MS}"],
        [f"--duration-ns={longest}", "--interval-ns=1000000007"],
    ):
        with Live(engine, "wakeup", f"--policy={POLICY}", "--warm-up-ns=0", *words) as live:
            live.read_until("armed")
            live.send("go\n")
            live.read_until("window")
            live.send("stop\n")
            stream = live.finish()
        assert stream.reason == "stopped"
        for series in range(len(CPUS)):
            assert activations(stream, series) > 0
            check_windows(stream, series)


def test_what_the_kernel_counted_is_there(engine: Path) -> None:
    summaries = wakeup(engine, "--count=400").all("summary")
    assert len(summaries) == len(CPUS)
    for summary in summaries:
        thread = summary["thread"]
        assert 0 < thread["voluntary_switches"] <= 401
        assert thread["cpu_ns"] > 0
        assert thread["major_faults"] == 0
        assert min(value for value in thread.values() if value is not None) >= 0
