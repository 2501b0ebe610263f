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
    Growth,
    WorstResponse,
    exact_response,
    largest_growth,
    paper_response,
)
from rtgauge_ext.schedulability.analysis.timeline import Timeline, hyperperiod_ns, timeline
from rtgauge_ext.schedulability.task_set import Task, TaskSet, utilisation


class Schedulability(StrEnum):
    """The answer for a task, a CPU or a set; for several parts, the worst answer."""

    SCHEDULABLE = "schedulable"
    NOT_SCHEDULABLE = "not schedulable"
    CANNOT_TELL = "cannot tell"


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
    response_ns: int | None
    """Exact worst-case response, counted from the start of the period."""
    at_least_ns: int
    worst_activation: int
    """Number of the activation in the busy period that has the worst response; the first is 1."""
    late_by_ns: int | None
    """Worst-case response minus deadline, negative if the task meets its deadline; None: the response has no
    bound.
    """
    equation_1_ns: int | None
    """Worst-case response by equation 1 of Delgado and Choi (2020), which adds the task's own jitter in the
    recursion and considers only the first activation; None: the response has no bound.
    """
    answer: Schedulability
    reason: str


class CpuResult(BaseModel):
    """One CPU, analysed alone."""

    cpu: int
    utilisation: float
    utilisation_exact: str
    """The exact utilisation as a fraction, such as 3/4."""
    tasks: list[TaskResult]
    growth: Growth
    hyperperiod_ns: int
    """Least common multiple of the periods; the number may need more than 64 bits."""
    timeline: Timeline | None
    no_timeline: str = ""
    """Why the timeline is missing."""
    answer: Schedulability


class SetResult(BaseModel):
    """The result for a task set."""

    name: str
    answer: Schedulability
    conclusion: str = ""
    """The first line that the command prints, without the answer."""
    cpus: list[CpuResult]
    notes: list[str] = Field(default_factory=list)


def worst(answers: list[Schedulability]) -> Schedulability:
    """Return the worst of the answers: not schedulable, else cannot tell, else schedulable."""
    order = [Schedulability.SCHEDULABLE, Schedulability.CANNOT_TELL, Schedulability.NOT_SCHEDULABLE]
    return max(answers, key=order.index)


def analyse(task_set: TaskSet) -> SetResult:
    """Compute each CPU's responses, growth and timeline."""
    cpus = [_cpu(cpu, task_set.on(cpu)) for cpu in task_set.cpus]
    return SetResult(name=task_set.name, answer=worst([cpu.answer for cpu in cpus]), cpus=cpus)


def _cpu(cpu: int, ordered: list[Task]) -> CpuResult:
    share = utilisation(ordered)
    late = _late_with_offsets(ordered)
    tasks = [_task(task, ordered[:rank], late) for rank, task in enumerate(ordered)]
    schedule, no_timeline = None, ""
    try:
        schedule = timeline(ordered)
    except InputError as error:
        no_timeline = str(error)
    return CpuResult(
        cpu=cpu,
        utilisation=float(share),
        utilisation_exact=str(share),
        tasks=tasks,
        growth=largest_growth(ordered),
        hyperperiod_ns=hyperperiod_ns(ordered),
        timeline=schedule,
        no_timeline=no_timeline,
        answer=worst([task.answer for task in tasks]),
    )


def _late_with_offsets(ordered: Sequence[Task]) -> set[str] | None:
    """Return the tasks that miss a deadline in the simulated schedule with offsets; None if it is too long to
    simulate.
    """
    if not any(task.offset_ns for task in ordered):
        return set()
    try:
        activations = timeline(ordered, hyperperiods=2).activations
        return {activation.task for activation in activations if activation.missed}
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


DOCUMENT = Document("what rtgauge sched --json prints", (SetResult,))
