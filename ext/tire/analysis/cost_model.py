# SPDX-License-Identifier: MIT
"""Fits the cost model of a step (Garre et al. 2014, eq. 2). Its terms are found from differences.

T_s = N_switch T_switch + 4 e T_ipc + (2e + 1) T_spring + e T_mass, with e nodes per thread. All terms except
the first are proportional to n, so one regression cannot separate them. Each is the slope over n of a
difference between two series of runs on one thread. The two differ only in that term: with and without
springs, integration, or a semaphore per node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import Field

from rtgauge.record.model import Model
from rtgauge_ext.tire.analysis.estimate import Estimate, WeightedLine, combine, combined_dof, fit, with_error
from rtgauge_ext.tire.analysis.runs import (
    INTEGRATION,
    SEMAPHORE,
    SERIAL,
    SOLVERS,
    SPRINGS,
    SPRINGS_PER_NODE,
    WHOLE,
    FastRun,
)

LOCKS_PER_NODE = 4
"""In the paper's algorithm, a thread reads three neighbours and writes the node."""
PAPER_NS = {"T_mass": 80.0, "T_spring": 400.0}
"""The paper's values (sec. 4.5), measured on a machine of 2014."""

LineKey = tuple[str, str, str, int]
"""Identifies a line: (solver, policy, without, threads)."""


class SolverLine(Model):
    """The line that fits one solver's step time as a function of n."""

    solver: str
    policy: str
    without: str
    threads: int
    time: str = Field(description="which time the line is fitted to: cpu or wall")
    slope_ns: Estimate = Field(description="time per node")
    intercept_ns: Estimate = Field(description="time per step")
    nodes: list[int] = Field(description="the measured sizes")
    residuals: list[float] = Field(
        description="relative residual at each size: the measured time minus the fitted time, divided by "
        "the fitted time"
    )
    scatter: float = Field(description="standard deviation of the residuals")


class Term(Model):
    """One term of the model (ns). `missing` says why there is no estimate."""

    name: str = Field(description="T_mass, T_spring, T_rest, T_ipc, T_step or T_switch")
    solver: str
    policy: str
    how: str = Field(description="which difference of measured times gives the term")
    per: str = Field(description="what the term counts: node, spring, lock, step or switch")
    estimate: Estimate | None
    missing: str | None = None
    paper_ns: float | None = None


class Synchronisation(Model):
    """The time that several threads add to each step: their intercept minus one thread's intercept."""

    solver: str
    policy: str
    threads: int
    extra_ns: Estimate
    barrier_ns: float | None = Field(
        description="mean time per step that a thread spends at the barrier, including waiting"
    )
    voluntary_per_step: float | None
    involuntary_per_step: float | None


class CostModel(Model):
    """The fitted model."""

    lines: list[SolverLine]
    parts: list[Term]
    synchronisation: list[Synchronisation]


def lines_of(runs: Sequence[FastRun]) -> dict[LineKey, WeightedLine]:
    """Return a line for each solver, policy, `without` and thread number with enough measured sizes."""
    groups: dict[LineKey, list[FastRun]] = {}
    for run in runs:
        configuration = run.configuration
        if not configuration.free_running:
            solver, policy, without = configuration.solver, configuration.policy, configuration.without
            groups.setdefault((solver, policy, without, configuration.threads), []).append(run)
    lines: dict[LineKey, WeightedLine] = {}
    for key, group in sorted(groups.items()):
        line = fit([run.configuration.nodes for run in group], [run.step_ns for run in group])
        if line is not None:
            lines[key] = line
    return lines


def cpu_lines_of(runs: Sequence[FastRun]) -> dict[LineKey, WeightedLine]:
    """Return lines of CPU time on one thread, because the model's terms are computation without
    scheduling.
    """
    timed = [run for run in runs if run.cpu_ns is not None and run.step_cpu_ns is not None]
    with_cpu_time = [replace(run, wall_ns=run.cpu_ns) for run in timed if run.cpu_ns is not None]
    return lines_of(with_cpu_time)


def _term(
    name: str,
    key: tuple[str, str],
    per: str,
    how: str,
    summands: Sequence[tuple[float, WeightedLine | None]],
    divisor: float,
) -> Term:
    """Return a term: the slope over n of a sum of lines, each times its factor, divided by `divisor`."""
    measured = [(factor / divisor, line) for factor, line in summands if line is not None]
    line = combine(measured) if len(measured) == len(summands) else None
    return Term(
        name=name,
        solver=key[0],
        policy=key[1],
        how=how,
        per=per,
        estimate=None if line is None else line.slope,
        missing=None
        if line is not None
        else "both series must be measured at the same sizes, at least three",
        paper_ns=PAPER_NS.get(name),
    )


