# SPDX-License-Identifier: MIT
"""Models periodic tasks and task sets, and reads the TOML file of a set (an array [[task]])."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import InputError
from rtgauge.input_file import read_toml
from rtgauge.nearest_name import nearest
from rtgauge.units import MAX_CPU, format_duration
from rtgauge.validation import DurationNs, between, explain

HIGHEST_PRIORITY = 99
"""The highest priority of Linux's FIFO and RR; the lowest is 1. Higher priorities preempt lower ones."""


@dataclass(frozen=True)
class Task:
    """One task: in every `period_ns` it needs `execution_ns` of its CPU, at most `deadline_ns` after the
    period's start.

    `jitter_ns`: how late its release may be; `blocking_ns`: how long lower priorities may block it, once;
    `offset_ns`: its first release.
    """

    name: str
    period_ns: int
    execution_ns: int
    deadline_ns: int
    priority: int
    cpu: int = 0
    blocking_ns: int = 0
    jitter_ns: int = 0
    offset_ns: int = 0


@dataclass(frozen=True)
class TaskSet:
    """Checked tasks, and the set's name."""

    name: str
    tasks: tuple[Task, ...]
    jitter_given: frozenset[str] = frozenset()
    """The tasks whose release jitter is in the file."""

    @property
    def cpus(self) -> list[int]:
        """The CPUs that the tasks name, in ascending order."""
        return sorted({task.cpu for task in self.tasks})

    def on(self, cpu: int) -> list[Task]:
        """Return the tasks of one CPU, the highest priority first."""
        return sorted((task for task in self.tasks if task.cpu == cpu), key=lambda task: -task.priority)


def utilisation(tasks: Iterable[Task]) -> Fraction:
    """Return the exact share of one CPU that the tasks need."""
    return sum((Fraction(task.execution_ns, task.period_ns) for task in tasks), Fraction(0))


MOST_TASKS = 1_000
"""The most tasks in a set. Analysis time grows with the square of the number of tasks."""
LONGEST = "100000d"
Positive = Annotated[DurationNs, between("1ns", LONGEST)]
NotNegative = Annotated[DurationNs, between("0s", LONGEST)]
NEEDED = {"name": '"control"', "period": '"10ms"', "execution": '"3ms"'}


class TaskEntry(BaseModel):
    """One `[[task]]` as the file has it."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    name: str = Field(min_length=1, max_length=40, strict=True)
    """The task's name, unique in the file."""
    period_ns: Positive = Field(alias="period")
    """Time between two releases."""
    execution_ns: Positive = Field(alias="execution")
    """Longest CPU time of one activation."""
    deadline_ns: Positive | None = Field(default=None, alias="deadline")
    """Latest end, counted from the start of the period. It may exceed the period, which is the default."""
    priority: int | None = Field(default=None, ge=1, le=HIGHEST_PRIORITY, strict=True)
    """A larger number preempts a smaller one. Give it for all tasks or none. Default: rate-monotonic."""
    cpu: int = Field(default=0, ge=0, le=MAX_CPU, strict=True)
    """The CPU on which the task runs. Each CPU is analysed alone."""
    blocking_ns: NotNegative = Field(default=0, alias="blocking")
    """The longest time that lower priorities block the task, once."""
    jitter_ns: NotNegative | None = Field(default=None, alias="jitter")
    """How late the task's release may be. Default: 0, or from `--jitter-from`."""
    offset_ns: NotNegative = Field(default=0, alias="offset")
    """The task's first release."""


class TaskFile(BaseModel):
    """The keys of a task set's file."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    name: str = Field(default="", max_length=80, strict=True)
    description: str = Field(default="", strict=True)
    task: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])


KEYS = [field.alias or name for name, field in TaskEntry.model_fields.items()]


def read_task_set(path: Path) -> TaskSet:
    """Read and check the file. Raises InputError, which names the task and the error in one line."""
    return check_task_set(read_written(path), f"task set {path}", path.stem)


def read_written(path: Path) -> dict[str, Any]:
    """Return the file's TOML content, unchecked. Raises InputError if it cannot be read."""
    if not path.exists():
        raise InputError(f"the task set {path} does not exist")
    return read_toml(path, f"task set {path}")


