# SPDX-License-Identifier: MIT
"""Collects the results of a tire's runs: speed, real-time maps, and the largest tire in hard real time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rtgauge.analysis.record_names import system_name
from rtgauge.analysis.violation_bounds import design_effect, upper_bound
from rtgauge.record.model import Severity, Step, worst_severity
from rtgauge.record.reader import Record
from rtgauge_ext.tire.analysis.cost_model import CostModel, cost_model
from rtgauge_ext.tire.analysis.estimate import Estimate, median_of
from rtgauge_ext.tire.analysis.frontier_search import Frontier
from rtgauge_ext.tire.analysis.prediction import (
    PredictedFrontier,
    Prediction,
    SpeedPoint,
    predicted_frontiers,
    predictions,
    speed_points,
)
from rtgauge_ext.tire.analysis.runs import (
    SEMAPHORE,
    SOLVERS,
    WHOLE,
    PacedRun,
    fast_runs,
    is_tire,
    paced_runs,
    too_short,
)


@dataclass(frozen=True)
class ConfigurationResult:
    """One configuration, summed over its repeats. `design_effect`: how many deadlines count as one
    independent deadline, because misses come in bursts.
    """

    nodes: int
    threads: int
    runs: int
    deadlines: int
    missed: int
    worst_mark: Severity | None
    design_effect: float

    @property
    def held(self) -> bool:
        """Whether no deadline was missed."""
        return self.missed == 0

    @property
    def share(self) -> float:
        """The share of missed deadlines, 0 to 1."""
        return self.missed / self.deadlines if self.deadlines else 0.0

    @property
    def share_at_most(self) -> float:
        """The 95 % upper bound on the share of missed deadlines."""
        return upper_bound(self.missed / self.design_effect, self.deadlines / self.design_effect)


@dataclass(frozen=True)
class Edge:
    """The frontier for one number of threads, as the map's points show it.

    `holds`: the largest measured number of nodes up to which no deadline was missed; None if one was missed
    at the smallest number. `misses`: the smallest number at which one was missed; None if none was.
    """

    threads: int
    holds: int | None
    misses: int | None


@dataclass(frozen=True)
class RealTimeMap:
    """All configurations of one solver, policy and period, with the frontier of each number of threads."""

    solver: str
    policy: str
    period_ns: int
    free_running: bool
    cells: list[ConfigurationResult]

    @property
    def threads(self) -> list[int]:
        """The numbers of threads, in ascending order."""
        return sorted({cell.threads for cell in self.cells})

    @property
    def frontier(self) -> list[Edge]:
        """The frontier of each number of threads."""
        return [edge(self.cells, threads) for threads in self.threads]

    @property
    def deadlines(self) -> int:
        """The number of deadlines in all cells together."""
        return sum(cell.deadlines for cell in self.cells)


def edge(cells: Sequence[ConfigurationResult], threads: int) -> Edge:
    """Return the frontier of the cells with this many threads."""
    row = sorted((cell for cell in cells if cell.threads == threads), key=lambda cell: cell.nodes)
    misses = next((cell.nodes for cell in row if not cell.held), None)
    holds = max((cell.nodes for cell in row if misses is None or cell.nodes < misses), default=None)
    return Edge(threads, holds, misses)


def _order(group: tuple[tuple[int, str, str, bool], object]) -> tuple[object, ...]:
    """Return the sort key: longest period first, then the paper's solver, then the usual order of solvers."""
    period, solver, policy, free_running = group[0]
    rank = SOLVERS.index(solver) if solver in SOLVERS else len(SOLVERS)
    return period, solver != SEMAPHORE, rank, policy, free_running


def real_time_maps(runs: Sequence[PacedRun]) -> list[RealTimeMap]:
    """Return a map for each solver, policy and period, the longest period first."""
    groups: dict[tuple[int, str, str, bool], dict[tuple[int, int], list[PacedRun]]] = {}
    for run in runs:
        configuration = run.configuration
        if configuration.without == WHOLE and run.deadlines:
            solver, policy, free_running = (
                configuration.solver,
                configuration.policy,
                configuration.free_running,
            )
            group = groups.setdefault((-run.period_ns, solver, policy, free_running), {})
            group.setdefault((configuration.threads, configuration.nodes), []).append(run)
    maps: list[RealTimeMap] = []
    for (negative_period, solver, policy, free_running), runs_of_cell in sorted(groups.items(), key=_order):
        cells = [
            ConfigurationResult(
                nodes=nodes,
                threads=threads,
                runs=len(repeats),
                deadlines=sum(run.deadlines for run in repeats),
                missed=sum(run.missed for run in repeats),
                worst_mark=worst_severity(run.worst_mark for run in repeats),
                design_effect=design_effect([[run.misses for run in repeats]]),
            )
            for (threads, nodes), repeats in sorted(runs_of_cell.items())
        ]
        maps.append(RealTimeMap(solver, policy, -negative_period, free_running, cells))
    return maps


class FrontierPlace(NamedTuple):
    """Identifies a frontier."""

    solver: str
    policy: str
    period_ns: int
    threads: int


