# SPDX-License-Identifier: MIT
"""Fits the cost model of a step (Garre et al. 2014, eq. 2). Its terms are found from differences.

T_s = N_switch T_switch + 4 e T_ipc + (2e + 1) T_spring + e T_mass, with e nodes per thread. All terms except
the first are proportional to n, so one regression cannot separate them. Each is the slope over n of a
difference between two series of runs on one thread. The two differ only in that term: with and without
springs, integration, or a semaphore per node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Term:
    """One term of the model, in ns.

    `name`: T_mass, T_spring, T_rest, T_ipc, T_step or T_switch. `per`: what the term counts (node, spring,
    lock, step or switch). `how`: which difference of measured times gives the term. `estimate`: None if these
    were not measured at the same sizes, at least three.
    """

    name: str
    solver: str
    policy: str
    per: str
    how: str
    estimate: Estimate | None


@dataclass(frozen=True)
class Synchronisation:
    """The time that several threads add to each step: their intercept minus one thread's intercept.

    `barrier_ns`: the mean time per step that a thread spends at the barrier, including waiting.
    """

    solver: str
    policy: str
    threads: int
    extra_ns: Estimate
    barrier_ns: float | None


@dataclass(frozen=True)
class CostModel:
    """The fitted model."""

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
    return Term(name, *key, per, how, None if line is None else line.slope)


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
    terms.append(Term("T_step", solver, policy, "step", "intercept of the line", whole.intercept))
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
        alike = [(run.configuration, run.barrier_ns) for run in runs if run.barrier_ns is not None]
        place = (solver, policy, threads)
        barriers = [ns for own, ns in alike if (own.solver, own.policy, own.threads) == place]
        barrier_ns = sum(barriers) / len(barriers) if barriers else None
        synchronisations.append(Synchronisation(*place, extra, barrier_ns))
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
    lines = wall | cpu_lines_of(runs)
    policies = sorted({policy for _, policy, _, _ in lines})
    solvers = sorted({solver for solver, _, _, _ in lines}, key=SOLVERS.index)
    terms: list[Term] = []
    for policy in policies:
        for solver in solvers:
            terms += _terms_of(solver, policy, lines, springs_per_node)
    terms += [
        Term("T_switch", "", policy, "switch", "probe switch", switch_ns.get(policy)) for policy in policies
    ]
    return CostModel(terms, _synchronisation(wall, runs))
