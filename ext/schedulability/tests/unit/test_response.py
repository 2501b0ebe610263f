# SPDX-License-Identifier: MIT
"""Responses: textbook examples, and a schedule simulated tick by tick."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ext.schedulability.tests.simulator import run, task_sets
from rtgauge_ext.schedulability.analysis.rta import Budget, exact_response, meets_deadline, paper_response
from rtgauge_ext.schedulability.task_set import Task, utilisation


def tasks_of(*rows, **more) -> list[Task]:
    """Rows of (T, C) in rank order, deadlines at the periods' ends."""
    return [
        Task(f"t{i}", period, execution, period, 99 - i, **more) for i, (period, execution) in enumerate(rows)
    ]


def responses(tasks):
    return [exact_response(task, tasks[:rank]).worst_ns for rank, task in enumerate(tasks)]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        # Delgado et al. 2020, table 6 and the text under fig. 5
        (tasks_of((10, 3), (20, 5), (40, 10)), [3, 8, 29]),
        # Burns and Wellings, Real-Time Systems and Programming Languages: task sets A (late by 2), B', and
        # the one for the response-time equation
        (tasks_of((30, 10), (40, 10), (50, 12)), [10, 20, 52]),
        (tasks_of((20, 5), (40, 10), (80, 40)), [5, 15, 80]),
        (tasks_of((7, 3), (12, 3), (20, 5)), [3, 6, 20]),
        # Liu and Layland, J. ACM 20 (1973), section 5: T = 2 and 5; C2 may grow from 1 to 2, not further; the
        # other way round nothing may grow
        (tasks_of((2, 1), (5, 1)), [1, 2]),
        (tasks_of((2, 1), (5, 2)), [1, 4]),
        (tasks_of((5, 1), (2, 1)), [1, 2]),
        # Lehoczky, Sha and Ding, The rate monotonic scheduling algorithm: exact characterization and average
        # case behavior, RTSS 1989
        (tasks_of((100, 40), (150, 40), (350, 100)), [40, 80, 300]),
    ],
)
def test_textbook(tasks, expected):
    assert responses(tasks) == expected
    assert [
        paper_response(task, tasks[:rank]).worst_ns for rank, task in enumerate(tasks)
    ] == expected  # without jitter they are the same


def test_deadlines_beyond_the_period():
    """Lehoczky, Fixed priority scheduling of periodic task sets with arbitrary deadlines, RTSS 1990: 114,
    102, 116, 104, 118, 106, 94.
    """
    tasks = tasks_of((70, 26), (100, 62))
    response = exact_response(tasks[1], tasks[:1])
    assert (response.worst_ns, response.activation) == (118, 5)
    assert paper_response(tasks[1], tasks[:1]).worst_ns == 114  # the first activation is not the worst
    jobs = run(tasks, 700).jobs[1]
    assert [job.finish - job.arrival for job in jobs] == [114, 102, 116, 104, 118, 106, 94]


def test_own_jitter_is_added_once_and_inside_in_the_paper():
    high, low = tasks_of((10, 4), (30, 5))
    low = Task("low", 30, 5, 30, 90, jitter_ns=2)
    assert exact_response(low, [high]).worst_ns == 9 + 2
    assert (
        paper_response(low, [high]).worst_ns == 15
    )  # 5 + 2 + 4 = 11 reaches into the next release of the other, though w does not


def test_above_a_utilisation_of_1_there_is_no_bound():
    tasks = tasks_of((10, 5), (14, 8))
    response = exact_response(tasks[1], tasks[:1])
    assert (response.worst_ns, response.reason) == (None, "diverges")
    assert exact_response(tasks[0], []).worst_ns == 5
    assert not meets_deadline(tasks[1], tasks[:1], Budget())


def test_an_endless_busy_period_ends_in_words():
    tasks = tasks_of((10**9 + 7, 5 * 10**8), (10**9 + 9, 5 * 10**8 + 7), jitter_ns=10**8)
    response = exact_response(tasks[1], tasks[:1], Budget(10_000))
    assert response.worst_ns is None
    assert response.reason == "too long"
    assert response.longest_ns >= 10**9 + 7


def horizon(tasks):
    return 3 * math.lcm(*(task.period_ns for task in tasks)) + 3 * max(
        task.period_ns + task.jitter_ns for task in tasks
    )


@settings(max_examples=300)
@given(task_sets())
def test_agrees_with_the_schedule_from_a_synchronous_release(tasks):
    assume(tasks)
    ran = run(tasks, horizon(tasks))
    assert responses(tasks) == [
        max(job.finish - job.arrival for job in jobs if job.finish is not None) for jobs in ran.jobs
    ]


@settings(max_examples=300)
@given(task_sets(most=3, jitter=True, blocking=True))
def test_agrees_with_the_worst_schedule_with_jitter_and_blocking(tasks):
    assume(tasks)
    for rank, task in enumerate(tasks):
        mine = tasks[: rank + 1]
        until = horizon(mine) + task.blocking_ns
        first = math.lcm(*(own.period_ns for own in mine)) // task.period_ns + 1
        ran = run(mine, until, blocked=task.blocking_ns)
        # At a utilisation of 1 the activations of the first hyperperiod may be done only long after it.
        while any(job.finish is None for job in ran.jobs[rank][:first]):
            until *= 2
            ran = run(mine, until, blocked=task.blocking_ns)
        simulated = max(job.finish - job.arrival for job in ran.jobs[rank] if job.finish is not None)
        assert exact_response(task, tasks[:rank]).worst_ns == simulated


@settings(max_examples=300)
@given(task_sets(jitter=True, blocking=True))
def test_equation_1_is_never_below_the_exact_response(tasks):
    for rank, task in enumerate(tasks):
        exact = exact_response(task, tasks[:rank])
        paper = paper_response(task, tasks[:rank])
        if exact.worst_ns is not None and exact.activation == 1:
            assert paper.worst_ns is None or paper.worst_ns >= exact.worst_ns


@settings(max_examples=200)
@given(task_sets(jitter=True, blocking=True, load=None), st.integers(1, 40))
def test_stopping_at_the_deadline_decides_the_same(tasks, deadline):
    for rank, task in enumerate(tasks):
        changed = Task(
            task.name,
            task.period_ns,
            task.execution_ns,
            deadline,
            task.priority,
            0,
            task.blocking_ns,
            task.jitter_ns,
        )
        full = exact_response(changed, tasks[:rank]).worst_ns
        assert meets_deadline(changed, tasks[:rank], Budget()) == (full is not None and full <= deadline)
        if utilisation(tasks[: rank + 1]) <= 1:
            assert full is not None