def check_task_set(written: dict[str, Any], what: str, name: str = "task set") -> TaskSet:
    """Check the content of a file or a plan. `what`: the content's name in errors. `name`: the name for a set
    without one.

    Raises InputError if it is not a task set.
    """
    try:
        content = TaskFile.model_validate(written)
    except ValidationError as error:
        raise explain(error, what, list(TaskFile.model_fields)) from None
    if not content.name.isprintable():
        raise InputError(f"{what}: the name {content.name!a} has characters that cannot be shown")
    if not content.task:
        raise InputError(f"{what} has no task; add a [[task]] with name, period and execution")
    if len(content.task) > MOST_TASKS:
        raise InputError(f"{what} has {len(content.task)} tasks; the maximum is {MOST_TASKS}")
    entries = [_entry(entry, f"{what}, task {number}") for number, entry in enumerate(content.task, 1)]
    _check_together(entries, what)
    return TaskSet(
        content.name or name,
        tuple(_task(entry, priority) for entry, priority in zip(entries, _priorities(entries), strict=True)),
        jitter_given=frozenset(entry.name for entry in entries if entry.jitter_ns is not None),
    )


def _entry(written: dict[str, Any], what: str) -> TaskEntry:
    name = written.get("name")
    if isinstance(name, str) and name.isprintable() and 0 < len(name) <= 40:
        what += f" ('{name}')"
    for key in written:
        if key not in KEYS:
            raise InputError(f"{what}: unknown key {key!a}{nearest(key, KEYS)}")
    for key, example in NEEDED.items():
        if key not in written:
            raise InputError(f"{what} has no {key}; add, for example, {key} = {example}")
    try:
        entry = TaskEntry.model_validate(written)
    except ValidationError as error:
        raise explain(error, what, KEYS) from None
    if not entry.name.strip() or not entry.name.isprintable():
        raise InputError(f"{what}: the name {entry.name!a} is empty or has characters that cannot be shown")
    deadline_ns = entry.deadline_ns or entry.period_ns
    if entry.execution_ns > deadline_ns:
        which = "deadline" if entry.deadline_ns is not None else "period, which is its deadline"
        raise InputError(
            f"{what}: execution {format_duration(entry.execution_ns)} is longer than the {which} "
            f"({format_duration(deadline_ns)}), so the task can never meet its deadline"
        )
    return entry


def _check_together(entries: list[TaskEntry], what: str) -> None:
    name, times = Counter(entry.name for entry in entries).most_common(1)[0]
    if times > 1:
        raise InputError(f"{what}: {times} tasks are called '{name}'; give each its own name")
    crowded, count = Counter(entry.cpu for entry in entries).most_common(1)[0]
    if count > HIGHEST_PRIORITY:
        raise InputError(
            f"{what}: CPU {crowded} has {HIGHEST_PRIORITY} priorities, too few for {count} tasks; move some "
            "to another CPU"
        )
    without = [entry.name for entry in entries if entry.priority is None]
    if without and len(without) < len(entries):
        raise InputError(
            f"{what}: '{without[0]}' has no priority, but other tasks have one; give every task a priority "
            "or, for rate-monotonic priorities, none"
        )
    holder: dict[tuple[int, int], str] = {}
    for entry in entries:
        if entry.priority is not None:
            other = holder.setdefault((entry.cpu, entry.priority), entry.name)
            if other != entry.name:
                raise InputError(
                    f"{what}: '{other}' and '{entry.name}' both have priority {entry.priority} on "
                    f"CPU {entry.cpu}; give them different priorities"
                )


def _priorities(entries: list[TaskEntry]) -> list[int]:
    """Return the priorities from the file, or rate-monotonic ones from 99 downwards on each CPU. If periods
    are equal, the first task in the file gets the higher one.
    """
    ranked: dict[int, int] = {}
    for cpu in {entry.cpu for entry in entries}:
        mine = sorted(
            (i for i, entry in enumerate(entries) if entry.cpu == cpu), key=lambda i: entries[i].period_ns
        )
        ranked |= {i: HIGHEST_PRIORITY - rank for rank, i in enumerate(mine)}
    return [ranked[i] if entry.priority is None else entry.priority for i, entry in enumerate(entries)]


def _task(entry: TaskEntry, priority: int) -> Task:
    written: dict[str, Any] = entry.model_dump()
    written |= {"priority": priority, "jitter_ns": entry.jitter_ns or 0}
    written["deadline_ns"] = entry.deadline_ns or entry.period_ns
    return Task(**written)


FILE = {"[[task]]": TaskEntry}
"""The tables of the file, for the reference."""
