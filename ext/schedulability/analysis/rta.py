# SPDX-License-Identifier: MIT
"""Computes worst-case responses and the largest growth of execution times on one CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel

from rtgauge_ext.schedulability.task_set import Task, utilisation

TERMS = 2_000_000
"""The most terms that one analysis adds up; they take about a second."""


class TooLong(Exception):  # noqa: N818 - what happened, as StopIteration
    """An analysis has used up its budget."""


class Budget:
    """Ends an analysis that would take too long. Near a utilisation of 1, a busy period can be very long."""

    def __init__(self, terms: int = TERMS) -> None:
        self.left = terms

    def spend(self, terms: int) -> None:
        """Spend `terms` of the budget. Raises TooLong if it is exceeded."""
        self.left -= terms
        if self.left < 0:
            raise TooLong


@dataclass(frozen=True)
class WorstResponse:
    """The worst-case response time from the start of the period; None if there is none, or if the search
    ended early because a response exceeded `enough_ns`.

    `reason`: why there is none; empty if the search ended early. `longest_ns`: the largest response found,
    which is a lower bound if `worst_ns` is None.
    """

    worst_ns: int | None
    reason: Literal["", "diverges", "too long"] = ""
    longest_ns: int = 0
    activation: int = 1
    """The number of the activation with the worst response in the busy period; the first is 1."""


def _demand(own_ns: int, window_ns: int, higher: Sequence[Task], budget: Budget) -> int:
    budget.spend(len(higher) + 1)
    return own_ns + sum(
        -(-(window_ns + task.jitter_ns) // task.period_ns) * task.execution_ns for task in higher
    )


def _activations_to_see(everyone: Sequence[Task], task: Task) -> int:
    """Return the number of activations in one hyperperiod. No later activation has a worse response, however
    long the busy period lasts.

    At a utilisation of at most 1, a window that is longer by a hyperperiod H holds at most H more demand, so
    w(q + H / T) <= w(q) + H.
    """
    return math.lcm(*(each.period_ns for each in everyone)) // task.period_ns


def exact_response(
    task: Task, higher: Sequence[Task], budget: Budget | None = None, *, enough_ns: int | None = None
) -> WorstResponse:
    """Return the worst response of `task` over all activations of the busy period. `higher`: the
    higher-priority tasks on its CPU. `budget`: the limit for the work.

    w(q) = q C + B + sum of ceil((w(q) + Jj) / Tj) Cj, R = max of w(q) + J - (q - 1) T, q = 1, 2, ... until
    w(q) + J <= q T or a hyperperiod has passed. The search continues beyond the deadline, to show by how much
    a task fails, but ends early if a response exceeds `enough_ns`. Offsets are not used: all tasks are
    released together, which is the worst case.
    """
    budget = budget or Budget()
    everyone = [task, *higher]
    if utilisation(everyone) > 1:
        return WorstResponse(None, "diverges", task.execution_ns + task.blocking_ns + task.jitter_ns)
    last = _activations_to_see(everyone, task)
    worst_ns, at, number = 0, 1, 1
    own_ns = window_ns = task.execution_ns + task.blocking_ns
    start_ns = 0  # the start of this activation's period
    try:
        while True:
            while (demand_ns := _demand(own_ns, window_ns, higher, budget)) > window_ns:
                window_ns = demand_ns
                if enough_ns is not None and window_ns + task.jitter_ns - start_ns > enough_ns:
                    return WorstResponse(None, "", window_ns + task.jitter_ns - start_ns, number)
            response_ns = window_ns + task.jitter_ns - start_ns
            if response_ns > worst_ns:
                worst_ns, at = response_ns, number
            if (
                response_ns <= task.period_ns
                or number == last
                or (enough_ns is not None and worst_ns > enough_ns)
            ):
                return WorstResponse(worst_ns, "", worst_ns, at)
            number += 1
            start_ns += task.period_ns
            own_ns += task.execution_ns
            window_ns += task.execution_ns
    except TooLong:
        return WorstResponse(None, "too long", max(worst_ns, window_ns + task.jitter_ns - start_ns), number)


def paper_response(task: Task, higher: Sequence[Task]) -> WorstResponse:
    """Compute equation 1 of Delgado et al. (2020) for the first activation: R = C + B + J + sum of ceil((R +
    Jj) / Tj) Cj.

    The task's own jitter is inside the recursion, as if the task ran and was preempted during its jitter. The
    result is therefore never below the exact response of the first activation. The paper stops at the
    deadline; this function continues.
    """
    budget = Budget()
    own_ns = response_ns = task.execution_ns + task.blocking_ns + task.jitter_ns
    if utilisation(higher) >= 1:
        return WorstResponse(None, "diverges", own_ns)
    try:
        while (demand_ns := _demand(own_ns, response_ns, higher, budget)) > response_ns:
            response_ns = demand_ns
    except TooLong:
        return WorstResponse(None, "too long", response_ns)
    return WorstResponse(response_ns, "", response_ns)


def meets_deadline(task: Task, higher: Sequence[Task], budget: Budget) -> bool:
    """Return whether every activation of the busy period meets the deadline. Raises TooLong if the budget is
    too small.
    """
    response = exact_response(task, higher, budget, enough_ns=task.deadline_ns)
    if response.reason == "too long" and response.longest_ns <= task.deadline_ns:
        raise TooLong
    return response.worst_ns is not None and response.worst_ns <= task.deadline_ns


PARTS = 1_000_000
"""Growth factors are whole millionths."""


class Growth(BaseModel):
    """The largest common factor for a CPU's execution times that keeps every deadline, and the task that
    fails first beyond it; None if the busy periods are too long to search.
    """

    factor: float | None
    limited_by: str | None


def _scaled(tasks: Sequence[Task], millionths: int) -> list[Task]:
    """Return the tasks in units of 1e-6 ns, in which scaled execution times are whole numbers."""
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
    """Find the largest factor for all execution times, by bisection over whole millionths and exact integer
    analysis.

    `ordered`: one CPU's tasks, the highest priority first. Only execution times change. The result is exact
    to 1e-6, from below.
    """
    budget = budget or Budget(10_000_000)
    low = 0  # meets every deadline, or is the answer
    high = int(PARTS / utilisation(ordered)) + 1  # utilisation above 1, so it misses a deadline
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
        return Growth(factor=None, limited_by=None)
    return Growth(factor=low / PARTS, limited_by=limit)
