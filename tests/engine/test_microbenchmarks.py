# SPDX-License-Identifier: MIT
"""noise, switch, preempt, semaphore and inversion: what they say adds up, what they answer is right, and they
end.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.stream import CPUS, PATIENCE_S, POLICY, REAL_TIME, Live, Stream, refused, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine
COSTS = {"noise": "gap", "switch": "switch", "preempt": "preemption", "semaphore": "hand-over"}
METHODS = ["semaphore", "mutex", "condition", "eventfd", "pipe", "mqueue", "signal"]


def micro(engine: Path, probe: str, *words: str, policy: str = POLICY, **options: Any) -> Stream:
    return run(engine, probe, "--go", f"--policy={policy}", "--warm-up-ns=20000000", *words, **options)


def adds_up(stream: Stream) -> None:
    """Windows and summaries of each series tell the same, and nothing is missed."""
    for summary in stream.all("summary"):
        windows = stream.windows(summary["series"])
        assert sum(window["count"] for window in windows) == summary["count"]
        assert sum(number for window in windows for _, number in window["bins"]) == summary["count"]
        assert sum(window["sum_ns"] for window in windows) == summary["sum_ns"]
        assert (summary["missed"], summary["impossible"]) == (0, 0)
        if summary["count"]:
            assert min(window["min_ns"] for window in windows if window["count"]) == summary["min_ns"]
            assert max(window["max_ns"] for window in windows if window["count"]) == summary["max_ns"]


@pytest.mark.parametrize("policy", ["fifo", "rr", "other"])
@pytest.mark.parametrize("probe", list(COSTS))
def test_a_duration_is_measured_and_adds_up(engine: Path, probe: str, policy: str) -> None:
    if policy != "other" and not REAL_TIME:
        pytest.skip("real-time scheduling is not permitted here")
    stream = micro(engine, probe, "--duration-ns=300000000", policy=policy)
    assert (stream.reason, stream.status) == ("duration", 0)
    assert {line["metric"] for line in stream.all("series")} == {COSTS[probe]}
    adds_up(stream)
    starts = {line["series"]: line["start_ns"] for line in stream.all("started")}
    for series, start_ns in starts.items():
        windows = stream.windows(series)
        assert windows[0]["start_ns"] == start_ns + 20_000_000
        assert windows[-1]["end_ns"] - windows[0]["start_ns"] == 300_000_000
    assert stream.one("hello")["clock"]["cost_count"] > 0


@pytest.mark.parametrize("probe", ["switch", "preempt", "semaphore"])
def test_a_count_is_measured_exactly(engine: Path, probe: str) -> None:
    stream = micro(engine, probe, "--count=100")
    assert (stream.reason, stream.status) == ("count", 0)
    assert stream.one("summary")["count"] == 100
    adds_up(stream)


def test_noise_counts_gaps_up_to_the_count(engine: Path) -> None:
    stream = micro(engine, "noise", "--count=20", f"--cpu={CPUS[0]}", "--threshold-ns=1000")
    assert stream.reason == "count"
    assert sum(summary["count"] for summary in stream.all("summary")) >= 20
    adds_up(stream)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("placement", ["same-cpu", "other-core"])
def test_every_method_hands_over(engine: Path, method: str, placement: str) -> None:
    if placement == "other-core" and len(CPUS) < 2:
        pytest.skip("one CPU")
    stream = micro(engine, "semaphore", f"--method={method}", f"--placement={placement}", "--count=500")
    assert stream.one("series")["labels"] == {"cpu": CPUS[0], "method": method, "placement": placement}
    assert stream.one("summary")["count"] == 500
    assert stream.one("hello")["cpus"] == (CPUS[:1] if placement == "same-cpu" else sorted(CPUS[:2]))
    said = stream.one("result")["values"]
    assert 0 <= said["slept"] <= said["hand_overs"]
    if placement == "same-cpu" and REAL_TIME:
        assert said["slept"] == said["hand_overs"]  # on one CPU nobody is posted before it sleeps


@pytest.mark.parametrize("tasks", [2, 3, 7])
def test_tasks_take_turns(engine: Path, tasks: int) -> None:
    stream = micro(engine, "switch", f"--tasks={tasks}", "--count=1000")
    values = stream.one("result")["values"]
    assert values["switched"] == 1000
    if REAL_TIME:
        assert values["kept_the_cpu"] == 0
        assert "few-switches" not in stream.marks


@pytest.mark.real_time
@pytest.mark.parametrize(("warm_up", "duration"), [(10, 60), (0, 40), (130, 250)])
def test_noise_observes_what_it_measures(engine: Path, warm_up: int, duration: int) -> None:
    """Gaps and the time in which they could be seen are of the same phase, wherever in a round the phases
    begin and end.
    """
    stream = micro(engine, "noise", f"--warm-up-ns={warm_up * 10**6}", f"--duration-ns={duration * 10**6}")
    for result in stream.all("result"):
        values = result["values"]
        mine = [
            line["series"]
            for line in stream.all("series")
            if line["labels"]["cpu"] == result["labels"]["cpu"]
        ]
        assert values["taken_ns"] == sum(
            line["sum_ns"] for line in stream.all("summary") if line["series"] in mine
        )
        longest = max([line["max_ns"] or 0 for line in stream.all("summary")])
        assert values["taken_ns"] <= values["observed_ns"] <= duration * 10**6 + longest
        assert values["observed_ns"] > 0


@pytest.mark.real_time
@pytest.mark.parametrize("event", ["timer", "wake-up"])
def test_the_low_task_is_preempted(engine: Path, event: str) -> None:
    if event == "wake-up" and len(CPUS) < 2:
        pytest.skip("one CPU")
    stream = micro(engine, "preempt", f"--event={event}", "--count=300", policy="fifo")
    values = stream.one("result")["values"]
    assert values["preempted"] >= 0.9 * values["events"] >= 0.9 * 300
    assert "not-preempted" not in stream.marks


@pytest.mark.real_time
def test_who_starves_at_which_lock(engine: Path) -> None:
    stream = run(engine, "inversion", "--go", "--trials=1", "--section-ns=1000000", "--limit-ns=30000000")
    assert (stream.reason, stream.status) == ("count", 0)
    answers = {line["labels"]["lock"]: line["values"] for line in stream.all("result")}
    assert list(answers) == ["pi-mutex", "mutex", "ceiling-mutex", "semaphore", "futex", "spin"]
    safe = {lock for lock, values in answers.items() if values["answer"] == "not-starved"}
    starved = {lock for lock, values in answers.items() if values["answer"] == "starved"}
    assert starved == {"mutex", "semaphore", "futex", "spin"}
    assert safe | {lock for lock, values in answers.items() if values["answer"] == "not-available"} == {
        "pi-mutex",
        "ceiling-mutex",
    }
    assert "pi-mutex" in safe
    for values in answers.values():
        assert values["trials"] == (values["answer"] != "not-available")
        if values["answer"] == "starved":
            assert values["wait_max_ns"] >= 30_000_000
    assert answers["spin"]["gave_up"] == 1
    adds_up(stream)


@pytest.mark.real_time
def test_a_chosen_lock_is_tried_so_often(engine: Path) -> None:
    stream = run(engine, "inversion", "--go", "--lock=pi-mutex", "--trials=4", "--section-ns=100000")
    assert stream.one("result")["values"]["trials"] == 4
    assert stream.one("summary")["count"] == 4


@pytest.mark.parametrize("probe", ["noise", "switch", "preempt", "semaphore"])
def test_a_stop_ends_in_order(engine: Path, probe: str) -> None:
    with Live(engine, probe, f"--policy={POLICY}", "--warm-up-ns=0") as live:
        live.read_until("armed")
        live.say("go\n")
        live.read_until("window")
        live.say("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    adds_up(stream)


@pytest.mark.parametrize("probe", ["noise", "switch", "preempt", "semaphore"])
def test_a_stop_before_go_measures_nothing(engine: Path, probe: str) -> None:
    with Live(engine, probe, f"--policy={POLICY}") as live:
        live.read_until("armed")
        live.say("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    assert not stream.all("summary")


@pytest.mark.real_time
@pytest.mark.parametrize("words", [["noise"], ["switch"], ["preempt"], ["semaphore"], ["inversion"]])
def test_an_ordinary_process_goes_on_beside_the_highest_priority(engine: Path, words: list[str]) -> None:
    """On every CPU that may be used: what a shell starts must run, however the probe keeps the CPUs busy."""
    length = [] if words == ["inversion"] else ["--duration-ns=1500000000", "--policy=fifo"]
    with Live(engine, *words, "--priority=99", *length) as live:
        live.read_until("armed")
        live.say("go\n")
        live.read_until("started")
        done = 0
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            subprocess.run([sys.executable, "-S", "-c", ""], check=True, timeout=PATIENCE_S)
            done += 1
        stream = live.finish()
    assert done >= 2
    assert stream.status == 0
    assert "watchdog" not in stream.marks


@pytest.mark.real_time
def test_one_cpu_is_enough(engine: Path) -> None:
    """The thread that drains and the measuring ones share a CPU."""
    for probe in COSTS:
        stream = micro(engine, probe, "--count=20", prefix=["taskset", "-c", str(CPUS[0])])
        assert stream.reason == "count"
        assert stream.one("hello")["cpus"] == [CPUS[0]]
        assert sum(summary["count"] for summary in stream.all("summary")) >= 20
    refused(
        engine,
        "placement",
        3,
        "semaphore",
        "--go",
        f"--policy={POLICY}",
        "--placement=other-core",
        prefix=["taskset", "-c", str(CPUS[0])],
    )


def test_samples_bring_their_times(engine: Path, tmp_path: Path) -> None:
    stream = micro(engine, "switch", "--count=500", f"--samples-dir={tmp_path}")
    data = (tmp_path / "samples-0.i64").read_bytes()
    assert int.from_bytes(data[20:24], "little") == 1
    pairs = memoryview(data[64:]).cast("q")
    warm_up = stream.one("summary")["warm_up"]["count"]
    assert len(pairs) == 2 * (stream.one("summary")["count"] + warm_up)
    times = pairs[0::2].tolist()
    assert times == sorted(times)
    assert max(pairs[2 * warm_up + 1 :: 2].tolist()) == stream.one("summary")["max_ns"]


@pytest.mark.parametrize(
    "words",
    [
        ["noise", "--busy-ns=90000000"],
        ["noise", "--threshold-ns=1"],
        ["noise", "--duration-ns=1", "--count=1"],
        ["switch", "--tasks=1"],
        ["switch", "--tasks=65"],
        ["preempt", "--interval-ns=1"],
        ["preempt", "--policy=fifo", "--priority=1"],
        ["preempt", "--event=wake-up", "--placement=same-cpu"],
        ["semaphore", "--method=smoke"],
        ["inversion", "--lock=none"],
        ["inversion", "--priority=2"],
        ["inversion", "--limit-ns=1000000000"],
        ["inversion", "--trials=0"],
    ],
)
def test_wrong_input(engine: Path, words: list[str]) -> None:
    refused(engine, "usage", 2, *words)


@pytest.mark.real_time
def test_many_signals_make_no_event_early(engine: Path) -> None:
    """A signal may end the sleep of the high task no earlier than its timer."""
    with Live(
        engine, "preempt", "--interval-ns=4000000", "--policy=fifo", "--warm-up-ns=0", "--count=100"
    ) as live:
        live.read_until("armed")
        live.say("go\n")
        live.storm(60)
        stream = live.finish()
    assert stream.reason == "count"
    summary = stream.one("summary")
    assert (summary["count"], summary["impossible"]) == (100, 0)
