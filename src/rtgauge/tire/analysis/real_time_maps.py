# SPDX-License-Identifier: MIT
"""Real-time maps over nodes and threads: hard (was any deadline missed?) and soft (how many?), after Garre et
al.

2014, fig. 8 to 13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from rtgauge.analysis.confidence import upper_bound
from rtgauge.record.model import Model, Severity, worst_severity
from rtgauge.tire.analysis.runs import SEMAPHORE, SOLVERS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rtgauge.tire.analysis.runs import PacedRun


class Cell(Model):
    """One configuration, its repeats added up."""

    nodes: int
    threads: int
    runs: int
    deadlines: int
    missed: int
    worst_mark: Severity | None

    @property
    def held(self) -> bool:
        """No deadline was missed."""
        return self.missed == 0

    @property
    def share(self) -> float:
        """Missed deadlines of all, 0 to 1."""
        return self.missed / self.deadlines if self.deadlines else 0.0

    @property
    def share_at_most(self) -> float:
        """The upper bound at 95 % of the share of missed deadlines (Clopper-Pearson, independent steps)."""
        return upper_bound(self.missed, self.deadlines) if self.deadlines else 1.0


class Edge(Model):
    """The frontier of one number of threads, from the map's points."""

    threads: int
    holds: int | None = Field(
        description="the largest n measured up to which every deadline was kept; None: not even "
        "at the smallest"
    )
    misses: int | None = Field(
        description="the smallest n measured at which a deadline was missed; None: none was"
    )
    held_beyond: int | None = Field(
        description="the largest n above `misses` at which none was missed in spite of it; None: "
        "the border is "
        "sharp"
    )


class RealTimeMap(Model):
    """All configurations of one solver under one policy with one period."""

    solver: str
    policy: str
    period_ns: int
    free_running: bool
    cells: list[Cell]
    frontier: list[Edge]

    @property
    def threads(self) -> list[int]:
        """Every number of threads, rising."""
        return sorted({cell.threads for cell in self.cells})

    @property
    def deadlines(self) -> int:
        """Of all cells."""
        return sum(cell.deadlines for cell in self.cells)


def edge(cells: Sequence[Cell], threads: int) -> Edge:
    """The frontier of the cells that have so many threads."""
    row = sorted((cell for cell in cells if cell.threads == threads), key=lambda cell: cell.nodes)
    misses = next((cell.nodes for cell in row if not cell.held), None)
    held = [cell.nodes for cell in row if cell.held]
    below = [nodes for nodes in held if misses is None or nodes < misses]
    beyond = [nodes for nodes in held if misses is not None and nodes > misses]
    return Edge(
        threads=threads, holds=max(below, default=None), misses=misses, held_beyond=max(beyond, default=None)
    )


def _order(group: tuple[tuple[int, str, str, bool], object]) -> tuple[object, ...]:
    """The paper's solver first, then as solvers are shown everywhere."""
    period, solver, policy, free_running = group[0]
    return (
        period,
        solver != SEMAPHORE,
        SOLVERS.index(solver) if solver in SOLVERS else len(SOLVERS),
        policy,
        free_running,
    )


def real_time_maps(runs: Sequence[PacedRun]) -> list[RealTimeMap]:
    """A map for each solver, policy and period, longest period first."""
    groups: dict[tuple[int, str, str, bool], dict[tuple[int, int], list[PacedRun]]] = {}
    for run in runs:
        configuration = run.configuration
        if configuration.without == WHOLE and run.deadlines:
            group = groups.setdefault(
                (-run.period_ns, configuration.solver, configuration.policy, configuration.free_running), {}
            )
            group.setdefault((configuration.threads, configuration.nodes), []).append(run)
    maps: list[RealTimeMap] = []
    for (negative_period, solver, policy, free_running), runs_of_cell in sorted(groups.items(), key=_order):
        cells = [
            Cell(
                nodes=nodes,
                threads=threads,
                runs=len(repeats),
                deadlines=sum(run.deadlines for run in repeats),
                missed=sum(run.missed for run in repeats),
                worst_mark=worst_severity(run.worst_mark for run in repeats),
            )
            for (threads, nodes), repeats in sorted(runs_of_cell.items())
        ]
        frontier = [edge(cells, threads) for threads in sorted({cell.threads for cell in cells})]
        maps.append(
            RealTimeMap(
                solver=solver,
                policy=policy,
                period_ns=-negative_period,
                free_running=free_running,
                cells=cells,
                frontier=frontier,
            )
        )
    return maps
