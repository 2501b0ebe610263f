# SPDX-License-Identifier: MIT
"""Random task sets, and the analysis of many at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtgauge.errors import InputError
from rtgauge.schedulability.analysis.random_sets import (
    ManySets,
    largest_growth,
    parse_periods,
    parse_utilisations,
    random_sets,
    schedulability_ratio,
    schedulable,
    uunifast_discard,
    within_bounds,
)
from rtgauge.schedulability.analysis.rta import Budget, meets_deadline
from rtgauge.schedulability.analysis.rta import largest_growth as largest_growth_of_one
from rtgauge.schedulability.task_set import Task

MS = 1_000_000


def tasks_of(sets: ManySets, column: int) -> list[Task]:
    rows = zip(sets.period_ns[:, column].tolist(), sets.execution_ns[:, column].tolist(), strict=True)
    return [
        Task(str(rank), period, execution, period, 99 - rank) for rank, (period, execution) in enumerate(rows)
    ]


@pytest.mark.parametrize("share", [0.6, 0.85, 0.95, 1.0])
@pytest.mark.parametrize("tasks", [1, 2, 10])
def test_many_at_once_say_the_same_as_one_by_one(share, tasks):
    sets = random_sets(25, tasks, share, (10 * MS, 300 * MS), np.random.default_rng(3))
    assert schedulable(sets).tolist() == [
        all(meets_deadline(t, ts[:i], Budget()) for i, t in enumerate(ts))
        for ts in (tasks_of(sets, k) for k in range(25))
    ]
    assert largest_growth(sets).tolist() == [
        largest_growth_of_one(tasks_of(sets, k)).millionths for k in range(25)
    ]


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from([2, 3, 4, 5, 6, 8, 12]), st.integers(1, 6)), min_size=1, max_size=5)
)
def test_small_whole_numbers_too(rows):
    rows = sorted((period, min(execution, period)) for period, execution in rows)
    sets = ManySets(
        np.array([[period] for period, _ in rows]), np.array([[execution] for _, execution in rows])
    )
    tasks = tasks_of(sets, 0)
    assert bool(schedulable(sets)[0]) == all(
        meets_deadline(t, tasks[:i], Budget()) for i, t in enumerate(tasks)
    )
    assert int(largest_growth(sets)[0]) == largest_growth_of_one(tasks).millionths


def test_a_known_curve_of_two_tasks():
    """Two tasks of equal period are schedulable up to a utilisation of 1."""
    sets = random_sets(500, 2, 1.0, (10 * MS, 10 * MS), np.random.default_rng(1))
    assert schedulable(sets).all()


def test_times_that_would_overflow_are_refused():
    with pytest.raises(OverflowError, match="too long"):
        schedulable(ManySets(np.array([[2**62]]), np.array([[1]])))
    with pytest.raises(OverflowError, match="too long"):
        largest_growth(ManySets(np.array([[2**50]]), np.array([[1]])))
    with pytest.raises(ValueError, match="execution"):
        schedulable(ManySets(np.array([[10]]), np.array([[11]])))


def test_utilisations_add_up_and_are_evenly_spread():
    drawn = uunifast_discard(20_000, 4, 0.8, np.random.default_rng(5))
    assert np.allclose(drawn.sum(axis=0), 0.8)
    assert (drawn >= 0).all()
    # Of points evenly spread over a simplex every coordinate has the same mean U/n, and is above x with
    # probability (1 - x/U)^(n - 1).
    assert np.allclose(drawn.mean(axis=1), 0.2, atol=0.005)
    assert np.allclose((drawn > 0.4).mean(axis=1), 0.125, atol=0.015)


def test_no_task_wants_more_than_a_cpu():
    drawn = uunifast_discard(2_000, 4, 1.8, np.random.default_rng(5))
    assert drawn.shape == (4, 2_000)
    assert (drawn <= 1).all()
    assert np.allclose(drawn.sum(axis=0), 1.8)
    with pytest.raises(ValueError, match="utilisation"):
        uunifast_discard(1, 4, 3.9, np.random.default_rng(5))


def test_sets_keep_what_they_promise():
    sets = random_sets(1_000, 20, 1.0, (10 * MS, 1000 * MS), np.random.default_rng(2))
    assert (np.diff(sets.period_ns, axis=0) >= 0).all()
    assert sets.period_ns.min() >= 10 * MS
    assert sets.period_ns.max() <= 1000 * MS
    assert sets.execution_ns.min() >= 1
    assert ((sets.execution_ns / sets.period_ns).sum(axis=0) <= 1 + 1e-9).all()


def test_the_curve_is_the_same_again_and_falls():
    def once(seed):
        return schedulability_ratio(
            300, 10, [0.6, 0.9, 1.0], periods_ns=(10 * MS, 1000 * MS), seed=seed, growth=True
        )

    first = once(7)
    assert first == once(7)
    assert first != once(8)
    exact = [point.exact for point in first.points]
    assert exact == sorted(exact, reverse=True)
    assert exact[0] == 300
    for point in first.points:
        assert point.liu_layland <= point.hyperbolic <= point.exact
        assert point.exact_low <= point.exact / 300 <= point.exact_high
    assert first.points[0].growth_median == pytest.approx(1 / 0.6, rel=0.15)


def test_progress_hears_of_every_set():
    heard: list[int] = []
    schedulability_ratio(4_500, 2, [0.5, 0.9], periods_ns=(MS, 2 * MS), seed=1, progress=heard.append)
    assert sum(heard) == 9_000
    assert len(heard) > 2


def test_bounds_hold_for_what_they_pass():
    sets = random_sets(2_000, 5, 0.75, (10 * MS, 1000 * MS), np.random.default_rng(4))
    within_ll, within_product = within_bounds(sets)
    assert 0 < within_product.sum() <= 2_000
    assert (within_product | ~within_ll).all()
    assert schedulable(sets)[within_product].all()


def test_ranges_as_written():
    assert parse_utilisations("0.5:0.6") == [0.5, 0.55, 0.6]
    assert parse_utilisations("0.7") == [0.7]
    assert parse_utilisations("0.1:1:0.3") == [0.1, 0.4, 0.7, 1.0]
    assert parse_periods("10ms:1s", 20) == (10 * MS, 1000 * MS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "0.5:",
        "1:0.5",
        "0:1",
        "0.5:1.2",
        "0.5:1:0",
        "0.1:1:0.0001",
        "1:2:3:4",
        "nan",
        "-0.5:1",
        "0.5:1:1e-9",
    ],
)
def test_wrong_utilisations(text):
    with pytest.raises(InputError, match="--utilisation"):
        parse_utilisations(text)


@pytest.mark.parametrize("text", ["", "10ms:1", "1s:10ms", "0ms:1s", "1ms:1h", "1ns:1s", "1ms:2ms:3ms"])
def test_wrong_periods(text):
    with pytest.raises(InputError, match="--periods"):
        parse_periods(text, 20)
