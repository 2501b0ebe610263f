# SPDX-License-Identifier: MIT
"""Computes the speed-up of several threads, and predicts step times and the frontier from the cost model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rtgauge.record.model import Severity, worst_severity
from rtgauge_ext.tire.analysis.cost_model import lines_of
from rtgauge_ext.tire.analysis.estimate import (
    Estimate,
    Uncertain,
    WeightedLine,
    median_of,
    quotient,
    ratio_of,
)
from rtgauge_ext.tire.analysis.runs import SERIAL, WHOLE, FastRun


@dataclass(frozen=True)
class SpeedPoint:
    """One configuration, with its repeats pooled.

    `speed_up`: this solver's step time on one thread divided by this step time; `efficiency`: speed-up per
    thread; `times_serial`: the serial solver's step time with as many nodes, divided by this step time. None:
    not measured.
    """

    solver: str
    policy: str
    free_running: bool
    nodes: int
    threads: int
    step_ns: Estimate
    speed_up: Estimate | None
    efficiency: Estimate | None
    times_serial: Estimate | None
    switches_per_step: float | None
    worst_mark: Severity | None

    @property
    def node_steps_per_s(self) -> float:
        """The number of nodes times the steps per second."""
        return self.nodes * 1e9 / self.step_ns.value


def _per_thread(speed_up: Estimate, threads: int) -> Estimate:
    low, high = (None if bound is None else bound / threads for bound in (speed_up.low, speed_up.high))
    return Estimate(value=speed_up.value / threads, low=low, high=high, measurements=speed_up.measurements)


def speed_points(runs: Sequence[FastRun]) -> list[SpeedPoint]:
    """Return a point per configuration of complete steps, sorted by solver, policy, threads and nodes."""
    groups: dict[tuple[str, str, bool, int, int], list[FastRun]] = {}
    for run in runs:
        own = run.configuration
        if own.without == WHOLE:
            key = (own.solver, own.policy, own.free_running, own.threads, own.nodes)
            groups.setdefault(key, []).append(run)
    points: list[SpeedPoint] = []
    for (solver, policy, free_running, threads, nodes), repeats in sorted(groups.items()):
        single = groups.get((solver, policy, free_running, 1, nodes)) if threads > 1 else None
        serial = groups.get((SERIAL, policy, False, 1, nodes))
        compared = serial if solver != SERIAL and not free_running else None
        speed_up = None if single is None else _ratio(single, repeats)
        switches = [run.switches_per_step for run in repeats if run.switches_per_step is not None]
        points.append(
            SpeedPoint(
                solver=solver,
                policy=policy,
                free_running=free_running,
                nodes=nodes,
                threads=threads,
                step_ns=median_of([run.step_ns for run in repeats]),
                speed_up=speed_up,
                efficiency=None if speed_up is None else _per_thread(speed_up, threads),
                times_serial=None if compared is None else _ratio(compared, repeats),
                switches_per_step=sum(switches) / len(switches) if switches else None,
                worst_mark=worst_severity(run.worst_mark for run in repeats),
            )
        )
    return points


def _ratio(slow: Sequence[FastRun], fast: Sequence[FastRun]) -> Estimate:
    return ratio_of([run.step_ns for run in slow], [run.step_ns for run in fast])


@dataclass(frozen=True)
class Prediction:
    """A configuration's measured step time, and its prediction from runs on one thread."""

    solver: str
    policy: str
    threads: int
    nodes: int
    predicted_ns: float
    measured_ns: float

    @property
    def residual(self) -> float:
        """Measured minus predicted step time, relative to the predicted one."""
        return self.measured_ns / self.predicted_ns - 1


@dataclass(frozen=True)
class PredictedFrontier:
    """The n at which the model predicts that a step takes a whole period, for the mean step and for one with
    the longest delay. `delay_ns`: the largest difference between the longest step and the mean step of a
    real-fast run.
    """

    solver: str
    policy: str
    threads: int
    period_ns: int
    mean: Estimate | None
    worst: Estimate | None
    delay_ns: float | None


