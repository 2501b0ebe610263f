# SPDX-License-Identifier: MIT
"""A periodic task and a set of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HIGHEST_PRIORITY = 99
"""Of Linux's FIFO and RR; the lowest is 1. A larger number preempts a smaller one."""


@dataclass(frozen=True)
class Task:
    """One task: every `period_ns` it needs `execution_ns` of its CPU, at the latest `deadline_ns` after the
    start of its period.

    `jitter_ns`: how late its release may be; `blocking_ns`: how long lower priorities may hold it up, once;
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
    """Checked tasks, and what the file calls the set."""

    name: str
    tasks: tuple[Task, ...]
    rate_monotonic: bool
    """True: the file gave no priorities, the shorter period has the higher one."""
    jitter_given: frozenset[str] = frozenset()
    """The tasks whose release jitter the file itself states."""

    @property
    def cpus(self) -> list[int]:
        """The CPUs that the tasks name, in order."""
        return sorted({task.cpu for task in self.tasks})

    def on(self, cpu: int) -> list[Task]:
        """The tasks of one CPU, the highest priority first."""
        return sorted((task for task in self.tasks if task.cpu == cpu), key=lambda task: -task.priority)


def utilisation(tasks: Iterable[Task]) -> Fraction:
    """The share of one CPU that the tasks need, exactly."""
    return sum((Fraction(task.execution_ns, task.period_ns) for task in tasks), Fraction(0))


def is_rate_monotonic(ordered: Sequence[Task]) -> bool:
    """Whether no task, the highest priority first, has a longer period than a lower one."""
    return all(high.period_ns <= low.period_ns for high, low in itertools.pairwise(ordered))


def is_harmonic(tasks: Iterable[Task]) -> bool:
    """Whether every period is a multiple of every shorter one."""
    periods = sorted({task.period_ns for task in tasks})
    return all(longer % shorter == 0 for shorter, longer in itertools.pairwise(periods))
