# SPDX-License-Identifier: MIT
"""Analyses a task set CPU by CPU. The result is the document of `rtgauge sched --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum

from pydantic import BaseModel, Field

from rtgauge.errors import InputError
from rtgauge.extension import Document
from rtgauge_ext.schedulability.analysis.rta import (
    PARTS,
    WorstResponse,
    exact_response,
    hyperbolic_product,
    largest_growth,
    liu_layland_bound,
    paper_response,
    why_not_applicable,
    within_hyperbolic,
    within_liu_layland,
)
from rtgauge_ext.schedulability.analysis.timeline import (
    Segment,
    Timeline,
    hyperperiod_ns,
    preemptions,
    timeline,
)
from rtgauge_ext.schedulability.task_set import Task, TaskSet, is_harmonic, is_rate_monotonic, utilisation


class Schedulability(StrEnum):
    """The answer for a task, a CPU or a set; for several parts, the worst answer."""

    SCHEDULABLE = "schedulable"
    NOT_SCHEDULABLE = "not schedulable"
    CANNOT_TELL = "cannot tell"


class BoundResult(BaseModel):
    """A utilisation bound: a set within it is schedulable. `within` is None if the bound does not apply."""

    name: str
    bound: float = Field(
        description="limit of the test: for the utilisation (Liu-Layland), or for the "
        "product of all U_i + 1 (hyperbolic)"
    )
    value: float
    within: bool | None
    reason: str = ""


class TaskResult(BaseModel):
    """One task with its responses. If there is no bound, `response_ns` is None and `reason` says why."""

    name: str
    priority: int
    period_ns: int
    execution_ns: int
    deadline_ns: int
    blocking_ns: int
    jitter_ns: int
    offset_ns: int
    utilisation: float
    response_ns: int | None = Field(
        description="exact worst-case response, counted from the start of the period"
    )
    at_least_ns: int
    worst_activation: int = Field(
        description="number of the activation in the busy period that has the worst response; the first is 1"
    )
    late_by_ns: int | None = Field(
        description="worst-case response minus deadline, negative if the task meets its deadline; None: the "
        "response has no bound"
    )
    equation_1_ns: int | None = Field(
        description="worst-case response by equation 1 of Delgado and Choi (2020), which adds the task's own "
        "jitter in the recursion and considers only the first activation; None: the response has no "
        "bound"
    )
    answer: Schedulability
    reason: str


class GrowthResult(BaseModel):
    """The largest common factor for a CPU's execution times that keeps every deadline; None if not found."""

    factor: float | None
    limited_by: str | None
    reason: str = ""


class ActivationResult(BaseModel):
    """One activation. `finish_ns` is None if it has not finished by the end of the timeline."""

    task: str
    activation: int
    release_ns: int
    deadline_ns: int
    finish_ns: int | None
    missed: bool


class TimelineResult(BaseModel):
    """The schedule from 0 to `end_ns`, without jitter and blocking."""

    end_ns: int
    segments: list[Segment]
    preemptions: list[Segment]
    activations: list[ActivationResult]


class CpuResult(BaseModel):
    """One CPU, analysed alone."""

    cpu: int
    utilisation: float
    utilisation_exact: str = Field(description="the exact utilisation as a fraction, such as 3/4")
    harmonic: bool
    rate_monotonic: bool
    bounds: list[BoundResult]
    tasks: list[TaskResult]
    growth: GrowthResult
    hyperperiod_ns: int = Field(
        description="least common multiple of the periods; the number may need more than 64 bits"
    )
    timeline: TimelineResult | None
    no_timeline: str = Field(default="", description="why the timeline is missing")
    answer: Schedulability


class SetResult(BaseModel):
    """The result for a task set."""

    name: str
    answer: Schedulability
    conclusion: str = Field(
        default="", description="the first line that the command prints, without the answer"
    )
    cpus: list[CpuResult]
    notes: list[str] = Field(default_factory=list)


def worst(answers: list[Schedulability]) -> Schedulability:
    """Return the worst of the answers: not schedulable, else cannot tell, else schedulable."""
    order = [Schedulability.SCHEDULABLE, Schedulability.CANNOT_TELL, Schedulability.NOT_SCHEDULABLE]
    return max(answers, key=order.index)


def analyse(task_set: TaskSet) -> SetResult:
    """Compute each CPU's bounds, responses, growth and timeline."""
    cpus = [_cpu(cpu, task_set.on(cpu)) for cpu in task_set.cpus]
    return SetResult(name=task_set.name, answer=worst([cpu.answer for cpu in cpus]), cpus=cpus)


