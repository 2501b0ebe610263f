# SPDX-License-Identifier: MIT
"""Finds the searches for the largest tire in a record: where each begins, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rtgauge.plan.study_state import study_of
from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge_ext.tire.analysis.aims import DEFAULTS, Aims, aims_of_study, searched_policies
from rtgauge_ext.tire.analysis.frontier_search import (
    Frontier,
    FrontierSearch,
    FrontierState,
    Trial,
    state_of,
    whole_nodes,
)
from rtgauge_ext.tire.analysis.prediction import predicted_frontiers
from rtgauge_ext.tire.analysis.runs import SERIAL, WHOLE, PacedRun, fast_runs, is_tire, paced_runs
from rtgauge_ext.tire.analysis.tire_results import Condition, FrontierPlace, by_condition, meanings
from rtgauge_ext.tire.tire_probe import MOST_NODES

START = 0.9
"""A search begins a little below the n whose mean step takes a whole period."""
START_WITHOUT = 4000


def steps_on(record: Record, target: str) -> list[Step]:
    """Return the record's steps on one target."""
    return [step for step in record.steps if step.key.targets.get("self") == target]


def thread_numbers(steps: Sequence[Step], aims: Aims) -> list[int]:
    """Return the wanted thread counts as distinct numbers, leaving out words that no step has tried."""
    known = {"one": 1, **meanings(steps)}
    counts = {int(word) if word.isdigit() else known.get(word) for word in aims.threads}
    return sorted(count for count in counts if count is not None)


@dataclass(frozen=True)
class PlannedSearch:
    """A wanted search: its solver, policy and period."""

    solver: str
    policy: str
    period_ns: int
    search: FrontierSearch


def _fits(run: PacedRun, planned: PlannedSearch) -> bool:
    own = run.configuration
    ours = (own.solver, own.policy, own.threads, run.period_ns)
    same = ours == (planned.solver, planned.policy, planned.search.threads, planned.period_ns)
    return same and own.without == WHOLE and not own.free_running


def trials_of(paced: Sequence[PacedRun], planned: PlannedSearch) -> dict[Trial, PacedRun]:
    """Return the runs that belong to a search, by (nodes, repeat)."""
    return {(run.configuration.nodes, run.repeat): run for run in paced if _fits(run, planned)}


def most_nodes(record: Record, steps: Sequence[Step], solver: str) -> int:
    """Return the largest tire that fits into half of the target's memory, judging by earlier runs."""
    target = steps[0].key.targets.get("self", "") if steps else ""
    total = record.system(target).memory.total_bytes
    own = [step for step in steps if is_tire(step) and step.key.parameters.get("solver") == solver]
    bytes_per_node: list[float] = []
    for result in (result for step in own for result in step.results):
        taken, nodes = result.values.get("step_bytes"), result.values.get("nodes")
        if isinstance(taken, int) and isinstance(nodes, int):
            bytes_per_node.append(taken / nodes)
    if total is None or not bytes_per_node:
        return MOST_NODES
    return whole_nodes(total / 2 / min(bytes_per_node), most=MOST_NODES)


def searches(
    record: Record, steps: Sequence[Step], aims: Aims, policies: Sequence[str]
) -> list[PlannedSearch]:
    """Return all searches on one target. Each starts a little below the frontier that the cost model
    predicts, or at START_WITHOUT nodes without a prediction.
    """
    fast = fast_runs(steps)
    cpus = max((len(step.cpus) for step in steps if is_tire(step)), default=1) or 1
    frontiers = predicted_frontiers(fast, aims.period_ns, cpus)
    predicted = {(each.solver, each.policy, each.threads): each.mean for each in frontiers}
    planned: list[PlannedSearch] = []
    for policy in policies:
        for solver in aims.solvers:
            for threads in thread_numbers(steps, aims):
                if solver == SERIAL and threads > 1:
                    continue
                mean = predicted.get((solver, policy, threads))
                start = START_WITHOUT if mean is None else mean.value * START
                most, times = most_nodes(record, steps, solver), aims.bisections
                search = FrontierSearch(threads, 0, most, bisections=times, confirmations=times)
                start = whole_nodes(start, search.least, search.most)
                planned.append(PlannedSearch(solver, policy, aims.period_ns, replace(search, start=start)))
    return planned


def states(
    record: Record, steps: Sequence[Step], aims: Aims, policies: Sequence[str]
) -> list[tuple[PlannedSearch, FrontierState]]:
    """Return every search with its state."""
    paced = paced_runs(steps, whole_only=True, record=record)
    every = searches(record, steps, aims, policies)
    return [(planned, state_of(planned.search, trials_of(paced, planned))) for planned in every]


def searched(record: Record) -> dict[Condition, dict[FrontierPlace, Frontier]]:
    """Return the finished searches for each target, load and deployment; empty if no study of the tire made
    the record.
    """
    study = study_of(record.run)
    if study is None or study.name not in DEFAULTS:
        return {}
    aims = aims_of_study(study.name, study.asked)
    policies = searched_policies(study.name, aims)
    return {
        condition: {
            FrontierPlace(each.solver, each.policy, each.period_ns, each.search.threads): state.frontier
            for each, state in states(record, steps, aims, policies)
            if state.frontier is not None
        }
        for condition, steps in by_condition(record).items()
    }
