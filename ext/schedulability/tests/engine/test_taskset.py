# SPDX-License-Identifier: MIT
"""taskset: what each task does, what the numbers add up to, and how it ends.

Times are of a busy machine: nothing absolute is asserted.
"""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from tests.engine.stream import CPUS, PATIENCE_S, Live, Stream, run

pytestmark = [pytest.mark.engine, pytest.mark.real_time]
MS = 1_000_000
CPU = CPUS[0]
METRICS = [
    "latency",
    "response",
    "response-from-start",
    "period",
    "absolute-jitter",
    "tardiness",
    "execution",
    "preemptions",
]
TABLE_6 = [(99, 10, 3, 10, 0, "τ1"), (80, 20, 5, 20, 0, "τ2"), (50, 40, 10, 40, 0, "τ3")]


def lines(tasks, cpu=CPU):
    return "\n".join(
        f"{cpu} {priority} {period * MS} {execution * MS} {deadline * MS} {offset * MS} {name}"
        for priority, period, execution, deadline, offset, name in tasks
    )


def taskset(engine, tasks, *words, warm_up=80, duration=400) -> Stream:
    times = [f"--warm-up-ns={warm_up * MS}", f"--duration-ns={duration * MS}"]
    return run(engine, "taskset", "--go", "--dma-latency-us=-1", f"--tasks={lines(tasks)}", *times, *words)


def by_task(stream):
    """task -> metric -> summary."""
    actual = {}
    summaries = {line["series"]: line for line in stream.all("summary")}
    for series in stream.all("series"):
        actual.setdefault(series["labels"]["task"], {})[series["metric"]] = summaries[series["series"]]
    return actual


@pytest.mark.parametrize("execution", ["wall", "cpu"])
def test_the_papers_set_is_run_as_it_is_written(engine, execution):
    stream = taskset(engine, TABLE_6, f"--execution={execution}", "--timeline-ns=80000000")
    assert stream.reason == "duration"
    hello = stream.one("hello")
    assert [loop["task"] for loop in hello["busy_loop"]] == ["τ1", "τ2", "τ3"]
    assert all(loop["pass_ns"] > 0 and loop["thread_clock_ns"] > 0 for loop in hello["busy_loop"])
    actual = by_task(stream)
    assert {task: list(metrics) for task, metrics in actual.items()} == {
        task: METRICS for *_, task in TABLE_6
    }
    for _, period, execution_ms, _, _, task in TABLE_6:
        item = actual[task]
        releases = 400 // period
        for metric in METRICS:
            assert item[metric]["count"] == releases, (task, metric)
            assert item[metric]["warm_up"]["count"] == 80 // period - (
                metric in {"period", "absolute-jitter"}
            )
            assert (item[metric]["missed"], item[metric]["lost"], item[metric]["impossible"]) == (0, 0, 0)
        # exact identities of the sums, however late everything was
        assert item["latency"]["sum_ns"] + item["response-from-start"]["sum_ns"] == item["response"]["sum_ns"]
        assert item["response-from-start"]["min_ns"] >= (execution_ms - (execution == "wall")) * MS
        assert item["response"]["max_ns"] >= item["latency"]["max_ns"]
    if execution == "cpu":
        assert all(
            actual[task]["execution"]["min_ns"] > 0.98 * execution_ms * MS
            for _, _, execution_ms, _, _, task in TABLE_6
        )
    # the lowest waits for both others at least once a hyperperiod: nothing runs beside it on one CPU
    assert actual["τ3"]["latency"]["max_ns"] > 6 * MS
    assert actual["τ3"]["preemptions"]["sum_ns"] > 0
    assert actual["τ3"]["latency"]["thread"]["involuntary_switches"] > 0