def _terms_of(
    solver: str, policy: str, lines: dict[LineKey, WeightedLine], springs_per_node: Mapping[str, float]
) -> list[Term]:
    key = (solver, policy)
    whole, springs, integration = (
        lines.get((solver, policy, without, 1)) for without in (WHOLE, SPRINGS, INTEGRATION)
    )
    if whole is None:
        return []
    forces = springs_per_node[solver]
    spring = f"the step minus the step without springs, over {forces:g} springs per node"
    mass = "the step minus the step without integration"
    rest: list[tuple[float, WeightedLine | None]] = [(-1, whole), (1, springs), (1, integration)]
    terms = [
        _term("T_mass", key, "node", mass, [(1, whole), (-1, integration)], 1),
        _term("T_spring", key, "spring", spring, [(1, whole), (-1, springs)], forces),
        _term("T_rest", key, "node", "the step minus both", rest, 1),
    ]
    if solver == SEMAPHORE:
        terms.append(_ipc(policy, whole, lines, springs_per_node))
    line, how = whole.intercept, "intercept of the line"
    terms.append(Term(name="T_step", solver=solver, policy=policy, how=how, per="step", estimate=line))
    return terms


def _ipc(
    policy: str,
    whole: WeightedLine,
    lines: dict[LineKey, WeightedLine],
    springs_per_node: Mapping[str, float],
) -> Term:
    """Return the term T_ipc: semaphore minus serial, without the springs that only semaphore computes."""
    serial, bare = lines.get((SERIAL, policy, WHOLE, 1)), lines.get((SERIAL, policy, SPRINGS, 1))
    more = springs_per_node[SEMAPHORE] / springs_per_node[SERIAL] - 1
    how = f"semaphore minus serial, over {LOCKS_PER_NODE} locks per node"
    if not more:
        return _term("T_ipc", (SEMAPHORE, policy), "lock", how, [(1, whole), (-1, serial)], LOCKS_PER_NODE)
    # more * (serial - bare) is the cost of the springs that the semaphore solver computes twice.
    how += ", minus the springs that it computes twice"
    parts: list[tuple[float, WeightedLine | None]] = [(1, whole), (-1 - more, serial), (more, bare)]
    return _term("T_ipc", (SEMAPHORE, policy), "lock", how, parts, LOCKS_PER_NODE)


def _mean(values: Sequence[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return sum(given) / len(given) if given else None


def _synchronisation(lines: dict[LineKey, WeightedLine], runs: Sequence[FastRun]) -> list[Synchronisation]:
    synchronisations: list[Synchronisation] = []
    for (solver, policy, without, threads), line in lines.items():
        single = lines.get((solver, policy, WHOLE, 1))
        if without != WHOLE or threads == 1 or single is None:
            continue
        variances = [(float(each.covariance[0, 0]), float(each.dof)) for each in (line, single)]
        measurements = line.measurements + single.measurements
        variance, dof = sum(v for v, _ in variances), combined_dof(variances)
        extra = with_error(line.intercept_ns - single.intercept_ns, variance, dof, measurements)
        place = (solver, policy, threads)
        alike = [(run.configuration, run) for run in runs]
        same = [run for own, run in alike if (own.solver, own.policy, own.threads) == place]
        voluntary = [run.voluntary_switches / run.steps for run in same if run.voluntary_switches is not None]
        counted = [run for run in same if run.involuntary_switches is not None]
        involuntary = [(run.involuntary_switches or 0) / run.steps for run in counted]
        synchronisation = Synchronisation(
            solver=solver,
            policy=policy,
            threads=threads,
            extra_ns=extra,
            barrier_ns=_mean([run.barrier_ns for run in same]),
            voluntary_per_step=_mean(voluntary),
            involuntary_per_step=_mean(involuntary),
        )
        synchronisations.append(synchronisation)
    return synchronisations


def cost_model(
    runs: Sequence[FastRun],
    switch_ns: dict[str, Estimate],
    springs_per_node: Mapping[str, float] = SPRINGS_PER_NODE,
) -> CostModel | None:
    """Return the terms of eq. 2 from real-fast runs; None if no line can be fitted.

    `switch_ns`: the cost of a task switch from the microbenchmark, by policy. `springs_per_node`: how many
    spring forces each solver computes per node.
    """
    wall = lines_of(runs)
    if not wall:
        return None
    cpu = cpu_lines_of(runs)
    lines = wall | cpu
    policies = sorted({policy for _, policy, _, _ in lines})
    solvers = sorted({solver for solver, _, _, _ in lines}, key=SOLVERS.index)
    terms: list[Term] = []
    for policy in policies:
        for solver in solvers:
            terms += _terms_of(solver, policy, lines, springs_per_node)
    for policy in policies:
        term = Term(
            name="T_switch",
            solver="",
            policy=policy,
            how="probe switch",
            per="switch",
            estimate=switch_ns.get(policy),
        )
        if term.estimate is None:
            term.missing = "this record has no step of the probe switch under this policy"
        terms.append(term)
    solver_lines = [
        SolverLine(
            solver=solver,
            policy=policy,
            without=without,
            threads=threads,
            time="cpu" if (solver, policy, without, threads) in cpu else "wall",
            slope_ns=line.slope,
            intercept_ns=line.intercept,
            nodes=[round(n) for n in line.nodes],
            residuals=line.residuals.tolist(),
            scatter=line.scatter,
        )
        for (solver, policy, without, threads), line in lines.items()
    ]
    return CostModel(lines=solver_lines, parts=terms, synchronisation=_synchronisation(wall, runs))
