# SPDX-License-Identifier: MIT
"""Runs of a machine whose cost of a step is known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rtgauge.analysis.violation_bounds import Counted
from rtgauge_ext.tire.analysis.runs import FastRun, PacedRun, SimulatedConfiguration

SPRINGS_PER_NODE = {"serial": 1.5, "halo": 1.5, "semaphore": 3.0}
"""Not those of the engine: the model must take whatever the solvers do."""
NODES = (64, 256, 1024, 4096, 16384)


@dataclass
class Machine:
    """Costs in ns; `noise`: standard deviation of a run's mean step, a share of it."""

    mass: float = 8.0
    spring: float = 20.0
    rest: float = 1.5
    lock: float = 35.0
    begin: dict[int, float] = field(default_factory=lambda: {1: 300.0, 2: 4_000.0, 4: 21_000.0})
    cpus: int = 2
    noise: float = 0.01
    delay: float = 20_000.0
    seed: int = 1

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def per_node(self, solver: str, without: str = "none") -> float:
        springs = 0.0 if without == "springs" else SPRINGS_PER_NODE[solver] * self.spring
        return (
            springs
            + (0.0 if without == "integration" else self.mass)
            + self.rest
            + (4 * self.lock if solver == "semaphore" else 0.0)
        )

    def step_ns(self, solver: str, nodes: int, threads: int = 1, without: str = "none") -> float:
        share = -(-threads // self.cpus) * -(-nodes // threads)
        return self.begin[threads] + share * self.per_node(solver, without)

    def fast(
        self,
        solver: str,
        nodes: int,
        threads: int = 1,
        *,
        without: str = "none",
        policy: str = "fifo",
        steps: int = 1000,
    ) -> FastRun:
        step = self.step_ns(solver, nodes, threads, without) * (1 + self.noise * self.rng.standard_normal())
        return FastRun(
            SimulatedConfiguration(solver, nodes, threads, policy, without),
            steps,
            round(step * steps),
            step_max_ns=round(step + self.delay),
            voluntary_switches=0,
            involuntary_switches=0,
        )

    def campaign(self, repeats: int = 3, nodes: tuple[int, ...] = NODES) -> list[FastRun]:
        """All that the cost model needs."""
        runs: list[FastRun] = []
        for _ in range(repeats):
            for n in nodes:
                runs += [self.fast("serial", n, without=w) for w in ("none", "springs", "integration")]
                runs += [self.fast("semaphore", n, without=w) for w in ("none", "springs", "integration")]
                runs += [
                    self.fast(s, n, t)
                    for s in ("halo", "semaphore")
                    for t in (1, 2, 4)
                    if (s, t) != ("semaphore", 1)
                ]
        return runs


def paced(
    nodes: int,
    threads: int,
    missed: int,
    *,
    deadlines: int = 1000,
    policy: str = "fifo",
    solver: str = "semaphore",
    repeat: int = 1,
) -> PacedRun:
    configuration = SimulatedConfiguration(solver, nodes, threads, policy)
    counted = Counted.of_windows([missed], [deadlines])
    return PacedRun(configuration, 10_000_000, repeat, deadlines, missed, counted)
