# SPDX-License-Identifier: MIT
"""Collects the results of a tire's runs: speed, real-time maps, and the largest tire in hard real time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from rtgauge.analysis.confidence import design_effect, upper_bound
from rtgauge.analysis.record_names import system_name
from rtgauge.record.model import Model, Severity, Step, worst_severity
from rtgauge.record.reader import Record
from rtgauge_ext.tire.analysis.cost_model import CostModel, cost_model
from rtgauge_ext.tire.analysis.estimate import Estimate, median_of
from rtgauge_ext.tire.analysis.frontier_search import Frontier
from rtgauge_ext.tire.analysis.prediction import (
    PredictedFrontier,
    Prediction,
    SpeedPoint,
    against_serial,
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


class ConfigurationResult(Model):
    """One configuration, summed over its repeats."""

    nodes: int
    threads: int
    runs: int
    deadlines: int
    missed: int
    worst_mark: Severity | None
    design_effect: float = Field(
        default=1.0,
        description="how many deadlines count as one independent deadline, because misses come in bursts",
    )

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


class Edge(Model):
    """The frontier for one number of threads, as the map's points show it."""

    threads: int
    holds: int | None = Field(
        description="largest measured number of nodes up to which no deadline was missed; None if one "
        "was missed at the smallest number"
    )
    misses: int | None = Field(
        description="smallest measured number of nodes at which a deadline was missed; None if none was"
    )
    held_beyond: int | None = Field(
        description="largest number of nodes above `misses` at which no deadline was missed; None if "
        "there is none"
    )


class RealTimeMap(Model):
    """All configurations of one solver, policy and period."""

    solver: str
    policy: str
    period_ns: int
    free_running: bool
    cells: list[ConfigurationResult]
    frontier: list[Edge]

    @property
    def threads(self) -> list[int]:
        """The numbers of threads, in ascending order."""
        return sorted({cell.threads for cell in self.cells})

    @property
    def deadlines(self) -> int:
        """The number of deadlines in all cells together."""
        return sum(cell.deadlines for cell in self.cells)


def edge(cells: Sequence[ConfigurationResult], threads: int) -> Edge:
    """Return the frontier of the cells with this many threads."""
    row = sorted((cell for cell in cells if cell.threads == threads), key=lambda cell: cell.nodes)
    misses = next((cell.nodes for cell in row if not cell.held), None)
    held = [cell.nodes for cell in row if cell.held]
    below = [nodes for nodes in held if misses is None or nodes < misses]
    beyond = [nodes for nodes in held if misses is not None and nodes > misses]
    holds, held_beyond = max(below, default=None), max(beyond, default=None)
    return Edge(threads=threads, holds=holds, misses=misses, held_beyond=held_beyond)


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
        plot = RealTimeMap(
            solver=solver,
            policy=policy,
            period_ns=-negative_period,
            free_running=free_running,
            cells=cells,
            frontier=[],
        )
        plot.frontier = [edge(cells, threads) for threads in plot.threads]
        maps.append(plot)
    return maps


class AgainstSerial(Model):
    """How many times as fast as the serial solver a configuration is."""

    solver: str
    policy: str
    threads: int
    nodes: int
    times: Estimate


class Searched(Model):
    """A finished search."""

    solver: str
    policy: str
    period_ns: int
    frontier: Frontier


class FrontierRow(Model):
    """The largest tire in hard real time according to the model, the map and the search; None if one gives no
    answer.
    """

    solver: str
    policy: str
    threads: int
    period_ns: int
    mean: Estimate | None
    worst: Estimate | None
    delay_ns: float | None
    map_holds: int | None
    map_misses: int | None
    searched: Frontier | None


