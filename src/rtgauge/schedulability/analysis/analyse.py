# SPDX-License-Identifier: MIT
"""The analysis of a task set, CPU by CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.schedulability.analysis.analysis_document import (
    ActivationResult,
    Answer,
    BoundResult,
    CpuResult,
    GrowthResult,
    SetResult,
    TaskResult,
    TimelineResult,
    worst,
)
from rtgauge.schedulability.analysis.rta import Response, exact_response, paper_response
from rtgauge.schedulability.analysis.sensitivity import PARTS, largest_growth
from rtgauge.schedulability.analysis.timeline import Timeline, hyperperiod_ns, preemptions, timeline
from rtgauge.schedulability.analysis.utilisation_bounds import (
    hyperbolic_product,
    liu_layland_bound,
    why_not_applicable,
    within_hyperbolic,
    within_liu_layland,
)
from rtgauge.schedulability.model.task import is_harmonic, is_rate_monotonic, utilisation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.schedulability.model.task import Task, TaskSet


def analyse(task_set: TaskSet) -> SetResult:
    """Bounds, responses, growth and timeline of every CPU."""
    cpus = [_cpu(cpu, task_set.on(cpu)) for cpu in task_set.cpus]
    return SetResult(name=task_set.name, answer=worst([cpu.answer for cpu in cpus]), cpus=cpus)


def _cpu(cpu: int, ordered: list[Task]) -> CpuResult:
    share = utilisation(ordered)
    late = _seen_late(ordered)
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
            reason="its busy periods are too long to search" if growth.millionths is None else "",
        ),
        hyperperiod_ns=hyperperiod_ns(ordered),
        timeline=schedule,
        no_timeline=no_timeline,
        answer=worst([task.answer for task in tasks]),
    )


def _bounds(ordered: Sequence[Task]) -> list[BoundResult]:
    reason = why_not_applicable(ordered)
    return [
        BoundResult(
            name="Liu-Layland",
            bound=liu_layland_bound(len(ordered)),
            value=float(utilisation(ordered)),
            within=within_liu_layland(ordered) if reason is None else None,
            reason=reason or "",
        ),
        BoundResult(
            name="hyperbolic",
            bound=2.0,
            value=float(hyperbolic_product(ordered)),
            within=within_hyperbolic(ordered) if reason is None else None,
            reason=reason or "",
        ),
    ]


def _seen_late(ordered: Sequence[Task]) -> set[str] | None:
    """The tasks that miss a deadline from their offsets; None if that is too long to simulate."""
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
        name=task.name,
        priority=task.priority,
        period_ns=task.period_ns,
        execution_ns=task.execution_ns,
        deadline_ns=task.deadline_ns,
        blocking_ns=task.blocking_ns,
        jitter_ns=task.jitter_ns,
        offset_ns=task.offset_ns,
        utilisation=task.execution_ns / task.period_ns,
        response_ns=response.worst_ns,
        at_least_ns=response.seen_ns,
        worst_activation=response.activation,
        late_by_ns=None if response.worst_ns is None else response.worst_ns - task.deadline_ns,
        equation_1_ns=paper.worst_ns,
        answer=answer,
        reason=reason,
    )


def _answer(
    task: Task, higher: Sequence[Task], response: Response, late: set[str] | None
) -> tuple[Answer, str]:
    if response.reason == "diverges":
        return (
            Answer.NOT_SCHEDULABLE,
            "it and the higher priorities need more than the whole CPU: the response grows without bound",
        )
    if response.worst_ns is not None and response.worst_ns <= task.deadline_ns:
        return Answer.SCHEDULABLE, ""
    if response.worst_ns is None and response.seen_ns <= task.deadline_ns:
        return (
            Answer.CANNOT_TELL,
            "the utilisation is so near to 1 that the busy period is too long to follow to its end",
        )
    unknown = (
        ""
        if response.worst_ns is not None
        else "how late it becomes is not known: the busy period is too long to follow to its end"
    )
    if not any(other.offset_ns != task.offset_ns for other in higher):
        return Answer.NOT_SCHEDULABLE, unknown
    # With offsets the simultaneous release that the analysis assumes may never happen: only a schedule that
    # misses proves a failure.
    if late is not None and task.name in late:
        return Answer.NOT_SCHEDULABLE, unknown
    if late is None:
        return (
            Answer.CANNOT_TELL,
            (
                "late when all are released together; with these offsets that may never happen, and "
                "the schedule is too long to try"
            ),
        )
    return (
        Answer.CANNOT_TELL,
        (
            "late when all are released together; from these offsets on it is in time, if releases "
            "have no jitter and nothing blocks"
        ),
    )


def timeline_result(schedule: Timeline) -> TimelineResult:
    """A schedule as the document has it."""
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