def _cpu(cpu: int, ordered: list[Task]) -> CpuResult:
    share = utilisation(ordered)
    late = _late_with_offsets(ordered)
    tasks = [_task(task, ordered[:rank], late) for rank, task in enumerate(ordered)]
    schedule, no_timeline = None, ""
    try:
        schedule = timeline_result(timeline(ordered))
    except InputError as error:
        no_timeline = str(error)
    growth = largest_growth(ordered)
    return CpuResult(
        cpu=cpu,
        utilisation=float(share),
        utilisation_exact=str(share),
        harmonic=is_harmonic(ordered),
        rate_monotonic=is_rate_monotonic(ordered),
        bounds=_bounds(ordered),
        tasks=tasks,
        growth=GrowthResult(
            factor=None if growth.millionths is None else growth.millionths / PARTS,
            limited_by=growth.limit,
            reason="the busy periods are too long to search" if growth.millionths is None else "",
        ),
        hyperperiod_ns=hyperperiod_ns(ordered),
        timeline=schedule,
        no_timeline=no_timeline,
        answer=worst([task.answer for task in tasks]),
    )


def _bounds(ordered: Sequence[Task]) -> list[BoundResult]:
    reason = why_not_applicable(ordered)
    tests = (
        ("Liu-Layland", liu_layland_bound(len(ordered)), utilisation(ordered), within_liu_layland),
        ("hyperbolic", 2.0, hyperbolic_product(ordered), within_hyperbolic),
    )
    return [
        BoundResult(
            name=name,
            bound=bound,
            value=float(value),
            within=within(ordered) if reason is None else None,
            reason=reason or "",
        )
        for name, bound, value, within in tests
    ]


def _late_with_offsets(ordered: Sequence[Task]) -> set[str] | None:
    """Return the tasks that miss a deadline in the simulated schedule with offsets; None if it is too long to
    simulate.
    """
    if not any(task.offset_ns for task in ordered):
        return set()
    try:
        return {late.task for late in timeline(ordered, hyperperiods=2).misses}
    except InputError:
        return None


def _task(task: Task, higher: Sequence[Task], late: set[str] | None) -> TaskResult:
    response, paper = exact_response(task, higher), paper_response(task, higher)
    answer, reason = _answer(task, higher, response, late)
    return TaskResult(
        **asdict(task),
        utilisation=task.execution_ns / task.period_ns,
        response_ns=response.worst_ns,
        at_least_ns=response.longest_ns,
        worst_activation=response.activation,
        late_by_ns=None if response.worst_ns is None else response.worst_ns - task.deadline_ns,
        equation_1_ns=paper.worst_ns,
        answer=answer,
        reason=reason,
    )


def _answer(
    task: Task, higher: Sequence[Task], response: WorstResponse, late: set[str] | None
) -> tuple[Schedulability, str]:
    if response.reason == "diverges":
        reason = (
            "this task and the tasks with a higher priority need more than the whole CPU, so the response "
            "grows without bound"
        )
        return Schedulability.NOT_SCHEDULABLE, reason
    if response.worst_ns is not None and response.worst_ns <= task.deadline_ns:
        return Schedulability.SCHEDULABLE, ""
    if response.worst_ns is None and response.longest_ns <= task.deadline_ns:
        reason = "the utilisation is so close to 1 that the busy period is too long to follow to its end"
        return Schedulability.CANNOT_TELL, reason
    unknown = (
        "it is unknown how late the task becomes, because the busy period is too long to follow to its end"
    )
    unknown = unknown if response.worst_ns is None else ""
    if not any(other.offset_ns != task.offset_ns for other in higher):
        return Schedulability.NOT_SCHEDULABLE, unknown
    # With offsets, the simultaneous release that the analysis assumes may never happen. Only a simulated
    # missed deadline proves a failure.
    if late is not None and task.name in late:
        return Schedulability.NOT_SCHEDULABLE, unknown
    why = (
        "with these offsets, that may never happen, and the schedule is too long to simulate"
        if late is None
        else "with these offsets, the task meets its deadline if releases have no jitter and nothing blocks "
        "it"
    )
    return (
        Schedulability.CANNOT_TELL,
        f"the task can miss its deadline if all tasks are released together; {why}",
    )


def timeline_result(schedule: Timeline) -> TimelineResult:
    """Return a schedule in the form of the document."""
    return TimelineResult(
        end_ns=schedule.end_ns,
        segments=schedule.segments,
        preemptions=preemptions(schedule.segments),
        activations=[
            ActivationResult(
                task=activation.task,
                activation=activation.activation,
                release_ns=activation.release_ns,
                deadline_ns=activation.deadline_ns,
                finish_ns=activation.finish_ns,
                missed=activation.missed(schedule.end_ns),
            )
            for activation in schedule.activations
        ],
    )


DOCUMENT = Document("what rtgauge sched --json prints", (SetResult,))