class TireResults(Model):
    """The tire's results on one system under one load in one deployment."""

    record: str
    name: str
    target: str
    load: str
    deployment: str
    cpus: int = Field(description="number of CPUs on which the threads ran")
    points: list[SpeedPoint]
    too_short: int = Field(
        description="number of real-fast runs shorter than a millisecond, which the figures leave out"
    )
    against_serial: list[AgainstSerial]
    cost: CostModel | None
    switch_ns: dict[str, Estimate] = Field(
        description="cost of a task switch under each policy, the median of the means of the runs of the "
        "probe switch"
    )
    predictions: list[Prediction]
    maps: list[RealTimeMap]
    frontiers: list[FrontierRow]
    meanings: dict[str, int] = Field(
        description="number of threads that each word (cores, ...) stands for on this machine"
    )


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
    predicted: Sequence[PredictedFrontier], maps: Sequence[RealTimeMap], searched: Sequence[Searched]
) -> list[FrontierRow]:
    """Return prediction, map and search together for each solver, policy, period and number of threads."""
    model = {(each.solver, each.policy, each.period_ns, each.threads): each for each in predicted}
    paced = [plot for plot in maps if not plot.free_running]
    mapped = {
        (plot.solver, plot.policy, plot.period_ns, edge.threads): edge
        for plot in paced
        for edge in plot.frontier
    }
    search = {
        (each.solver, each.policy, each.period_ns, each.frontier.threads): each.frontier for each in searched
    }
    rows: list[FrontierRow] = []
    # A map with another period than the searches, such as the pretest's, does not reach its frontier.
    longest = max((period_ns for _, _, period_ns, _ in mapped), default=0)
    periods = {period_ns for _, _, period_ns, _ in search} or {longest}

    def order(key: tuple[str, str, int, int]) -> tuple[str, int, int, int]:
        solver, policy, period_ns, threads = key
        return policy, -period_ns, SOLVERS.index(solver) if solver in SOLVERS else len(SOLVERS), threads

    for key in sorted({key for key in {*mapped, *search} if key[2] in periods}, key=order):
        solver, policy, period_ns, threads = key
        expected, edge = model.get(key), mapped.get(key)
        row = FrontierRow(
            solver=solver,
            policy=policy,
            threads=threads,
            period_ns=period_ns,
            mean=None if expected is None else expected.mean,
            worst=None if expected is None else expected.worst,
            delay_ns=None if expected is None else expected.delay_ns,
            map_holds=None if edge is None else edge.holds,
            map_misses=None if edge is None else edge.misses,
            searched=search.get(key),
        )
        rows.append(row)
    return rows


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


def _results(record: Record, steps: Sequence[Step], searched: Sequence[Searched]) -> TireResults:
    tire = [step for step in steps if is_tire(step)]
    fast, paced = fast_runs(tire), paced_runs(tire, record=record)
    points, switch_ns = speed_points(fast), switch_costs(steps)
    cpus = max((len(step.cpus) for step in tire), default=1) or 1
    maps = real_time_maps(paced)
    periods = dict.fromkeys(plot.period_ns for plot in maps)
    compared = [
        AgainstSerial(solver=solver, policy=policy, threads=threads, nodes=nodes, times=times)
        for (solver, policy, threads, nodes), times in against_serial(points, fast).items()
    ]
    first = tire[0]
    return TireResults(
        record=str(record.path),
        name=system_name(record, first),
        target=next(iter(first.key.targets.values()), "local"),
        load=first.key.load,
        deployment=first.key.deployment,
        cpus=cpus,
        points=points,
        too_short=too_short(tire),
        against_serial=compared,
        cost=cost_model(fast, switch_ns),
        switch_ns=switch_ns,
        predictions=predictions(points, fast, switch_ns, cpus),
        maps=maps,
        frontiers=frontier_rows(
            [frontier for period_ns in periods for frontier in predicted_frontiers(fast, period_ns, cpus)],
            maps,
            searched,
        ),
        meanings=meanings(tire),
    )


Condition = tuple[str, str, str]
"""Identifies a system: target, load and deployment."""


def condition_of(step: Step) -> Condition:
    """Return the (target, load, deployment) of a step."""
    return next(iter(step.key.targets.values()), "local"), step.key.load, step.key.deployment


def tire_results(record: Record, searched: Mapping[Condition, Sequence[Searched]]) -> list[TireResults]:
    """Return a result for each target, load and deployment with runs of the tire.

    `searched`: the finished searches of each. Raises RecordError if a step is damaged.
    """
    groups: dict[Condition, list[Step]] = {}
    for step in record.steps:
        groups.setdefault(condition_of(step), []).append(step)
    with_tire = {key: steps for key, steps in groups.items() if any(map(is_tire, steps))}
    return [_results(record, steps, searched.get(key, ())) for key, steps in with_tire.items()]
