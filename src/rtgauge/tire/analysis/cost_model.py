# SPDX-License-Identifier: MIT
"""The cost model of a step (Garre et al. 2014, eq. 2), its terms by differences.

T_s = N_switch T_switch + 4 e T_ipc + (2e + 1) T_spring + e T_mass, e nodes a thread. Over n all but the first grow alike, so one regression cannot
tell them apart. Each is the slope over n of the difference between two series of runs that differ in it alone, on one thread: a step and one without
its springs, one without its integration, one with a semaphore a node and one without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from rtgauge.record.model import Model
from rtgauge.tire.analysis.estimate import Estimate, combined_dof, with_error
from rtgauge.tire.analysis.line_fit import Line, combine, fit
from rtgauge.tire.analysis.runs import INTEGRATION, SEMAPHORE, SERIAL, SOLVERS, SPRINGS, SPRINGS_PER_NODE, WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rtgauge.tire.analysis.runs import FastRun

LOCKS_PER_NODE = 4
"""Of the paper's algorithm: three neighbours are read and the node itself is written."""
PAPER_NS = {"T_mass": 80.0, "T_spring": 400.0}
"""What the paper names in sec. 4.5, for its machine of 2014."""

LineKey = tuple[str, str, str, int]
"""Solver, policy, without, threads."""


class SolverLine(Model):
    """The line of one solver over n."""

    solver: str
    policy: str
    without: str
    threads: int
    time: str = Field(description="cpu or wall: what was measured")
    slope_ns: Estimate = Field(description="for each node")
    intercept_ns: Estimate = Field(description="for each step")
    nodes: list[int] = Field(description="sizes that were measured")
    residuals: list[float] = Field(description="what the line does not explain at each, a share of the step time")
    scatter: float = Field(description="standard deviation of the residuals")


class Part(Model):
    """One term of the model (ns), or None where what it needs was not measured, with the reason."""

    name: str = Field(description="T_mass, T_spring, T_rest, T_ipc, T_step, T_switch")
    solver: str
    policy: str
    how: str = Field(description="which difference it is")
    per: str = Field(description="node, spring, lock, step, switch")
    estimate: Estimate | None
    missing: str | None = None
    paper_ns: float | None = None


class Synchronisation(Model):
    """What several threads add to each step, whatever its size: the intercept on so many threads less that on one."""

    solver: str
    policy: str
    threads: int
    extra_ns: Estimate
    barrier_ns: float | None = Field(description="mean time of a step that a thread spends at the barrier, waiting included")
    voluntary_per_step: float | None
    involuntary_per_step: float | None


class CostModel(Model):
    """Everything that was fitted."""

    lines: list[SolverLine]
    parts: list[Part]
    synchronisation: list[Synchronisation]


def lines_of(runs: Sequence[FastRun]) -> dict[LineKey, Line]:
    """A line for each solver, policy, thing left out and number of threads, where enough sizes were measured; free-running ones are left out."""
    groups: dict[LineKey, list[FastRun]] = {}
    for run in runs:
        of = run.configuration
        if not of.free_running:
            groups.setdefault((of.solver, of.policy, of.without, of.threads), []).append(run)
    found = {key: fit([run.configuration.nodes for run in same], [run.step_ns for run in same]) for key, same in sorted(groups.items())}
    return {key: line for key, line in found.items() if line is not None}


def cpu_lines_of(runs: Sequence[FastRun]) -> dict[LineKey, Line]:
    """The same of CPU time, on one thread: the terms of the model are computing, and what the scheduler takes is a term of its own."""
    known = [replace(run, wall_ns=run.cpu_ns) for run in runs if run.cpu_ns is not None and run.step_cpu_ns is not None]
    return lines_of(known)


def _part(name: str, key: tuple[str, str], per: str, how: str, terms: Sequence[tuple[float, Line | None]], divisor: float) -> Part:
    """The slope over n of a sum of lines, each with its factor, over `divisor`."""
    known = [(factor / divisor, line) for factor, line in terms if line is not None]
    line = combine(known) if len(known) == len(terms) else None
    return Part(
        name=name,
        solver=key[0],
        policy=key[1],
        how=how,
        per=per,
        estimate=None if line is None else line.slope,
        missing=None if line is not None else "needs at least three sizes of each of the two",
        paper_ns=PAPER_NS.get(name),
    )