@dataclass(frozen=True)
class FrontierRow:
    """The largest tire in hard real time according to the model, the map and the search; None if one gives no
    answer.
    """

    place: FrontierPlace
    predicted: PredictedFrontier | None
    edge: Edge | None
    searched: Frontier | None


@dataclass(frozen=True)
class TireResults:
    """The tire's results on one system under one load in one deployment.

    `too_short`: the number of real-fast runs shorter than a millisecond, which the figures leave out.
    `meanings`: the number of threads that each word (cores, ...) stands for on this machine.
    """

    name: str
    load: str
    deployment: str
    points: list[SpeedPoint]
    too_short: int
    cost: CostModel | None
    predictions: list[Prediction]
    maps: list[RealTimeMap]
    frontiers: list[FrontierRow]
    meanings: dict[str, int]


def switch_costs(steps: Sequence[Step]) -> dict[str, Estimate]:
    """Return the cost of a switch between two tasks for each policy, from the probe `switch`."""
    means: dict[str, list[float]] = {}
    for step in steps:
        of_two = step.key.probe == "switch" and step.key.parameters.get("tasks") == 2
        mean_ns = step.total.mean_ns if of_two and step.total is not None else None
        if mean_ns is not None and mean_ns > 0:
            means.setdefault(str(step.key.parameters.get("policy")), []).append(mean_ns)
    return {policy: median_of(values) for policy, values in means.items()}


def frontier_rows(
    predicted: Sequence[PredictedFrontier],
    maps: Sequence[RealTimeMap],
    searched: Mapping[FrontierPlace, Frontier],
) -> list[FrontierRow]:
    """Return prediction, map and search together for each solver, policy, period and number of threads."""
    model = {
        FrontierPlace(each.solver, each.policy, each.period_ns, each.threads): each for each in predicted
    }
    mapped = {
        FrontierPlace(plot.solver, plot.policy, plot.period_ns, edge.threads): edge
        for plot in maps
        if not plot.free_running
        for edge in plot.frontier
    }
    # A map with another period than the searches, such as the pretest's, does not reach its frontier.
    longest = max((place.period_ns for place in mapped), default=0)
    periods = {place.period_ns for place in searched} or {longest}

    def order(place: FrontierPlace) -> tuple[str, int, int, int]:
        rank = SOLVERS.index(place.solver) if place.solver in SOLVERS else len(SOLVERS)
        return place.policy, -place.period_ns, rank, place.threads

    places = sorted({place for place in {*mapped, *searched} if place.period_ns in periods}, key=order)
    return [FrontierRow(place, model.get(place), mapped.get(place), searched.get(place)) for place in places]


def meanings(steps: Sequence[Step]) -> dict[str, int]:
    """Return the number of threads that each word (cores, ...) means, from the steps planned with
    the word.
    """
    numbers: dict[str, int] = {}
    for step in steps:
        word = step.key.parameters.get("threads")
        for result in step.results if isinstance(word, str) and not word.isdigit() else []:
            number = result.values.get("threads")
            if isinstance(number, int) and not isinstance(number, bool):
                numbers[str(word)] = number
    return numbers


def _results(
    record: Record, steps: Sequence[Step], searched: Mapping[FrontierPlace, Frontier]
) -> TireResults:
    tire = [step for step in steps if is_tire(step)]
    fast = fast_runs(tire)
    points, switch_ns = speed_points(fast), switch_costs(steps)
    cpus = max((len(step.cpus) for step in tire), default=1) or 1
    maps = real_time_maps(paced_runs(tire, record=record))
    periods = dict.fromkeys(plot.period_ns for plot in maps)
    predicted = [each for period_ns in periods for each in predicted_frontiers(fast, period_ns, cpus)]
    return TireResults(
        name=system_name(record, tire[0]),
        load=tire[0].key.load,
        deployment=tire[0].key.deployment,
        points=points,
        too_short=too_short(tire),
        cost=cost_model(fast, switch_ns),
        predictions=predictions(points, fast, switch_ns, cpus),
        maps=maps,
        frontiers=frontier_rows(predicted, maps, searched),
        meanings=meanings(tire),
    )


Condition = tuple[str, str, str]
"""Identifies a system: target, load and deployment."""


def by_condition(record: Record) -> dict[Condition, list[Step]]:
    """Return the steps of each target, load and deployment."""
    groups: dict[Condition, list[Step]] = {}
    for step in record.steps:
        target = next(iter(step.key.targets.values()), "local")
        groups.setdefault((target, step.key.load, step.key.deployment), []).append(step)
    return groups


def tire_results(
    record: Record, searched: Mapping[Condition, Mapping[FrontierPlace, Frontier]]
) -> list[TireResults]:
    """Return a result for each target, load and deployment with runs of the tire.

    `searched`: the finished searches of each. Raises RecordError if a step is damaged.
    """
    return [
        _results(record, steps, searched.get(condition, {}))
        for condition, steps in by_condition(record).items()
        if any(map(is_tire, steps))
    ]
