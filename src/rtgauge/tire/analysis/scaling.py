# SPDX-License-Identifier: MIT
"""Real-fast: the time of a step over nodes and threads (Garre et al.

2014, fig. 5 to 7), speed-up and efficiency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from rtgauge.record.model import Model, Severity, worst_severity
from rtgauge.tire.analysis.estimate import Estimate, mean_of, ratio_of
from rtgauge.tire.analysis.runs import SERIAL, WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.tire.analysis.runs import FastRun


class SpeedPoint(Model):
    """One configuration, its repeats pooled."""

    solver: str
    policy: str
    free_running: bool
    nodes: int
    threads: int
    step_ns: Estimate
    step_max_ns: int | None = Field(description="the longest step of all repeats")
    speed_up: Estimate | None = Field(
        description="step time of the same solver on one thread over this one; None: not "
        "measured on one thread"
    )
    efficiency: Estimate | None = Field(description="speed-up for each thread")
    switches_per_step: float | None
    worst_mark: Severity | None

    @property
    def node_steps_per_s(self) -> float:
        """Nodes times steps, a second."""
        return self.nodes * 1e9 / self.step_ns.value


def _per_thread(speed_up: Estimate, threads: int) -> Estimate:
    low, high = (None if bound is None else bound / threads for bound in (speed_up.low, speed_up.high))
    return Estimate(value=speed_up.value / threads, low=low, high=high, measurements=speed_up.measurements)


def speed_points(runs: Sequence[FastRun]) -> list[SpeedPoint]:
    """A point for each configuration with a complete step, by solver, policy, threads and nodes."""
    groups: dict[tuple[str, str, bool, int, int], list[FastRun]] = {}
    for run in runs:
        configuration = run.configuration
        if configuration.without == WHOLE:
            key = (
                configuration.solver,
                configuration.policy,
                configuration.free_running,
                configuration.threads,
                configuration.nodes,
            )
            groups.setdefault(key, []).append(run)
    points: list[SpeedPoint] = []
    for (solver, policy, free_running, threads, nodes), repeats in sorted(groups.items()):
        on_one_thread = groups.get((solver, policy, free_running, 1, nodes))
        speed_up = None
        if on_one_thread is not None and threads > 1:
            speed_up = ratio_of([run.step_ns for run in on_one_thread], [run.step_ns for run in repeats])
        switches = [run.switches_per_step for run in repeats if run.switches_per_step is not None]
        longest = [run.step_max_ns for run in repeats if run.step_max_ns is not None]
        points.append(
            SpeedPoint(
                solver=solver,
                policy=policy,
                free_running=free_running,
                nodes=nodes,
                threads=threads,
                step_ns=mean_of([run.step_ns for run in repeats]),
                step_max_ns=max(longest, default=None),
                speed_up=speed_up,
                efficiency=None if speed_up is None else _per_thread(speed_up, threads),
                switches_per_step=sum(switches) / len(switches) if switches else None,
                worst_mark=worst_severity(run.worst_mark for run in repeats),
            )
        )
    return points


def against_serial(
    points: Sequence[SpeedPoint], runs: Sequence[FastRun]
) -> dict[tuple[str, str, int, int], Estimate]:
    """(solver, policy, threads, nodes) -> how many times as fast as the serial solver, if measured."""
    steps: dict[tuple[str, str, int, int], list[float]] = {}
    for run in runs:
        configuration = run.configuration
        if configuration.without == WHOLE and not configuration.free_running:
            steps.setdefault(
                (configuration.solver, configuration.policy, configuration.threads, configuration.nodes), []
            ).append(run.step_ns)
    ratios: dict[tuple[str, str, int, int], Estimate] = {}
    for point in points:
        key = (point.solver, point.policy, point.threads, point.nodes)
        serial = steps.get((SERIAL, point.policy, 1, point.nodes))
        if serial is not None and key in steps and point.solver != SERIAL and not point.free_running:
            ratios[key] = ratio_of(serial, steps[key])
    return ratios
