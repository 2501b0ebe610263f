# SPDX-License-Identifier: MIT
"""Computes what the kept settings cost: CPUs, throughput of the loads (by their own counts), and energy
(RAPL). It compares runs of both sides under the same load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from rtgauge.record.model import Step
from rtgauge.system.deployment.definition import AS_IS
from rtgauge.units import format_change

COUNTS = {
    "bits_per_second": "network throughput",
    "bytes": "bytes copied",
    "rounds": "rounds",
    "cpu_s": "CPU time",
}
"""Names for the counts that a load's part reports (LoadPart.reached), the best measure first."""


def costs(steps: Sequence[Step], deployment: str) -> list[str]:
    """Return a line for each cost; empty if none is known. `deployment`: the kept settings."""
    isolated = isolated_in(steps, deployment)
    taken = [f"nothing else can use CPU {isolated}"] if isolated else []
    return [*taken, *of_the_rest(steps, deployment)]


def isolated_in(steps: Sequence[Step], deployment: str) -> str:
    """Return the CPUs that a deployment isolated, as a list; empty if it isolated none."""
    reports = (step.deployment for step in _of(steps, deployment))
    return next((report.isolated for report in reports if report is not None), "")


def of_the_rest(steps: Sequence[Step], deployment: str) -> list[str]:
    """Return how each load's counts and the energy changed, compared with the machine as it was."""
    before, after = _of(steps, AS_IS), _of(steps, deployment)
    lines: list[str] = []
    for load in sorted({step.key.load for step in after}):
        both = [[step for step in side if step.key.load == load] for side in (before, after)]
        lines += [f"{load}: {words}" for words in _compared(both[0], both[1])]
    return lines


def _of(steps: Sequence[Step], deployment: str) -> list[Step]:
    return [step for step in steps if step.key.deployment == deployment]


def _compared(before: Sequence[Step], after: Sequence[Step]) -> Iterator[str]:
    """Yield every count that both sides have, with its relative change."""
    counts = [dict(_counts(side)) for side in (before, after)]
    for name, was in counts[0].items():
        now = counts[1].get(name)
        if was and now is not None:
            yield f"{name} {format_change(now / was - 1)}"


def _counts(steps: Sequence[Step]) -> Iterator[tuple[str, float]]:
    """Yield (name, mean over these steps) for each count, and for the energy (uJ)."""
    parts = [part for step in steps for part in step.load.parts]
    for program in dict.fromkeys(part.program for part in parts):
        reached = [part.reached for part in parts if part.program == program]
        for key, name in COUNTS.items():
            values = [each[key] for each in reached if isinstance(each.get(key), int | float)]
            if values:
                yield f"{name} of {program}", fmean(values)
                break
    energy = [sum(value for value in step.changes.energy_uj.values() if value) for step in steps]
    if any(energy):
        yield "energy", fmean(energy)
