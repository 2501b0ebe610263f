# SPDX-License-Identifier: MIT
"""The moments around the largest latencies: they hold what the kernel did there, by the clock that the
latencies are measured by.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import Moment, read_moment
from tests.engine.stream import PATIENCE_S, POLICY, Stream, run, wakeup
from tests.support.trace_instance import recording, trace_instance

pytestmark = [pytest.mark.root, pytest.mark.tracefs]
REASONS = ("overwritten", "over_budget", "too_many_at_once", "events_off")


@pytest.fixture
def instance(engine: Path, tmp_path: Path) -> Generator[str]:
    """The name of an instance of tracefs that is there for the test."""
    with made_instance(engine, tmp_path, f"rtgauge-test-{os.getpid()}") as name:
        yield name


@contextmanager
def made_instance(engine: Path, tmp_path: Path, name: str) -> Generator[str]:
    options = ("--run=explain", f"--journal={tmp_path}/journal")
    subprocess.run(
        [engine, "set", *options, "--", f"trace:{name}", "present"],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    try:
        yield name
    finally:
        completed = subprocess.run(
            [engine, "restore", *options], capture_output=True, text=True, check=True, timeout=PATIENCE_S
        )
        assert '"action":"restored"' in completed.stdout


def explained(stream: Stream) -> dict[str, Any]:
    (result,) = [line for line in stream.all("result") if line["name"] == "explain"]
    assert result["values"]["moments"] == len(stream.all("moment"))
    return result["values"]


def moments(stream: Stream) -> list[Moment]:
    """Every moment with its events: all pages are such that can be read."""
    formats = TraceFormats.read(stream.one("trace_formats"))
    return [read_moment(formats, line) for line in stream.all("moment")]


def woken_ns(moment: Moment) -> list[int]:
    """When its thread was woken or switched to.

    Some kernels tell of no switch from some tasks, but of every wake-up.
    """
    return [
        event.time_ns
        for event in moment.table.events
        if (event.name == "sched_waking" and event.values["pid"] == moment.thread)
        or (event.name == "sched_switch" and event.values["next_pid"] == moment.thread)
    ]


MOST_RUNS = 10
"""On a machine so busy that activations were missed before every moment, the run is repeated."""


def missed_before(stream: Stream, moment: Moment) -> bool:
    """Whether its thread missed an activation in the window of its release or in the one before."""
    windows = [line for line in stream.all("window") if line["series"] == moment.series]
    begun = [line["missed"] for line in windows if line["start_ns"] <= moment.release_ns]
    return any(begun[-2:])


def test_the_wake_up_lies_between_release_and_reading(engine: Path, instance: str) -> None:
    """The probe's clock and that of the events are one: nothing else orders these three."""
    options = ("--interval-ns=20000000", "--count=100", "--window-ns=100000000")
    asleep: list[Moment] = []
    for _ in range(MOST_RUNS):
        stream = wakeup(engine, f"--explain-instance={instance}", *options)
        assert stream.reason == "count"
        kept_moments = moments(stream)
        assert explained(stream)["buffer_kb"] == 512
        assert kept_moments
        assert all(moment.end_ns - moment.release_ns == moment.latency_ns for moment in kept_moments)
        # A thread that came too late to sleep until this release is not woken for it.
        asleep = [moment for moment in kept_moments if not missed_before(stream, moment)]
        if asleep:
            break
    assert asleep, "activations were missed before every moment of every run"
    for moment in asleep:
        assert any(moment.release_ns <= time_ns <= moment.end_ns for time_ns in woken_ns(moment)), (
            moment.number,
            moment.release_ns,
            moment.end_ns,
        )


def test_a_new_maximum_is_larger_than_those_before(engine: Path, instance: str) -> None:
    stream = wakeup(engine, f"--explain-instance={instance}", "--count=1000")
    for series in {line["series"] for line in stream.all("series")}:
        latencies = [line["latency_ns"] for line in stream.all("moment") if line["series"] == series]
        assert latencies == sorted(set(latencies))
        values = explained(stream)
        (summary,) = [line for line in stream.all("summary") if line["series"] == series]
        if not any(values[reason] for reason in REASONS):
            assert latencies[-1] == summary["max_ns"]


def test_each_latency_above_the_threshold_is_kept_or_counted(engine: Path, instance: str) -> None:
    stream = wakeup(engine, f"--explain-instance={instance}", "--explain-above-ns=1", "--count=300")
    values = explained(stream)
    samples = sum(line["count"] for line in stream.all("summary"))
    assert len(stream.all("moment")) + sum(values[reason] for reason in REASONS) == samples
    assert {line["kind"] for line in stream.all("moment")} <= {"maximum", "above"}
    assert len(stream.all("moment")) <= 400


