# SPDX-License-Identifier: MIT
"""Sensitivity: the largest common factor for all execution times of a CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.schedulability.analysis.rta import Budget, TooLong, meets_deadline
from rtgauge.schedulability.model.task import utilisation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.schedulability.model.task import Task

PARTS = 1_000_000
"""The factor is a whole number of millionths."""


@dataclass(frozen=True)
class Growth:
    """The largest factor in millionths with which every deadline is met; None: it took too long.

    `limit` is the task that fails first beyond it.
    """

    millionths: int | None
    limit: str | None = None


def _scaled(tasks: Sequence[Task], millionths: int) -> list[Task]:
    """The tasks in units of 1e-6 ns, so that execution times times the factor are whole numbers."""
    return [
        replace(
            task,
            period_ns=task.period_ns * PARTS,
            deadline_ns=task.deadline_ns * PARTS,
            jitter_ns=task.jitter_ns * PARTS,
            blocking_ns=task.blocking_ns * PARTS,
            execution_ns=task.execution_ns * millionths,
        )
        for task in tasks
    ]


def _first_to_fail(ordered: Sequence[Task], millionths: int, budget: Budget) -> str | None:
    scaled = _scaled(ordered, millionths)
    return next(
        (task.name for i, task in enumerate(scaled) if not meets_deadline(task, scaled[:i], budget)), None
    )


def largest_growth(ordered: Sequence[Task], budget: Budget | None = None) -> Growth:
    """By bisection over whole millionths, each decided by the exact analysis in integers: the factor is exact
    to 1e-6, from below.

    `ordered`: the tasks of one CPU, the highest priority first. Periods, deadlines, jitter and blocking stay
    as they are.
    """
    budget = budget or Budget(10_000_000)
    low = 0  # meets, or is the answer "none"
    high = int(PARTS / utilisation(ordered)) + 1  # a utilisation above 1: does not meet
    limit = ordered[-1].name
    try:
        while high - low > 1:
            middle = (low + high) // 2
            failing = _first_to_fail(ordered, middle, budget)
            if failing is None:
                low = middle
            else:
                high, limit = middle, failing
    except TooLong:
        return Growth(None)
    return Growth(low, limit)
