# SPDX-License-Identifier: MIT
"""The factor by which execution times could grow, and responses against a utilisation bound."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings

from ext.schedulability.tests.simulator import run, task_sets
from ext.schedulability.tests.unit.test_response import responses, tasks_of
from rtgauge_ext.schedulability.analysis.rta import (
    Budget,
    largest_growth,
)
from rtgauge_ext.schedulability.task_set import Task


@settings(max_examples=300)
@given(task_sets(load=None))
def test_a_set_within_the_hyperbolic_bound_is_schedulable(tasks):
    """Bini, Buttazzo and Buttazzo 2003: if the product of all U + 1 is at most 2."""
    ordered = [
        Task(t.name, t.period_ns, t.execution_ns, t.period_ns, t.priority)
        for t in sorted(tasks, key=lambda t: t.period_ns)
    ]
    if math.prod(1 + Fraction(task.execution_ns, task.period_ns) for task in ordered) <= 2:
        assert all(
            actual <= task.deadline_ns for actual, task in zip(responses(ordered), ordered, strict=True)
        )


def scheduling_points(tasks) -> Fraction:
    """The factor exactly, by Lehoczky, Sha and Ding 1989: over the points where a release or the deadline
    falls.

    For D <= T.
    """
    factors = []
    for rank, task in enumerate(tasks):
        points = {task.deadline_ns} | {
            k * item.period_ns
            for item in tasks[:rank]
            for k in range(1, task.deadline_ns // item.period_ns + 1)
        }
        factors.append(
            max(
                Fraction(
                    t,
                    sum(-(-t // task.period_ns) * task.execution_ns for task in tasks[:rank])
                    + task.execution_ns,
                )
                for t in points
            )
        )
    return min(factors)


@pytest.mark.parametrize(
    ("tasks", "factor"),
    [
        (tasks_of((10, 3), (20, 5), (40, 10)), Fraction(5, 4)),
        (tasks_of((7, 3), (12, 3), (20, 5)), Fraction(1)),
        (tasks_of((10, 20)), Fraction(1, 2)),
        (tasks_of((30, 10), (40, 10), (50, 12)), Fraction(50, 52)),
    ],
)
def test_growth(tasks, factor):
    assert scheduling_points(tasks) == factor
    assert largest_growth(tasks).factor == int(factor * 10**6) / 10**6


@settings(max_examples=150)
@given(task_sets(load=None))
def test_growth_agrees_with_the_scheduling_points(tasks):
    short = [
        Task(t.name, t.period_ns, t.execution_ns, min(t.period_ns, t.deadline_ns), t.priority) for t in tasks
    ]
    assert largest_growth(short).factor == int(scheduling_points(short) * 10**6) / 10**6


@settings(max_examples=100)
@given(task_sets(most=3, jitter=True, blocking=True))
def test_growth_with_jitter_blocking_and_late_deadlines_is_right(tasks):
    assume(tasks)
    late = False
    for rank, task in enumerate(tasks):
        ticks = 3 * math.lcm(*(t.period_ns for t in tasks)) + 120
        ran = run(tasks[: rank + 1], ticks, blocked=task.blocking_ns)
        late |= any(
            (ticks if job.finish is None else job.finish) - job.arrival > task.deadline_ns
            for job in ran.jobs[rank]
        )
    factor = largest_growth(tasks).factor
    assert factor is not None
    assert (factor >= 1) == (not late)


def test_growth_with_an_endless_busy_period_needs_a_hyperperiod():
    tasks = [
        Task("a", 2, 1, 100, 99, jitter_ns=3),
        Task("b", 3, 1, 100, 98, blocking_ns=5),
    ]  # late deadlines: up to a utilisation of 1
    assert largest_growth(tasks, Budget(5_000)).factor == 1.2


def test_a_task_that_starves_for_long_has_its_late_response():
    tasks = [
        Task("a", 5, 2, 4, 99, jitter_ns=9, blocking_ns=4),
        Task("b", 10, 5, 30, 98, jitter_ns=12, blocking_ns=5),
        Task("c", 10, 1, 11, 97, jitter_ns=17, blocking_ns=5),
    ]  # fmt: skip
    assert responses(tasks)[2] == 183
    assert largest_growth(tasks).factor < 1


def test_growth_names_who_fails_first_and_what_no_factor_mends():
    assert largest_growth(tasks_of((10, 3), (20, 5), (40, 10))).limited_by == "t2"
    hopeless = [Task("a", 10, 1, 10, 99, jitter_ns=11)]
    assert largest_growth(hopeless).factor == 0
    assert largest_growth(tasks_of((10**9 + 7, 5 * 10**8), (10**9 + 9, 5 * 10**8)), Budget(10)).factor is None
