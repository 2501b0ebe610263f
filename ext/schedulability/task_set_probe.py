# SPDX-License-Identifier: MIT
"""taskset: runs the periodic tasks of a set (Delgado & Choi 2020, algorithm 2; tables 6, 7 and 8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

from pydantic import Field, TypeAdapter, model_validator

from rtgauge.errors import InputError
from rtgauge.probe.common_parameters import OnOff, RuntimeParameters, TimedParameters, engine_options
from rtgauge.probe.descriptor import CommandTrait, Metric, Probe, Shown, command_line
from rtgauge.probe.explain_parameters import NAMES as EXPLAIN_NAMES
from rtgauge.probe.explain_parameters import ExplainParameters, explain_arguments, explain_cost_ns
from rtgauge.units import MAX_CPU, format_duration, parse_cpu_list
from rtgauge_ext.schedulability.task_set import Task, TaskSet, check_task_set, read_written, utilisation

MOST_TASKS = 64
MOST_SHARE = Fraction(95, 100)
"""The share of a CPU that Linux by default allows real-time tasks."""
FORCED_NS = 10 * 10**9
SHORTEST_NS = 1_000
LONGEST_NS = 3600 * 10**9
DRAWN = 400
"""The approximate number of activations in the measured timeline."""


def _checked(written: Any) -> Any:
    """Replace `file` or `task` with the checked tasks, and fill in defaults."""
    if not isinstance(written, dict):
        return written
    given = cast("dict[str, Any]", written)
    if isinstance(given.get("cpu"), str):  # --cpu of a command, which other probes read as a list
        cpus = parse_cpu_list(given["cpu"])
        if len(cpus) != 1:
            raise ValueError(f"cpu: all tasks run on one CPU, so give one instead of '{given['cpu']}'")
        given = {**given, "cpu": cpus[0]}
    what = "the task set"
    content: dict[str, Any] = {key: given[key] for key in ("name", "task") if key in given}
    file = given.get("file")
    if isinstance(file, str):
        if "task" in given:
            raise ValueError("give a file or [[task]], not both")
        what = f"task set {file}"
        content = read_written(Path(file))
        content.setdefault("name", Path(file).stem[:80])
    elif "task" not in given:
        raise ValueError('give a task set: file = "FILE.toml", or a [[task]] with name, period and execution')
    tasks = content.get("task")
    if isinstance(given.get("cpu"), int) and isinstance(tasks, list):
        content["task"] = [
            {**task, "cpu": given["cpu"]} if isinstance(task, dict) else task
            for task in cast("list[Any]", tasks)
        ]
    task_set = check_task_set(content, what, "task set")
    return {**given, "name": task_set.name, "task": task_set.tasks}


def _before(written: Any) -> Any:
    try:
        return _checked(written)
    except InputError as error:
        raise ValueError(str(error)) from None


@cache
def _tasks_schema() -> TypeAdapter[tuple[Task, ...]]:
    return TypeAdapter(tuple[Task, ...])


def _check_times(task: Task) -> None:
    times = (
        task.period_ns,
        task.execution_ns,
        task.deadline_ns,
        task.blocking_ns,
        task.jitter_ns,
        task.offset_ns,
    )
    if min(times[:3]) < 1 or min(times) < 0 or max(times) > LONGEST_NS:
        raise ValueError(f"task {task.name} has a time that is out of range")


class TasksetParameters(ExplainParameters, TimedParameters, RuntimeParameters):
    """Parameters of `taskset`."""

    alternatives: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"file", "task"}),)

    file: str | None = Field(
        default=None, description="task set: a TOML file with a [[task]] for each task, as for rtgauge sched"
    )
    name: str = Field(default="", description="name of the set")
    tasks: tuple[Task, ...] = Field(alias="task", description="the tasks, instead of a file")
    cpu: int | None = Field(
        default=None,
        ge=0,
        le=MAX_CPU,
        description="CPU on which all tasks run, instead of the CPUs in the file",
    )
    policy: Literal["fifo", "rr", "deadline"] = Field(default="fifo", description="scheduling policy")
    execution: Literal["wall", "cpu"] = Field(
        default="wall",
        description="clock by which busy loops count: wall (wall time, as in Delgado and Choi) or cpu (CPU "
        "time)",
    )
    pin: OnOff = Field(
        default=True,
        description="whether each task is pinned to its CPU; off is allowed only for deadline tasks, which "
        "then run on any CPU",
    )
    force: bool = Field(
        default=False, description="run the set even if it overloads its CPU, for at most 10 s"
    )

    @classmethod
    def held(cls, values: Mapping[str, Any]) -> Self:
        """Return the model of a record's parameters, with the tasks.

        Raises ValueError for times that no task can have.
        """
        tasks = _tasks_schema().validate_python(values.get("tasks"))
        for task in tasks:
            _check_times(task)
        return super().held({**values, "tasks": tasks})

    @property
    def task_set(self) -> TaskSet:
        """The tasks as a set."""
        return TaskSet(
            self.name,
            self.tasks,
            jitter_given=frozenset(task.name for task in self.tasks),
        )

    _read = model_validator(mode="before")(_before)

    @model_validator(mode="after")
    def _check(self) -> Self:
        task_set = self.task_set
        if len(task_set.tasks) > MOST_TASKS:
            raise ValueError(f"{len(task_set.tasks)} tasks are too many to run; the maximum is {MOST_TASKS}")
        for task in task_set.tasks:
            if (
                not SHORTEST_NS <= task.period_ns <= LONGEST_NS
                or max(task.deadline_ns, task.offset_ns) > LONGEST_NS
            ):
                raise ValueError(
                    f"task '{task.name}' cannot run; give it a period of 1us to 1h, and a deadline and an "
                    f"offset of at most 1h"
                )
            if self.policy == "deadline" and task.deadline_ns > task.period_ns:
                raise ValueError(
                    f"task '{task.name}': with policy deadline, the deadline "
                    f"({format_duration(task.deadline_ns)}) must not be longer than the period"
                )
        if not self.pin and self.policy != "deadline":
            raise ValueError(
                "pin = off works only with policy deadline, because tasks of other policies are pinned"
            )
        self._check_load(task_set)
        self.check_explain()
        return self

    def _check_load(self, task_set: TaskSet) -> None:
        for cpu in task_set.cpus:
            share = utilisation(task_set.on(cpu))
            if share <= MOST_SHARE:
                continue
            if not self.force:
                raise ValueError(
                    f"the tasks need {float(share):.1%} of CPU {cpu}, more than {float(MOST_SHARE):.0%}, so "
                    f"the rest of the machine would starve; to run them for at most "
                    f"{format_duration(FORCED_NS)}, give --force (force = true in a plan)"
                )
            if self.duration_ns + self.warm_up_ns > FORCED_NS:
                raise ValueError(
                    f"the tasks overload CPU {cpu} ({float(share):.1%}), so they may run for at most "
                    f"{format_duration(FORCED_NS)}, warm-up included; give a shorter duration"
                )


def timeline_ns(task_set: TaskSet) -> int:
    """Return the length (ns) of the timeline to draw: two hyperperiods after the last offset, or one if two
    are too long, or else the time of about DRAWN activations.
    """
    hyperperiod = math.lcm(*(task.period_ns for task in task_set.tasks))
    offset = max(task.offset_ns for task in task_set.tasks)
    density = sum(Fraction(1, task.period_ns) for task in task_set.tasks)
    for length_ns in (offset + 2 * hyperperiod, offset + hyperperiod):
        if length_ns * density <= DRAWN:
            return min(length_ns, LONGEST_NS)
    return min(int(DRAWN / density), LONGEST_NS)


class Taskset(Probe[TasksetParameters]):
    """Measures period, response, jitter, release latency, deadline misses and preemptions of every task."""

    def arguments(self, parameters: TasksetParameters, samples_dir: str | None) -> list[str]:
        """Return the engine's command line."""
        lines = [
            f"{t.cpu} {t.priority} {t.period_ns} {t.execution_ns} {t.deadline_ns} {t.offset_ns} {t.name}"
            for t in parameters.tasks
        ]
        options = {
            **engine_options(parameters, {"file", "name", "cpu", "force", *EXPLAIN_NAMES}),
            "tasks": "\n".join(lines),
            "timeline_ns": timeline_ns(parameters.task_set),
            "samples_dir": samples_dir,
        }
        return [
            *command_line(self.name, options),
            *(["--force"] if parameters.force else []),
            *explain_arguments(
                parameters, parameters.duration_ns, cost=not parameters.force, woken_by_others=True
            ),
        ]

    def trial_arguments(self, parameters: TasksetParameters) -> list[str]:
        """Return the command line without the options for explaining."""
        return self.arguments(parameters.but(explain=False), None)

    def expected_ns(self, parameters: TasksetParameters) -> int:
        """Return the duration of warm-up, measured phase and cost measurement, in ns."""
        cost_ns = 0 if parameters.force else explain_cost_ns(parameters, parameters.duration_ns)
        return parameters.duration_ns + parameters.warm_up_ns + cost_ns


