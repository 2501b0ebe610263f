# SPDX-License-Identifier: MIT
"""What a run says of its progress: one count and one estimate over all of it, and steps by what tells them
apart.
"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rtgauge.cli import progress
from rtgauge.cli.progress import Display, LiveDisplay
from rtgauge.runner.step_loop import expected_s
from tests.support.messages import missing
from tests.unit.records import step

SECOND = 10**9


@pytest.fixture(name="clock")
def a_clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def key(load="idle", repeat=1, **parameters):
    known = step([5])[0].key.with_parameters(**{"interval_ns": 1_000_000, **parameters})
    return known.model_copy(update={"load": load, "repeat": repeat})


def measure(display, clock, keys, expected_s, took_s):
    display.run_begins(keys, expected_s)
    for number, (planned, seconds) in enumerate(zip(keys, took_s, strict=True)):
        display.step_begins(number, planned)
        clock[0] += seconds
        display.step_ends(step([5])[0].model_copy(update={"key": planned}))


def lines(stream):
    return [line for line in stream.getvalue().splitlines() if not line.startswith("      ")]


def test_the_time_left_learns_from_finished_steps(clock):
    stream = io.StringIO()
    measure(Display(stream), clock, [key(), key("cpu"), key("memory")], [10, 10, 10], [14, 14, 14])
    assert lines(stream) == [
        "3 steps, about 30 s",
        "[1/3] wakeup idle, 30 s left",
        "[2/3] wakeup cpu, 28 s left",
        "[3/3] wakeup memory, 14 s left",
    ]


def test_the_rounds_of_a_study_are_counted_on(clock):
    stream = io.StringIO()
    display = Display(stream)
    display.later_s = lambda known: 60 if len(known) == 2 else 0
    measure(display, clock, [key(), key("cpu")], [10, 10], [10, 10])
    measure(display, clock, [key("memory")], [60], [60])
    planned, first = lines(stream)[:2]
    assert not missing(planned, "2 steps", "20 s", "then about 1 min 0 s", "study")
    assert first == "[1/2] wakeup idle, 1 min 20 s left"
    assert lines(stream)[3:] == ["1 more step, about 1 min 0 s", "[3/3] wakeup memory, 1 min 0 s left"]


def test_where_nobody_knows_how_long_a_study_takes_it_says_so(clock):
    stream = io.StringIO()
    display = Display(stream)
    display.later_s = lambda _: None
    measure(display, clock, [key(), key("cpu")], [10, 10], [10, 10])
    planned, first = lines(stream)[:2]
    assert not missing(planned, "2 steps", "20 s", "then more steps", "study")
    assert first == "[1/2] wakeup idle, 20 s left"


def test_steps_are_named_by_what_differs(clock):
    stream = io.StringIO()
    keys = [key(interval_ns=100_000), key(interval_ns=250_000), key(interval_ns=250_000, repeat=2)]
    measure(Display(stream), clock, keys, [1, 1, 1], [1, 1, 1])
    names = [line.partition("] ")[2].rpartition(", ")[0] for line in lines(stream)[1:]]
    assert names == [
        "wakeup idle, interval 100us #1",
        "wakeup idle, interval 250us #1",
        "wakeup idle, interval 250us #2",
    ]


def test_one_bar_is_for_the_whole_run(clock):
    display = LiveDisplay(Console(file=io.StringIO(), width=100, force_terminal=True))
    with display:
        measure(display, clock, [key(), key("cpu")], [10, 10], [12, 9])
        measure(display, clock, [key("memory")], [20], [5])
        (task,) = display.bar.tasks
        assert task.total == 40
        assert task.completed == 20
        assert task.description == "3/3 wakeup memory"


def test_time_left_learns_apart_with_and_without_load(clock):
    stream = io.StringIO()
    measure(
        Display(stream), clock, [key(), key("cpu"), key("memory"), key()], [10, 20, 20, 10], [12, 40, 44, 12]
    )
    left = [line.rpartition(", ")[2] for line in lines(stream)[1:]]
    assert left == ["1 min 0 s left", "56 s left", "52 s left", "12 s left"]


WARM_UP_NS = 2 * SECOND
"""Of a load, as in `quick`."""


def of_quick(load, seconds):
    return key(load, duration_ns=seconds * SECOND, warm_up_ns=SECOND // 2, count=None)


@pytest.mark.parametrize("load", ["idle", "cpu"])
@pytest.mark.parametrize("arming_s", [0.04, 0.2])
def test_on_a_quick_target_a_step_takes_as_long_as_here(load, arming_s):
    assert expected_s(of_quick(load, 10), WARM_UP_NS, arming_s=arming_s) == expected_s(
        of_quick(load, 10), WARM_UP_NS
    )


@pytest.mark.parametrize(
    ("seconds", "arming_s", "took_s"),
    [(3, 1.63, [6.1, 23.5, 45.8, 35.1, 26.8]), (10, 0.60, [11.4, 18.2, 26.2, 32.0, 39.9])],
)
def test_an_emulated_guests_quick_time_follows_from_arming(seconds, arming_s, took_s):
    """Two runs that were measured, on a host with more and with less to do."""
    loads = ["idle", "cpu", "memory", "network", "scheduler"]
    expected = [
        expected_s(of_quick(load, seconds), WARM_UP_NS, arming_s=arming_s, emulated=True) for load in loads
    ]
    assert expected[0] == pytest.approx(took_s[0], rel=0.25)
    assert sum(expected) == pytest.approx(sum(took_s), rel=0.25)