def test_each_series_keeps_its_largest_latency_in_a_full_room(engine: Path, instance: str) -> None:
    stream = wakeup(engine, f"--explain-instance={instance}", "--explain-above-ns=1", "--count=2000")
    values = explained(stream)
    assert values["over_budget"] > 0
    kept = {line["series"]: line["latency_ns"] for line in stream.all("moment") if line["kind"] == "maximum"}
    if not any(values[reason] for reason in REASONS if reason != "over_budget"):
        assert kept == {line["series"]: line["max_ns"] for line in stream.all("summary")}


def test_the_events_are_those_that_were_chosen(engine: Path, instance: str) -> None:
    stream = wakeup(
        engine,
        f"--explain-instance={instance}",
        "--explain-events=irq/irq_handler_entry,sched,none/none",
        "--explain-buffer-kb=64",
        "--count=50",
    )
    events = set(stream.one("trace_formats")["events"])
    assert "irq/irq_handler_entry" in events
    assert "sched/sched_switch" in events
    assert {event.partition("/")[0] for event in events} == {"irq", "sched"}


def test_the_warm_up_alternates_with_and_without_events(engine: Path, instance: str) -> None:
    stream = wakeup(engine, f"--explain-instance={instance}", "--explain-cost-ns=1600000000", "--count=50")
    stretches = stream.all("stretch")
    assert [line["events"] for line in stretches] == [
        number % 4 in (1, 2) for number in range(len(stretches))
    ]
    assert all(before["end_ns"] <= after["start_ns"] for before, after in itertools.pairwise(stretches))
    assert 0 < len(stretches) <= 16
    starts = [
        line["start_ns"] for line in stream.all("window") if line["phase"] == "measure" and line["index"] == 0
    ]
    assert stretches[-1]["end_ns"] <= min(starts)
    assert sum(line["count"] for line in stretches) > 0


def test_functions_have_their_names(engine: Path, instance: str) -> None:
    stream = wakeup(
        engine,
        f"--explain-instance={instance}",
        "--explain-events=default,timer/hrtimer_expire_entry",
        "--count=300",
    )
    names = set(stream.one("symbols")["symbols"].values())
    assert "hrtimer_wakeup" in names


@pytest.mark.parametrize(
    "words",
    [
        ("periodic", "--period-ns=4000000", "--count=200"),
        ("response", "--interval-ns=2000000", "--timeout-ns=5000000000", "--count=200"),
        (
            "taskset",
            "--duration-ns=400000000",
            "--tasks=0 90 10000000 1000000 10000000 0 a\n0 80 20000000 2000000 20000000 0 b",
        ),
    ],
)
def test_other_probes_have_moments_of_the_thread_that_works(
    engine: Path, instance: str, words: tuple[str, ...]
) -> None:
    policy = () if words[0] == "taskset" else (f"--policy={POLICY}",)
    stream = run(engine, *words, "--go", "--warm-up-ns=50000000", *policy, f"--explain-instance={instance}")
    kept_moments = moments(stream)
    assert kept_moments
    for moment in kept_moments:
        on_cpu = [
            event
            for event in moment.table.of_cpu(moment.cpu)
            if moment.release_ns <= event.time_ns <= moment.end_ns
        ]
        threads = {event.values["next_pid"] for event in on_cpu if event.name == "sched_switch"} | {
            event.pid for event in on_cpu
        }
        assert moment.thread in threads, (moment.number, words[0])


def test_without_the_instance_the_rest_is_measured(engine: Path) -> None:
    stream = wakeup(engine, "--explain-instance=rtgauge-nobody", "--explain-cost-ns=100000000", "--count=100")
    assert stream.reason == "count"
    (mark,) = [line for line in stream.all("mark") if line["name"] == "not-explained"]
    assert "rtgauge-nobody: No such file or directory" in mark["detail"]
    assert not stream.all("moment")
    assert not stream.all("trace_formats")
    assert all(line["count"] + line["missed"] == 100 for line in stream.all("summary"))


def test_two_engines_do_not_record_in_one_instance(engine: Path, instance: str) -> None:
    """Another one, as from a container with a lock of its own, would turn the first one's events off."""
    folder = os.open(f"/sys/kernel/tracing/instances/{instance}", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        stream = wakeup(engine, f"--explain-instance={instance}", "--count=10")
    finally:
        os.close(folder)
    assert stream.reason == "count"
    (mark,) = [line for line in stream.all("mark") if line["name"] == "not-explained"]
    assert "another rtgauge" in mark["detail"]


@pytest.mark.alone  # a test that records meanwhile would change its answer
def test_names_are_noted_only_if_somebody_else_records(engine: Path, tmp_path: Path) -> None:
    name = f"rtgauge-test-names-{os.getpid()}"
    with trace_instance(tmp_path) as other:
        root = other.folder.parent.parent

        def options() -> list[str]:
            with made_instance(engine, tmp_path, name):
                return (root / "instances" / name / "trace_options").read_text().split()

        other.write("events/sched/sched_process_hang/enable", "1")
        assert "record-cmd" in options()
        other.write("events/sched/sched_process_hang/enable", "0")
        assert recording(root) == [], (
            "end what records in these instances of tracefs: it is in this test's way"
        )
        assert "norecord-cmd" in options()
