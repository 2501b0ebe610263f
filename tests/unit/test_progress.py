# SPDX-License-Identifier: MIT
"""What a run says of its progress: one count and one estimate over all of it, and steps by what tells them apart."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rtgauge.cli import progress_display
from rtgauge.cli.progress_display import Display, LiveDisplay
from tests.unit.records import step


@pytest.fixture(name="clock")
def a_clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress_display.time, "monotonic", lambda: now[0])
    return now


def key(load="idle", repeat=1, **parameters):
    return step([5])[0].key.model_copy(update={"load": load, "repeat": repeat, "parameters": {"interval_ns": 1_000_000, **parameters}})


def measure(display, clock, keys, expected_s, took_s):
    display.run_begins(keys, expected_s)
    for number, (planned, seconds) in enumerate(zip(keys, took_s, strict=True)):
        display.step_begins(number, planned)
        clock[0] += seconds
        display.step_ends(step([5])[0].model_copy(update={"key": planned}))


def lines(console):
    return [line for line in console.file.getvalue().splitlines() if not line.startswith("      ")]


def test_the_time_left_learns_from_the_steps_that_are_done(clock):
    console = Console(file=io.StringIO(), width=100)
    measure(Display(console), clock, [key(), key("cpu"), key("memory")], [10, 10, 10], [14, 14, 14])
    assert lines(console) == ["3 steps, about 30 s", "[1/3] wakeup idle, 30 s left", "[2/3] wakeup cpu, 28 s left", "[3/3] wakeup memory, 14 s left"]


def test_the_rounds_of_a_study_are_counted_on(clock):
    console = Console(file=io.StringIO(), width=100)
    display = Display(console)
    display.later_s = lambda known: 60 if len(known) == 2 else 0
    measure(display, clock, [key(), key("cpu")], [10, 10], [10, 10])
    measure(display, clock, [key("memory")], [60], [60])
    assert lines(console)[:2] == ["2 steps, about 20 s, then about 1 min 0 s for those that the study chooses from them", "[1/2] wakeup idle, 1 min 20 s left"]
    assert lines(console)[3:] == ["1 more step, about 1 min 0 s", "[3/3] wakeup memory, 1 min 0 s left"]


def test_where_nobody_knows_how_long_a_study_takes_it_says_so(clock):
    console = Console(file=io.StringIO(), width=100)
    display = Display(console)
    display.later_s = lambda _: None
    measure(display, clock, [key(), key("cpu")], [10, 10], [10, 10])
    assert lines(console)[:2] == ["2 steps, about 20 s, then those that the study chooses from them", "[1/2] wakeup idle, 20 s left"]


def test_steps_are_named_by_what_tells_them_apart(clock):
    console = Console(file=io.StringIO(), width=100)
    keys = [key(interval_ns=100_000), key(interval_ns=250_000), key(interval_ns=250_000, repeat=2)]
    measure(Display(console), clock, keys, [1, 1, 1], [1, 1, 1])
    names = [line.partition("] ")[2].rpartition(", ")[0] for line in lines(console)[1:]]
    assert names == ["wakeup idle, interval 100us #1", "wakeup idle, interval 250us #1", "wakeup idle, interval 250us #2"]


def test_one_bar_is_for_the_whole_run(clock):
    display = LiveDisplay(Console(file=io.StringIO(), width=100, force_terminal=True))
    with display:
        measure(display, clock, [key(), key("cpu")], [10, 10], [12, 9])
        measure(display, clock, [key("memory")], [20], [5])
        (task,) = display.bar.tasks
        assert task.total == 40
        assert task.completed == 20
        assert task.description == "3/3 wakeup memory"