PROBE = Taskset(
    name="taskset",
    order=90,
    help="run a set of periodic tasks, and measure period, response, jitter, latency, deadline misses and "
    "preemptions of each",
    about="""A set of periodic tasks, run for real: does it meet its deadlines,
and what does the calculation say?

Each task burns its execution time in each period. The output shows period, response, jitter, release latency,
deadline misses and preemptions of each task, next to its calculated response.""",
    examples=(
        "control.toml --duration 1min",
        "control.toml --execution cpu --load cpu",
        "control.toml --policy deadline --pin off",
    ),
    parameters=TasksetParameters,
    method=(
        "Each task waits for its release by absolute time, reads the clock, burns its execution time in a "
        "busy loop, and reads the clock again. All tasks are released together at time 0 (plus their "
        "offsets). Late activations still run. rtgauge skips none, so no activation counts as missed."
    ),
    metrics=(
        Metric(name="response", plural="responses"),
        Metric(name="latency", plural="latencies"),
        Metric(name="response-from-start", plural="responses from start"),
        Metric(name="period", plural="periods"),
        Metric(name="absolute-jitter", plural="absolute jitters"),
        Metric(name="execution", plural="execution times"),
        Metric(name="tardiness", plural="tardinesses", compared=False),
        Metric(name="preemptions", plural="preemptions", unit="count", is_delay=False, compared=False),
    ),
    command=CommandTrait(
        argument="file", argument_metavar="FILE.toml", not_options=frozenset({"task", "name"})
    ),
    shown=Shown(pooled=False),
)
