# SPDX-License-Identifier: MIT
"""The result of the analysis of a task set: the document of `rtgauge sched --json`. Times are whole ns."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field


class Answer(StrEnum):
    """Of a task, a CPU, a set: the worst of its parts."""

    SCHEDULABLE = "schedulable"
    NOT_SCHEDULABLE = "not schedulable"
    CANNOT_TELL = "cannot tell"


class BoundResult(BaseModel):
    """A utilisation bound: within it is schedulable, beyond says nothing; None: it does not apply."""

    name: str
    bound: float = Field(description="of the utilisation, or of the product of (U_i + 1)")
    value: float
    within: bool | None
    reason: str = ""


class TaskResult(BaseModel):
    """One task with its responses.

    None: no bound; `reason` says why, and `at_least_ns` is the largest response found.
    """

    name: str
    priority: int
    period_ns: int
    execution_ns: int
    deadline_ns: int
    blocking_ns: int
    jitter_ns: int
    offset_ns: int
    utilisation: float
    response_ns: int | None = Field(description="exact worst-case response, from the start of the period")
    at_least_ns: int
    worst_activation: int = Field(description="of the busy period, the first is 1")
    late_by_ns: int | None = Field(
        description="response minus deadline, negative if it is in time; None: no bound"
    )
    equation_1_ns: int | None = Field(
        description="Delgado et al. 2020, equation 1: own jitter inside the recursion, first activation only"
    )
    answer: Answer
    reason: str


class GrowthResult(BaseModel):
    """The largest factor for all execution times of a CPU together; None if it could not be found."""

    factor: float | None
    limited_by: str | None
    reason: str = ""


class Segment(BaseModel):
    """A stretch of time in which one activation (the first is 1) runs without a break, or is preempted."""

    task: str
    activation: int
    start_ns: int
    end_ns: int


class ActivationResult(BaseModel):
    """One activation; `finish_ns` is None if it is not done at the end."""

    task: str
    activation: int
    release_ns: int
    deadline_ns: int
    finish_ns: int | None
    missed: bool


class TimelineResult(BaseModel):
    """The schedule from 0 to `end_ns`; without jitter and blocking."""

    end_ns: int
    segments: list[Segment]
    preemptions: list[Segment]
    activations: list[ActivationResult]


class CpuResult(BaseModel):
    """One CPU, analysed by itself."""

    cpu: int
    utilisation: float
    utilisation_exact: str = Field(description="as a fraction")
    harmonic: bool
    rate_monotonic: bool
    bounds: list[BoundResult]
    tasks: list[TaskResult]
    growth: GrowthResult
    hyperperiod_ns: int = Field(description="may be beyond 64 bits")
    timeline: TimelineResult | None
    no_timeline: str = Field(default="", description="why there is none")
    answer: Answer


class SetResult(BaseModel):
    """A task set."""

    name: str
    answer: Answer
    cpus: list[CpuResult]
    notes: list[str] = Field(default_factory=list)


def worst(answers: list[Answer]) -> Answer:
    """Not schedulable before cannot tell before schedulable."""
    order = [Answer.SCHEDULABLE, Answer.CANNOT_TELL, Answer.NOT_SCHEDULABLE]
    return max(answers, key=order.index)