def _parts_of(solver: str, policy: str, lines: dict[LineKey, Line], springs_per_node: Mapping[str, float]) -> list[Part]:
    key = (solver, policy)
    whole, springs, integration = (lines.get((solver, policy, without, 1)) for without in (WHOLE, SPRINGS, INTEGRATION))
    if whole is None:
        return []
    forces = springs_per_node[solver]
    parts = [
        _part("T_mass", key, "node", "the step less the step without integration", [(1, whole), (-1, integration)], 1),
        _part("T_spring", key, "spring", f"the step less the step without springs, over {forces:g} springs a node", [(1, whole), (-1, springs)], forces),
        _part("T_rest", key, "node", "what neither of the two accounts for", [(-1, whole), (1, springs), (1, integration)], 1),
    ]
    if solver == SEMAPHORE:
        parts.append(_ipc(policy, whole, lines, springs_per_node))
    parts.append(Part(name="T_step", solver=solver, policy=policy, how="where the line begins", per="step", estimate=whole.intercept))
    return parts


def _ipc(policy: str, whole: Line, lines: dict[LineKey, Line], springs_per_node: Mapping[str, float]) -> Part:
    """Semaphore minus serial, the springs that only one of them computes taken out."""
    serial, bare = lines.get((SERIAL, policy, WHOLE, 1)), lines.get((SERIAL, policy, SPRINGS, 1))
    more = springs_per_node[SEMAPHORE] / springs_per_node[SERIAL] - 1
    how = f"semaphore less serial, over {LOCKS_PER_NODE} locks a node"
    if not more:
        return _part("T_ipc", (SEMAPHORE, policy), "lock", how, [(1, whole), (-1, serial)], LOCKS_PER_NODE)
    # more * (serial - bare) are the springs that the semaphore solver computes twice.
    how += ", less the springs that it computes twice"
    return _part("T_ipc", (SEMAPHORE, policy), "lock", how, [(1, whole), (-1 - more, serial), (more, bare)], LOCKS_PER_NODE)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _synchronisation(lines: dict[LineKey, Line], runs: Sequence[FastRun]) -> list[Synchronisation]:
    found: list[Synchronisation] = []
    for (solver, policy, without, threads), line in lines.items():
        one = lines.get((solver, policy, WHOLE, 1))
        if without != WHOLE or threads == 1 or one is None:
            continue
        variances = [(float(each.covariance[0, 0]), float(each.dof)) for each in (line, one)]
        extra = with_error(line.intercept_ns - one.intercept_ns, sum(v for v, _ in variances), combined_dof(variances), line.measurements + one.measurements)
        same = [run for run in runs if (run.configuration.solver, run.configuration.policy, run.configuration.threads) == (solver, policy, threads)]
        found.append(
            Synchronisation(
                solver=solver,
                policy=policy,
                threads=threads,
                extra_ns=extra,
                barrier_ns=_mean([run.barrier_ns for run in same]),
                voluntary_per_step=_mean([None if run.voluntary_switches is None else run.voluntary_switches / run.steps for run in same]),
                involuntary_per_step=_mean([None if run.involuntary_switches is None else run.involuntary_switches / run.steps for run in same]),
            )
        )
    return found


def cost_model(runs: Sequence[FastRun], switch_ns: dict[str, Estimate], springs_per_node: Mapping[str, float] = SPRINGS_PER_NODE) -> CostModel | None:
    """The terms of eq. 2, from real-fast runs. None where no line can be drawn.

    `switch_ns`: policy -> what the microbenchmark says a task switch costs; `springs_per_node`: solver -> how many spring forces it computes a node.
    """
    wall = lines_of(runs)
    if not wall:
        return None
    cpu = cpu_lines_of(runs)
    lines = wall | cpu
    policies = sorted({policy for _, policy, _, _ in lines})
    solvers = sorted({solver for solver, _, _, _ in lines}, key=SOLVERS.index)
    parts = [part for policy in policies for solver in solvers for part in _parts_of(solver, policy, lines, springs_per_node)]
    for policy in policies:
        known = switch_ns.get(policy)
        missing = None if known is not None else "probe switch was not measured under this policy in this record"
        parts.append(Part(name="T_switch", solver="", policy=policy, how="probe switch", per="switch", estimate=known, missing=missing))
    drawn = [
        SolverLine(
            solver=solver,
            policy=policy,
            without=without,
            threads=threads,
            time="cpu" if (solver, policy, without, threads) in cpu else "wall",
            slope_ns=line.slope,
            intercept_ns=line.intercept,
            nodes=[round(n) for n in line.nodes],
            residuals=[float(one) for one in line.residuals],
            scatter=line.scatter,
        )
        for (solver, policy, without, threads), line in lines.items()
    ]
    return CostModel(lines=drawn, parts=parts, synchronisation=_synchronisation(wall, runs))
