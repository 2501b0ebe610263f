# SPDX-License-Identifier: MIT
"""One configuration of the tire as it was run: as fast as possible, or paced. Plain data, whatever it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.record.model import Severity

WHOLE = "none"
"""`without` of a step from which nothing was taken away."""
SPRINGS, INTEGRATION = "springs", "integration"
SERIAL, HALO, SEMAPHORE = "serial", "halo", "semaphore"
SOLVERS = (SERIAL, SEMAPHORE, HALO)
"""In the order in which they are shown: without threads, the paper's, the fast one."""
SPRINGS_PER_NODE = {SERIAL: 2.0, SEMAPHORE: 2.0, HALO: 1.5}
"""How many spring forces a solver computes for each node: eq. 2 has 2e + 1 for e nodes, since a spoke is computed at either of its ends."""
NODES_MULTIPLE = 4
LEAST_NODES = 4


@dataclass(frozen=True)
class Configuration:
    """What was simulated and how; `free_running`: the paper's algorithm to the letter, without a barrier."""

    solver: str
    nodes: int
    threads: int
    policy: str
    without: str = WHOLE
    free_running: bool = False


@dataclass(frozen=True)
class FastRun:
    """Real-fast: `steps` simulated steps took `wall_ns`. `step_max_ns`: the longest step; switches: of all threads together; None: not known."""

    configuration: Configuration
    repeat: int
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
        """Mean CPU time of a step on one thread: what the scheduler took in between is not in it. None on several, which wait for each other."""
        return self.cpu_ns / self.steps if self.cpu_ns and self.configuration.threads == 1 else None

    @property
    def step_ns(self) -> float:
        """Mean time of a step."""
        return self.wall_ns / self.steps

    @property
    def switches_per_step(self) -> float | None:
        """Task switches of either kind, of all threads together."""
        if self.voluntary_switches is None or self.involuntary_switches is None:
            return None
        return (self.voluntary_switches + self.involuntary_switches) / self.steps


@dataclass(frozen=True)
class PacedRun:
    """Real-time: of `deadlines` steps, a period each, `missed` were not done at their deadline. `latency_max_ns`: the latest release."""

    configuration: Configuration
    period_ns: int
    repeat: int
    deadlines: int
    missed: int
    latency_max_ns: int | None = None
    worst_mark: Severity | None = None

    @property
    def held(self) -> bool:
        """Hard real time: every deadline was kept."""
        return self.missed == 0
