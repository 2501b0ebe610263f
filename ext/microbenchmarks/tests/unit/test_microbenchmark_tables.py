# SPDX-License-Identifier: MIT
"""The sentence with which a comparison of microbenchmarks begins."""

from __future__ import annotations

import pytest
from tests.support.messages import missing

from rtgauge.report.text import NONE
from rtgauge_ext.microbenchmarks.microbenchmark_tables import conclusion, inversion_grid, starving
from rtgauge_ext.microbenchmarks.operation_costs import Cost, LockAnswer, Microbenchmarks, System


def system(name: str, **worst_ns: int) -> System:
    costs = [
        Cost(operation=operation, steps=[], count=10, mean_ns=1.0, p99_ns=2, max_ns=ns, worst_mark=None)
        for operation, ns in worst_ns.items()
    ]
    return System(record=name, name=name, policy="fifo", load="idle", clock_cost_ns=None, costs=costs)


def test_the_system_with_most_lowest_worst_cases_is_first():
    results = Microbenchmarks(
        systems=[
            system("stock", switch=900, preempt=5_000, semaphore=7),
            system("rt", switch=800, preempt=4_000, semaphore=9),
        ],
        inversion=[],
    )
    first, second = conclusion(results).split(";")
    assert not missing(first, "rt, fifo", "2 of 3", "switch, preempt")
    assert not missing(second, "stock, fifo", "1 of 3", "semaphore", "repeat the runs")


def test_of_one_system_the_largest_is_named_and_of_none_nothing():
    line = conclusion(Microbenchmarks(systems=[system("rt", switch=800, preempt=4_000)], inversion=[])) or ""
    assert not missing(line, "2 operations", "preempt", "4.00 us", "rt, fifo")
    assert conclusion(Microbenchmarks(systems=[], inversion=[])) is None


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["not-starved", "starved"], "starved with these locks: lock-1"),
        (["not-starved", "not-available"], "did not starve with any lock that was tried"),
        (["not-tried", "not-available"], "was not measured, because none of the locks could be tried"),
    ],
)
def test_locks_that_were_not_tried_are_no_good_result(answers: list[str], words: str) -> None:
    counts = {"trials": 1, "starved": 0, "gave_up": 0, "wait_max_ns": 1, "section_ns": 1, "limit_ns": 1}
    actual = [
        LockAnswer(record="r", name="r", load="idle", lock=f"lock-{number}", answer=answer, **counts)
        for number, answer in enumerate(answers)
    ]
    assert starving(actual).endswith(words)


def test_a_section_without_length_divides_nothing() -> None:
    """A damaged record may say so."""
    counts = {"trials": 1, "starved": 1, "gave_up": 0, "wait_max_ns": 1, "section_ns": 0, "limit_ns": 1}
    answer = LockAnswer(record="r", name="r", load="idle", lock="mutex", answer="starved", **counts)
    table = inversion_grid(Microbenchmarks(systems=[], inversion=[answer]))
    assert table is not None
    assert table.rows[0][-1] == NONE