def rounds(threads: int, cpus: int) -> int:
    """Return how many threads run on the busiest CPU."""
    return math.ceil(threads / cpus)


def busiest_share(nodes: int, threads: int, cpus: int) -> float:
    """Return how many nodes the busiest CPU computes in a step."""
    return rounds(threads, cpus) * math.ceil(nodes / threads)


def predictions(
    points: Sequence[SpeedPoint], runs: Sequence[FastRun], switch_ns: dict[str, Estimate], cpus: int
) -> list[Prediction]:
    """Return each measured configuration with its prediction: one thread's slope times the busiest CPU's
    nodes, plus the intercept for its number of threads.

    Each counted involuntary switch costs T_switch, divided by the number of running CPUs.
    """
    lines = lines_of(runs)
    predicted: list[Prediction] = []
    for point in points:
        keys = ((point.solver, point.policy, WHOLE, threads) for threads in (1, point.threads))
        single, line = map(lines.get, keys)
        if point.free_running or single is None or line is None:
            continue
        step = line.intercept_ns + single.slope_ns * busiest_share(point.nodes, point.threads, cpus)
        step += _switching(point, runs, switch_ns) / min(point.threads, cpus)
        if step > 0:
            place = (point.solver, point.policy, point.threads, point.nodes)
            predicted.append(Prediction(*place, predicted_ns=step, measured_ns=point.step_ns.value))
    return predicted


def _switching(point: SpeedPoint, runs: Sequence[FastRun], switch_ns: dict[str, Estimate]) -> float:
    cost = switch_ns.get(point.policy)
    place = (point.solver, point.policy, point.threads, point.nodes, WHOLE)
    counts: list[float] = []
    for run in runs:
        own, switches = run.configuration, run.involuntary_switches
        is_here = (own.solver, own.policy, own.threads, own.nodes, own.without) == place
        if is_here and switches is not None:
            counts.append(switches / run.steps)
    return 0.0 if cost is None or not counts else cost.value * sum(counts) / len(counts)


def _longest_delay(solver: str, policy: str, threads: int, runs: Sequence[FastRun]) -> float | None:
    place = (solver, policy, threads, WHOLE)
    delays: list[float] = []
    for run in runs:
        own, longest = run.configuration, run.step_max_ns
        is_here = (own.solver, own.policy, own.threads, own.without) == place and not own.free_running
        if is_here and longest is not None:
            delays.append(longest - run.step_ns)
    return max(delays, default=None)


def _frontier(
    line: WeightedLine, single: WeightedLine, budget_ns: float, threads: int, cpus: int
) -> Estimate | None:
    """Return the number of nodes at which a step takes `budget_ns`: (budget - intercept) / (slope * the
    busiest CPU's share).
    """
    share = rounds(threads, cpus) / threads
    budget = Uncertain(budget_ns - line.intercept_ns, float(line.covariance[0, 0]), line.dof)
    slope = Uncertain(single.slope_ns * share, float(single.covariance[1, 1]) * share**2, single.dof)
    covariance = -float(single.covariance[0, 1]) * share if line is single else 0.0
    measurements = single.measurements + (0 if line is single else line.measurements)
    return quotient(budget, slope, covariance, measurements)


def predicted_frontiers(runs: Sequence[FastRun], period_ns: int, cpus: int) -> list[PredictedFrontier]:
    """Return the n at which a step takes a period, for each solver, policy and threads that ran real-fast."""
    lines = lines_of(runs)
    frontiers: list[PredictedFrontier] = []
    for (solver, policy, without, threads), line in lines.items():
        single = lines.get((solver, policy, WHOLE, 1))
        if without != WHOLE or single is None:
            continue
        delay = _longest_delay(solver, policy, threads, runs)
        worst = None if delay is None else _frontier(line, single, period_ns - delay, threads, cpus)
        mean = _frontier(line, single, period_ns, threads, cpus)
        frontiers.append(PredictedFrontier(solver, policy, threads, period_ns, mean, worst, delay))
    return frontiers
