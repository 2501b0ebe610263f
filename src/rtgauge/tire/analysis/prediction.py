# SPDX-License-Identifier: MIT
"""What the cost model predicts for several threads and for the real-time frontier, next to the measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import Field

from rtgauge.record.model import Model
from rtgauge.tire.analysis.cost_model import lines_of
from rtgauge.tire.analysis.estimate import Estimate, Uncertain, quotient
from rtgauge.tire.analysis.line_fit import Line
from rtgauge.tire.analysis.runs import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.tire.analysis.runs import FastRun
    from rtgauge.tire.analysis.scaling import SpeedPoint


class Prediction(Model):
    """A configuration's step time by the model, from runs on one thread, and as measured."""

    solver: str
    policy: str
    threads: int
    nodes: int
    predicted_ns: float
    measured_ns: float

    @property
    def residual(self) -> float:
        """Measured less predicted step time, a share of the predicted one."""
        return self.measured_ns / self.predicted_ns - 1


class PredictedFrontier(Model):
    """The n whose step takes a period by the model: by its mean, and with the longest real-fast delay."""

    solver: str
    policy: str
    threads: int
    period_ns: int
    mean: Estimate | None
    worst: Estimate | None
    delay_ns: float | None = Field(
        description="by how much the longest step of any real-fast run was above the mean of its run"
    )


def rounds(threads: int, cpus: int) -> int:
    """How many threads the busiest CPU has."""
    return math.ceil(threads / cpus)


def busiest_share(nodes: int, threads: int, cpus: int) -> float:
    """How many nodes the busiest CPU computes in a step."""
    return rounds(threads, cpus) * math.ceil(nodes / threads)


def predictions(
    points: Sequence[SpeedPoint], runs: Sequence[FastRun], switch_ns: dict[str, Estimate], cpus: int
) -> list[Prediction]:
    """Each measured configuration beside the model: the slope on one thread times the busiest CPU's nodes,
    plus the intercept on its own threads.

    Involuntary switches, as counted, cost T_switch each, shared by the CPUs that run.
    """
    lines = lines_of(runs)
    predicted: list[Prediction] = []
    for point in points:
        single, own = (
            lines.get((point.solver, point.policy, WHOLE, threads)) for threads in (1, point.threads)
        )
        if point.free_running or single is None or own is None:
            continue
        step = own.intercept_ns + single.slope_ns * busiest_share(point.nodes, point.threads, cpus)
        step += _switching(point, runs, switch_ns) / min(point.threads, cpus)
        if step > 0:
            predicted.append(
                Prediction(
                    solver=point.solver,
                    policy=point.policy,
                    threads=point.threads,
                    nodes=point.nodes,
                    predicted_ns=step,
                    measured_ns=point.step_ns.value,
                )
            )
    return predicted


def _switching(point: SpeedPoint, runs: Sequence[FastRun], switch_ns: dict[str, Estimate]) -> float:
    cost = switch_ns.get(point.policy)
    place = (point.solver, point.policy, point.threads, point.nodes, WHOLE)
    counts = [
        run.involuntary_switches / run.steps
        for run in runs
        if run.involuntary_switches is not None
        and (
            run.configuration.solver,
            run.configuration.policy,
            run.configuration.threads,
            run.configuration.nodes,
            run.configuration.without,
        )
        == place
    ]
    return 0.0 if cost is None or not counts else cost.value * sum(counts) / len(counts)


def _longest_delay(solver: str, policy: str, threads: int, runs: Sequence[FastRun]) -> float | None:
    delays = [
        run.step_max_ns - run.step_ns
        for run in runs
        if run.step_max_ns is not None
        and (
            run.configuration.solver,
            run.configuration.policy,
            run.configuration.threads,
            run.configuration.without,
        )
        == (solver, policy, threads, WHOLE)
        and not run.configuration.free_running
    ]
    return max(delays, default=None)


def _frontier(own: Line, single: Line, budget_ns: float, threads: int, cpus: int) -> Estimate | None:
    """The nodes whose step takes `budget_ns`: (budget - intercept) / (slope * the busiest CPU's share)."""
    share = rounds(threads, cpus) / threads
    budget = Uncertain(budget_ns - own.intercept_ns, float(own.covariance[0, 0]), own.dof)
    slope = Uncertain(single.slope_ns * share, float(single.covariance[1, 1]) * share**2, single.dof)
    covariance = -float(single.covariance[0, 1]) * share if own is single else 0.0
    return quotient(
        budget, slope, covariance, single.measurements + (0 if own is single else own.measurements)
    )


def predicted_frontiers(runs: Sequence[FastRun], period_ns: int, cpus: int) -> list[PredictedFrontier]:
    """The n whose step takes a period, for each solver, policy and threads measured real-fast."""
    lines = lines_of(runs)
    frontiers: list[PredictedFrontier] = []
    for (solver, policy, without, threads), own in lines.items():
        single = lines.get((solver, policy, WHOLE, 1))
        if without != WHOLE or single is None:
            continue
        delay = _longest_delay(solver, policy, threads, runs)
        worst = None if delay is None else _frontier(own, single, period_ns - delay, threads, cpus)
        mean = _frontier(own, single, period_ns, threads, cpus)
        frontiers.append(
            PredictedFrontier(
                solver=solver,
                policy=policy,
                threads=threads,
                period_ns=period_ns,
                mean=mean,
                worst=worst,
                delay_ns=delay,
            )
        )
    return frontiers
