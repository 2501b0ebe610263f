# SPDX-License-Identifier: MIT
"""Finds what a run covers: how its steps differ, and which CPUs and parts of the plan are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rtgauge.units import format_cpu_list, plural

if TYPE_CHECKING:
    from rtgauge.record.model import Run, Step, StepKey

FORBIDDEN = {
    "cpuset": "a cpuset forbids it",
    "affinity": "the affinity mask (taskset) forbids it",
    "not-allowed": "a cpuset or the affinity mask forbids it",
}
"""The engine's reasons for leaving out a CPU that should be measured (docs/formats/stream.md).

A CPU that is offline or was not named is not a gap.
"""


def condition_of(key: StepKey) -> str:
    """Return a key that all repeats of a step share."""
    return key.id_without("repeat")


def noun_of(keys: Sequence[StepKey]) -> str:
    """Name a run's conditions after what differs between its steps: "load", "deployment", or else "step"."""
    conditions = list({condition_of(key): key for key in keys}.values())
    for noun in ("load", "deployment"):
        if len({key.id_without("repeat", noun) for key in conditions}) == 1:
            return noun
    return "step"


def cpus_left_out(steps: Sequence[Step]) -> list[str]:
    """Return the online CPUs that a step could not measure, with reasons: "CPU 3 (a cpuset forbids it)"."""
    reasons: dict[str, set[int]] = {}
    for step in steps:
        for entry in step.cpus_not_measured:
            reason, cpu = str(entry.get("reason")), entry.get("cpu")
            if reason in FORBIDDEN and isinstance(cpu, int):
                reasons.setdefault(reason, set()).add(cpu)
    return [
        f"CPU {format_cpu_list(sorted(cpus))} ({FORBIDDEN[reason]})"
        for reason, cpus in sorted(reasons.items())
    ]


def left_out_of(run: Run) -> list[str]:
    """Return the parts of a run's plan that were not measured, with the reason: "load network was not
    available (...)".
    """
    missing = [
        f"{item.what} was {'not available' if item.what.startswith('load ') else 'left out'} ({item.reason})"
        for item in run.left_out
    ]
    if run.state != "complete" and len(run.steps) < len(run.planned):
        missing.append(
            f"the run is {run.state}, with {len(run.steps)} of {plural(len(run.planned), 'planned step')} "
            f"finished"
        )
    return missing