def test_the_segments_name_the_running_task(engine):
    stream = taskset(engine, TABLE_6, "--timeline-ns=80000000", "--execution=cpu")
    segments = stream.all("segment")
    zero = {line["series"]: line["start_ns"] for line in stream.all("started")}
    tasks = {line["series"]: line["labels"]["task"] for line in stream.all("series")}
    for n, (*_, task) in enumerate(TABLE_6):
        mine = [segment for segment in segments if tasks[segment["series"]] == task]
        assert {own["activation"] for own in mine} == set(range(1, 80 // TABLE_6[n][1] + 1))
        assert all(own["end_ns"] >= own["start_ns"] >= zero[0] for own in mine)
        assert mine == sorted(mine, key=lambda item: item["start_ns"])
    # one CPU: two tasks never run at the same time
    ordered = sorted(segments, key=lambda item: item["start_ns"])
    assert all(a["end_ns"] <= b["start_ns"] for a, b in itertools.pairwise(ordered))


def test_a_timeline_comes_only_on_request(engine):
    assert taskset(engine, TABLE_6[:1], duration=50).all("segment") == []


def test_tasks_are_interrupted_to_the_end_of_the_last_activation(engine):
    """τ3 released 40 ms before the end is still pre-empted by the others after the end: else its last
    response would be too good.
    """
    stream = taskset(engine, TABLE_6, "--execution=cpu", warm_up=0, duration=40)
    responses = {task: metrics["response"] for task, metrics in by_task(stream).items()}
    assert responses["τ3"]["count"] == 1
    assert responses["τ3"]["min_ns"] > 28 * MS  # 10 of its own, 3 x 3 and 2 x 5 of the others


def test_offsets_and_deadlines(engine):
    stream = taskset(
        engine, [(90, 20, 2, 20, 5, "late"), (80, 20, 4, 4, 0, "tight")], warm_up=0, duration=200
    )
    metrics = by_task(stream)
    assert metrics["late"]["latency"]["count"] == 10  # 5, 25, ... 185
    # 4 ms of work with a deadline of 4 ms: whatever the machine does, the end lies after it
    assert metrics["tight"]["tardiness"]["min_ns"] > 0
    assert metrics["tight"]["tardiness"]["sum_ns"] == metrics["tight"]["response"]["sum_ns"] - 10 * 4 * MS


@pytest.mark.parametrize("words", [["--policy=rr"], ["--policy=deadline", "--pin=off"]])
def test_policies(engine, words):
    stream = taskset(engine, [(90, 20, 2, 20, 0, "a"), (80, 40, 4, 40, 0, "b")], *words, duration=200)
    if stream.all("error"):  # fewer CPUs allowed than there are
        assert stream.one("error")["code"] == "deadline"
        pytest.skip(stream.one("error")["message"])
    assert [by_task(stream)[task]["response"]["count"] for task in "ab"] == [10, 5]


def test_an_overload_is_bounded_and_marked_unfinished(engine):
    stream = taskset(
        engine, [(90, 10, 8, 10, 0, "high"), (80, 20, 10, 20, 0, "low")], "--force", warm_up=0, duration=1000
    )
    assert stream.reason == "duration"
    metrics = by_task(stream)
    assert "unfinished" in stream.marks
    assert metrics["low"]["response"]["count"] < 50
    assert metrics["low"]["tardiness"]["max_ns"] > 0


def test_an_ordinary_process_survives_an_overload(engine):
    """A shell stays responsive: on another CPU, or by what the kernel leaves to ordinary threads; at the
    latest when the bound strikes.
    """
    with Live(
        engine,
        "taskset",
        "--dma-latency-us=-1",
        f"--tasks={lines([(99, 10, 10, 10, 0, 'hog')])}",
        "--force",
        "--warm-up-ns=0",
        "--duration-ns=2000000000",
    ) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        assert (
            subprocess.run(
                [sys.executable, "-c", "print(1)"], capture_output=True, timeout=PATIENCE_S, check=True
            ).stdout
            == b"1\n"
        )
        stream = live.finish()
    assert stream.status == 0


def test_stop_ends_busy_loops_at_once(engine):
    with Live(
        engine,
        "taskset",
        "--dma-latency-us=-1",
        f"--tasks={lines([(90, 10000, 5000, 10000, 0, 'long')])}",
        "--warm-up-ns=0",
        "--duration-ns=60000000000",
    ) as live:
        live.read_until("armed")
        live.send("go\n")
        live.read_until("started")
        live.send("stop\n")
        stream = live.finish()
    assert stream.reason == "stopped"
    assert by_task(stream)["long"]["response"]["count"] == 0  # its 5 s were cut short


def test_samples_are_kept_with_their_times(engine, tmp_path):
    from rtgauge.record.samples_summary import summarise_samples

    stream = taskset(engine, TABLE_6[:1], f"--samples-dir={tmp_path}", duration=100)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"samples-{n}.i64" for n in range(8)]
    assert (
        summarise_samples(tmp_path / "samples-1.i64").distribution.max_ns
        == by_task(stream)["τ1"]["response"]["max_ns"]
    )


def test_many_signals_start_no_activation_early(engine):
    """A signal may end the sleep of no task before its release."""
    set_of_two = [(99, 20, 1, 20, 0, "fast"), (80, 50, 2, 50, 0, "slow")]
    with Live(
        engine,
        "taskset",
        "--dma-latency-us=-1",
        f"--tasks={lines(set_of_two)}",
        "--warm-up-ns=0",
        f"--duration-ns={800 * MS}",
    ) as live:
        live.read_until("armed")
        live.send("go\n")
        live.storm(60)
        stream = live.finish()
    assert stream.reason == "duration"
    for _, period, _, _, _, name in set_of_two:
        latency = by_task(stream)[name]["latency"]
        assert (latency["count"], latency["impossible"]) == (800 // period, 0)
        assert latency["min_ns"] >= 0
