# SPDX-License-Identifier: MIT
"""The schedule as data and as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ext.schedulability.tests.simulator import run, task_sets
from ext.schedulability.tests.unit.test_response import tasks_of
from rtgauge.errors import InputError
from rtgauge_ext.schedulability.analysis.analyse import analyse
from rtgauge_ext.schedulability.analysis.timeline import Segment, timeline
from rtgauge_ext.schedulability.page.analysis_terminal import cell_ns, timeline_lines
from rtgauge_ext.schedulability.task_set import Task, TaskSet

MS = 1_000_000


def drawn(tasks):
    (cpu,) = analyse(TaskSet("x", tuple(tasks))).cpus
    assert cpu.timeline is not None
    return cpu.timeline


def test_the_papers_figure_5():
    drawn_timeline = timeline(tasks_of((10, 3), (20, 5), (40, 10)))
    mine = [(segment.start_ns, segment.end_ns) for segment in drawn_timeline.segments if segment.task == "t2"]
    assert mine == [(8, 10), (13, 20), (28, 29)]
    assert drawn_timeline.preemptions == [
        Segment(task="t2", activation=1, start_ns=start, end_ns=end) for start, end in ((10, 13), (20, 28))
    ]
    assert drawn_timeline.end_ns == 40
    assert not any(activation.missed for activation in drawn_timeline.activations)


@settings(max_examples=200)
@given(task_sets(offsets=True, load=None))
def test_agrees_with_the_schedule_tick_by_tick(tasks):
    assume(tasks)
    drawn_timeline = timeline(tasks)
    assert drawn_timeline.end_ns == max(task.offset_ns for task in tasks) + math.lcm(
        *(task.period_ns for task in tasks)
    )
    ran = run(tasks, drawn_timeline.end_ns, critical=False)
    running: list[int | None] = [None] * drawn_timeline.end_ns
    for segment in drawn_timeline.segments:
        for tick in range(segment.start_ns, segment.end_ns):
            assert running[tick] is None
            running[tick] = int(segment.task[1:])
    assert running == ran.running
    finished = {
        (activation.task, activation.activation): activation.finish_ns
        for activation in drawn_timeline.activations
    }
    assert finished == {
        (f"t{rank}", number): job.finish
        for rank, jobs in enumerate(ran.jobs)
        for number, job in enumerate(jobs, 1)
    }


def test_refused_in_words():
    with pytest.raises(InputError, match="292 years"):
        timeline(tasks_of(*((period, 1) for period in (999999937, 999999893, 999999883, 999999797))))
    with pytest.raises(InputError, match="activations, more than"):
        timeline(tasks_of((1000, 1), (10**9, 1)))
    result = analyse(TaskSet("x", tuple(tasks_of((999999937, 1), (999999893, 1), (999999883, 1)))))
    assert result.answer == "schedulable"
    assert result.cpus[0].timeline is None
    assert "CPU 0" in result.cpus[0].no_timeline


def test_text_of_the_papers_figure_5():
    lines = timeline_lines(
        drawn(tasks_of((10 * MS, 3 * MS), (20 * MS, 5 * MS), (40 * MS, 10 * MS))),
        ["t0", "t1", "t2"],
        60,
        plain=True,
    )
    assert lines[:3] == [
        "t0  ###       ###       ###       ###",
        "t1  ...#####            ...#####",
        "t2  ........##...#######........#",
    ]
    assert lines[4].split() == ["0", "10ms", "20ms", "30ms"]


def test_a_missed_deadline_is_counted():
    tasks = tasks_of((30 * MS, 10 * MS), (40 * MS, 10 * MS), (50 * MS, 12 * MS))
    lines = timeline_lines(drawn(tasks), ["t0", "t1", "t2"], 200, plain=True)
    assert "!" in lines[2]
    assert "!" not in lines[0]
    assert "! late" in lines[-1]


@settings(max_examples=200)
@given(
    task_sets(load=None, offsets=True),
    st.integers(20, 200),
    st.booleans(),
    st.text(st.characters(categories=["L"]), min_size=1, max_size=30),
)
def test_no_line_is_too_wide_and_nobody_is_lost(tasks, width, plain, name):
    assume(tasks)
    tasks[0] = Task(
        name, *(getattr(tasks[0], part) for part in ("period_ns", "execution_ns", "deadline_ns", "priority"))
    )
    assume(len({task.name for task in tasks}) == len(tasks))
    names = [task.name for task in tasks]
    actual = drawn(tasks)
    lines = timeline_lines(actual, names, width, plain=plain)
    assert all(cell_len(line) <= max(width, 30) for line in lines)
    for line, task in zip(lines, names, strict=False):
        ran = any(segment.task == task for segment in actual.segments)
        late = any(activation.task == task and activation.missed for activation in actual.activations)
        assert any(sign in line for sign in "█▄#+!") or not (ran or late)


@given(st.integers(1, 2**63), st.integers(10, 300))
def test_cells_are_round_and_fit(end, cells):
    size = cell_ns(end, cells)
    assert size * cells >= end
    assert str(size).rstrip("0") in {"1", "2", "5"}
    assert size == 1 or size // 5 * 2 * cells < end * 2
