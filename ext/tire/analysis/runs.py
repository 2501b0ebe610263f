# SPDX-License-Identifier: MIT
"""Reads the tire's runs, fast or paced, from a record (ext/tire/README.md, `result`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from rtgauge.analysis.violation_bounds import Counted
from rtgauge.errors import RecordError
from rtgauge.record.model import STOPPED_EARLY, Result, Severity, Step
from rtgauge.record.reader import Record
from rtgauge.verdict.violations import count_violations
from rtgauge_ext.tire.tire_probe import PROBE

SHORTEST_RUN_NS = 1_000_000
"""A shorter computation, for example for a picture of the fall, does not show a step's time."""
WHOLE = "none"
"""The value of `without` for a complete step."""
SPRINGS, INTEGRATION = "springs", "integration"
SERIAL, HALO, SEMAPHORE = "serial", "halo", "semaphore"
SOLVERS = (SERIAL, SEMAPHORE, HALO)
"""The solvers in the order of the tables: the one without threads, the paper's, the fast one."""
SPRINGS_PER_NODE = {SERIAL: 2.0, SEMAPHORE: 2.0, HALO: 1.5}
"""How many spring forces a solver computes per node. Eq. 2 has 2e + 1 for e nodes, because a spoke is
computed at both ends.
"""
NODES_MULTIPLE = 4
LEAST_NODES = 4


@dataclass(frozen=True)
class SimulatedConfiguration:
    """The simulated configuration. `free_running`: the paper's exact algorithm, without a barrier."""

    solver: str
    nodes: int
    threads: int
    policy: str
    without: str = WHOLE
    free_running: bool = False


@dataclass(frozen=True)
class FastRun:
    """A real-fast run, in which `steps` simulated steps took `wall_ns`.

    `step_max_ns`: the longest step. Switches are summed over all threads. None means unknown.
    """

    configuration: SimulatedConfiguration
    steps: int
    wall_ns: int
    step_max_ns: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    barrier_ns: float | None = None
    worst_mark: Severity | None = None
    cpu_ns: int | None = None

    @property
    def step_cpu_ns(self) -> float | None:
        """The mean CPU time of a step on one thread, without the scheduler's time. None on several threads,
        because they wait for each other.
        """
        return self.cpu_ns / self.steps if self.cpu_ns and self.configuration.threads == 1 else None

    @property
    def step_ns(self) -> float:
        """The mean time of a step (ns)."""
        return self.wall_ns / self.steps

    @property
    def switches_per_step(self) -> float | None:
        """Task switches of both kinds per step, summed over all threads."""
        if self.voluntary_switches is None or self.involuntary_switches is None:
            return None
        return (self.voluntary_switches + self.involuntary_switches) / self.steps


@dataclass(frozen=True)
class PacedRun:
    """A real-time run of `deadlines` steps, one per period; `missed` of them were late."""

    configuration: SimulatedConfiguration
    period_ns: int
    repeat: int
    deadlines: int
    missed: int
    misses: Counted
    """The missed deadlines with their variance."""
    worst_mark: Severity | None = None


def is_tire(step: Step) -> bool:
    """Return whether a step ran the `tire` probe."""
    return step.key.probe == PROBE.name


def _result(step: Step) -> Result | None:
    return next((result for result in step.results if result.name == PROBE.name), None)


def _number(step: Step, result: Result, name: str) -> int:
    value = result.values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise RecordError(
            f"step {step.id} of the record is damaged: in the result of the probe tire, the value {name} is "
            "missing or invalid"
        )
    return round(value)


def _optional(result: Result, name: str) -> int | None:
    value = result.values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return round(value)


def _configuration(step: Step, result: Result) -> SimulatedConfiguration:
    parameters = PROBE.own(step.key)
    return SimulatedConfiguration(
        solver=str(result.labels.get("solver", parameters.solver)),
        nodes=_number(step, result, "nodes"),
        threads=_number(step, result, "threads"),
        policy=parameters.policy,
        without=parameters.without,
        free_running=parameters.free_running,
    )


def _longest(result: Result, mean_ns: float) -> int | None:
    """Return the longest step (ns). If blocks have only means, assume one late step per block."""
    longest, block = _optional(result, "step_max_ns"), _optional(result, "block") or 1
    return None if longest is None else round(mean_ns + max(0.0, longest - mean_ns) * block)


def fast_runs(steps: Sequence[Step]) -> list[FastRun]:
    """Return every real-fast run of at least a millisecond. Raises RecordError for a damaged result."""
    runs: list[FastRun] = []
    for step in steps:
        result = _result(step) if is_tire(step) else None
        if result is None or result.values.get("mode") != "real-fast":
            continue
        count, wall_ns = _number(step, result, "steps"), _number(step, result, "wall_ns")
        if not count or wall_ns < SHORTEST_RUN_NS:
            continue
        barrier = result.values.get("barrier_ns")
        timed = isinstance(barrier, int | float) and not isinstance(barrier, bool)
        run = FastRun(
            configuration=_configuration(step, result),
            steps=count,
            wall_ns=wall_ns,
            step_max_ns=_longest(result, wall_ns / count),
            voluntary_switches=_optional(result, "voluntary_switches"),
            involuntary_switches=_optional(result, "involuntary_switches"),
            barrier_ns=float(barrier or 0) if timed else None,
            worst_mark=step.worst,
            cpu_ns=_optional(result, "cpu_ns"),
        )
        runs.append(run)
    return runs


def too_short(steps: Sequence[Step]) -> int:
    """Return how many real-fast runs computed for less than a millisecond. Figures leave them out."""
    number = 0
    for step in steps:
        result = _result(step) if is_tire(step) and not step.key.parameters.get("state") else None
        if result is not None and result.values.get("mode") == "real-fast":
            number += _number(step, result, "wall_ns") < SHORTEST_RUN_NS
    return number


def _misses(record: Record, step: Step, period_ns: int) -> Counted | None:
    """Count the responses that took longer than the period, window by window; None without responses."""
    numbers = [each.series for each in step.series if each.metric == "response" and each.series is not None]
    return count_violations(record.windows(step), period_ns, series=numbers).counted if numbers else None


def paced_runs(
    steps: Sequence[Step], *, whole_only: bool = False, record: Record | None = None
) -> list[PacedRun]:
    """Return every real-time run with a deadline. `whole_only`: leave out runs that stopped early. `record`:
    where the steps' windows are, which show whether misses come in bursts. Raises RecordError for a damaged
    result.
    """
    runs: list[PacedRun] = []
    for step in steps:
        result = _result(step) if is_tire(step) else None
        if result is None or result.values.get("mode") != "real-time":
            continue
        deadlines = _number(step, result, "activations")
        if not deadlines or (whole_only and step.end_reason in STOPPED_EARLY):
            continue
        missed, period_ns = _number(step, result, "deadline_missed"), PROBE.own(step.key).period_ns
        counted = None if record is None else _misses(record, step, period_ns)
        runs.append(
            PacedRun(
                configuration=_configuration(step, result),
                period_ns=period_ns,
                repeat=step.key.repeat,
                deadlines=deadlines,
                missed=missed,
                misses=counted or Counted.of_windows([missed], [deadlines]),
                worst_mark=step.worst,
            )
        )
    return runs
