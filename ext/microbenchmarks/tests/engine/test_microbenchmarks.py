# SPDX-License-Identifier: MIT
"""switch, preempt, semaphore and inversion: what they say adds up, what they answer is right, and they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.stream import (
    CPUS,
    FIFO,
    POLICY,
    REAL_TIME,
    Live,
    adds_up,
    duration_adds_up,
    measured,
    refused,
    run,
    shell_runs_meanwhile,
    stop_ends_in_order,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine
COSTS = {"switch": "switch", "preempt": "preemption", "semaphore": "hand-over"}
METHODS = ["semaphore", "mutex", "condition", "eventfd", "pipe", "mqueue", "signal"]


@pytest.mark.parametrize("policy", [FIFO, "other"])
@pytest.mark.parametrize("probe", list(COSTS))
def test_a_duration_is_measured_and_adds_up(engine: Path, probe: str, policy: str) -> None:
    duration_adds_up(engine, probe, COSTS[probe], policy)


@pytest.mark.parametrize("probe", ["switch", "preempt", "semaphore"])
def test_a_count_is_measured_exactly(engine: Path, probe: str) -> None:
    stream = measured(engine, probe, "--count=100")
    assert (stream.reason, stream.status) == ("count", 0)
    assert stream.one("summary")["count"] == 100
    adds_up(stream)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("placement", ["same-cpu", "other-core"])
def test_every_method_hands_over(engine: Path, method: str, placement: str) -> None:
    if placement == "other-core" and len(CPUS) < 2:
        pytest.skip("one CPU")
    stream = measured(engine, "semaphore", f"--method={method}", f"--placement={placement}", "--count=500")
    assert stream.one("series")["labels"] == {"cpu": CPUS[0], "method": method, "placement": placement}
    assert stream.one("summary")["count"] == 500
    assert stream.one("hello")["cpus"] == (CPUS[:1] if placement == "same-cpu" else sorted(CPUS[:2]))
    reported = stream.one("result")["values"]
    assert 0 <= reported["slept"] <= reported["hand_overs"]
    if placement == "same-cpu" and REAL_TIME:
        assert reported["slept"] == reported["hand_overs"]  # on one CPU nobody is posted before it sleeps


@pytest.mark.parametrize("tasks", [2, 3, 7])
def test_tasks_take_turns(engine: Path, tasks: int) -> None:
    stream = measured(engine, "switch", f"--tasks={tasks}", "--count=1000")
    values = stream.one("result")["values"]
    assert values["switched"] == 1000
    if REAL_TIME:
        assert values["kept_the_cpu"] == 0
        assert "few-switches" not in stream.marks


@pytest.mark.real_time
@pytest.mark.parametrize("event", ["timer", "wake-up"])
def test_the_low_task_is_preempted(engine: Path, event: str) -> None:
    if event == "wake-up" and len(CPUS) < 2:
        pytest.skip("one CPU")
    stream = measured(engine, "preempt", f"--event={event}", "--count=300", policy="fifo")
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


@pytest.mark.parametrize("probe", list(COSTS))
def test_a_stop_ends_in_order(engine: Path, probe: str) -> None:
    stop_ends_in_order(engine, probe)


@pytest.mark.parametrize("probe", list(COSTS))
def test_a_stop_before_go_measures_nothing(engine: Path, probe: str) -> None:
    with Live(engine, probe, f"--policy={POLICY}") as live:
        live.read_until("armed")
        live.send("stop\n")
        stream = live.finish()
    assert (stream.reason, stream.status) == ("stopped", 0)
    assert not stream.all("summary")


@pytest.mark.real_time
@pytest.mark.parametrize("words", ["switch", "preempt", "semaphore", "inversion"])
def test_an_ordinary_process_runs_with_the_highest_priority(engine: Path, words: str) -> None:
    length = [] if words == "inversion" else ["--duration-ns=1500000000", "--policy=fifo"]
    shell_runs_meanwhile(engine, words, *length)


@pytest.mark.real_time
def test_one_cpu_is_enough(engine: Path) -> None:
    """The thread that drains and the measuring ones share a CPU."""
    for probe in COSTS:
        stream = measured(engine, probe, "--count=20", prefix=["taskset", "-c", str(CPUS[0])])
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
    stream = measured(engine, "switch", "--count=500", f"--samples-dir={tmp_path}")
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
        live.send("go\n")
        live.storm(60)
        stream = live.finish()
    assert stream.reason == "count"
    summary = stream.one("summary")
    assert (summary["count"], summary["impossible"]) == (100, 0)
