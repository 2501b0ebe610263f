# SPDX-License-Identifier: MIT
"""Response-time analysis under fixed priorities, in whole ns.

Joseph and Pandya, Finding response times in a real-time system, Computer Journal 29 (1986); Audsley, Burns,
Richardson, Tindell and Wellings, Applying new scheduling theory to static priority preemptive scheduling,
Software Engineering Journal 8 (1993), for release jitter; Lehoczky, RTSS 1990, and Tindell, Burns and
Wellings, Real-Time Systems 6 (1994), for several activations in one busy period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rtgauge.schedulability.model.task import utilisation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.schedulability.model.task import Task

TERMS = 2_000_000
"""Terms of the sum that one analysis may calculate; about a second."""


class TooLong(Exception):  # noqa: N818 - what happened, as StopIteration
    """The budget is spent."""


class Budget:
    """Ends an analysis that would take too long: near a utilisation of 1 a busy period can last for ages."""

    def __init__(self, terms: int = TERMS) -> None:
        self.left = terms

    def spend(self, terms: int) -> None:
        """Raises TooLong when nothing is left."""
        self.left -= terms
        if self.left < 0:
            raise TooLong


@dataclass(frozen=True)
class Response:
    """The worst-case response time from the start of the period, or why there is none.

    `seen_ns` is the largest response that was found, where `worst_ns` is None a lower bound.
    """

    worst_ns: int | None
    reason: Literal["", "diverges", "too long"] = ""
    seen_ns: int = 0
    activation: int = 1
    """The activation of the busy period that has the worst response; the first is 1."""


def _demand(own_ns: int, window_ns: int, higher: Sequence[Task], budget: Budget) -> int:
    budget.spend(len(higher) + 1)
    return own_ns + sum(
        -(-(window_ns + task.jitter_ns) // task.period_ns) * task.execution_ns for task in higher
    )


def _activations_to_see(everyone: Sequence[Task], task: Task) -> int:
    """The activations of one hyperperiod: none after them has a worse response, however long the busy period
    lasts.

    At a utilisation of at most 1 a window that is a hyperperiod H longer holds at most H more demand, so that
    w(q + H / T) <= w(q) + H.
    """
    return math.lcm(*(each.period_ns for each in everyone)) // task.period_ns


def exact_response(
    task: Task, higher: Sequence[Task], budget: Budget | None = None, *, enough_ns: int | None = None
) -> Response:
    """The worst response of `task` beneath `higher`, the tasks of higher priority on its CPU, over every
    activation of the busy period.

    w(q) = q C + B + sum of ceil((w(q) + Jj) / Tj) Cj, R = max of w(q) + J - (q - 1) T, q = 1, 2, ... until
    w(q) + J <= q T or a hyperperiod was seen. Goes on beyond the deadline, to tell by how much a task fails;
    ends early where a response is above `enough_ns`. Offsets are not used: all tasks are released together,
    which is the worst case.
    """
    budget = budget or Budget()
    everyone = [task, *higher]
    if utilisation(everyone) > 1:
        return Response(None, "diverges", task.execution_ns + task.blocking_ns + task.jitter_ns)
    last = _activations_to_see(everyone, task)
    worst_ns, at, number = 0, 1, 1
    own_ns = window_ns = task.execution_ns + task.blocking_ns
    start_ns = 0  # of this activation's period
    try:
        while True:
            while (demand_ns := _demand(own_ns, window_ns, higher, budget)) > window_ns:
                window_ns = demand_ns
                if enough_ns is not None and window_ns + task.jitter_ns - start_ns > enough_ns:
                    return Response(None, "", window_ns + task.jitter_ns - start_ns, number)
            response_ns = window_ns + task.jitter_ns - start_ns
            if response_ns > worst_ns:
                worst_ns, at = response_ns, number
            if (
                response_ns <= task.period_ns
                or number == last
                or (enough_ns is not None and worst_ns > enough_ns)
            ):
                return Response(worst_ns, "", worst_ns, at)
            number += 1
            start_ns += task.period_ns
            own_ns += task.execution_ns
            window_ns += task.execution_ns
    except TooLong:
        return Response(None, "too long", max(worst_ns, window_ns + task.jitter_ns - start_ns), number)


def paper_response(task: Task, higher: Sequence[Task], budget: Budget | None = None) -> Response:
    """Equation 1 of Delgado et al.

    2020: R = C + B + J + sum of ceil((R + Jj) / Tj) Cj, of the first activation.

    The task's own jitter is inside the recursion, so that it collects interference as if the task ran during
    its jitter: never below the exact response of the first activation. The paper stops at the deadline; here
    it goes on.
    """
    budget = budget or Budget()
    own_ns = response_ns = task.execution_ns + task.blocking_ns + task.jitter_ns
    if utilisation(higher) >= 1:
        return Response(None, "diverges", own_ns)
    try:
        while (demand_ns := _demand(own_ns, response_ns, higher, budget)) > response_ns:
            response_ns = demand_ns
    except TooLong:
        return Response(None, "too long", response_ns)
    return Response(response_ns, "", response_ns)


def meets_deadline(task: Task, higher: Sequence[Task], budget: Budget) -> bool:
    """Whether no activation of the busy period is later than the deadline.

    Raises TooLong if that was not found out.
    """
    response = exact_response(task, higher, budget, enough_ns=task.deadline_ns)
    if response.reason == "too long" and response.seen_ns <= task.deadline_ns:
        raise TooLong
    return response.worst_ns is not None and response.worst_ns <= task.deadline_ns
