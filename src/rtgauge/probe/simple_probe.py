# SPDX-License-Identifier: MIT
"""A probe whose parameters are the engine's options, and the microbenchmarks, which all are one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from rtgauge.probe.common_parameters import CokernelParameters, MeasuringParameters, engine_options
from rtgauge.probe.descriptor import Probe, command_line

C = TypeVar("C", bound=CokernelParameters)
Lasting = Callable[[C], int]
"""How long a step with these parameters takes with its warm-up (ns)."""


def timed(sample_ns: int = 10_000) -> Lasting[MeasuringParameters]:
    """By the duration, or the count; `sample_ns`: about how long one sample takes, with the rests."""

    def lasts(parameters: MeasuringParameters) -> int:
        return ((parameters.count or 0) * sample_ns or parameters.duration_ns) + parameters.warm_up_ns

    return lasts


@dataclass(frozen=True, kw_only=True, eq=False)
class SimpleProbe(Probe[C]):
    """A probe whose engine has an option of the same name for each parameter."""

    lasts: Lasting[C]

    def arguments(self, parameters: C, samples_dir: str | None) -> list[str]:
        """The engine's command line."""
        return command_line(self.name, {**engine_options(parameters), "samples_dir": samples_dir})

    def expected_ns(self, parameters: C) -> int:
        """Warm-up and measured phase."""
        return self.lasts(parameters)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The column of an operation in the tables of Garre et al. 2014, and how often it was as it should be."""

    name: str
    """What every operation's name begins with. The tables have the operations in the order of the probes."""
    operation: Callable[[Any], str]
    """What a step with these parameters measured the cost of: `semaphore (same-cpu)`."""
    result: str
    """The name of the result that has the counts."""
    met: str
    """The value of that result which counts the operations that were as they should be."""
    tries: tuple[str, ...]
    """The values that add up to all of them."""
    met_name: str
    """What happened in those that met it: `slept until woken`."""
    note: str
    """What to know when reading these counts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Microbenchmark(SimpleProbe[C]):
    """A probe of the tables of the microbenchmarks (Garre et al. 2014, sec. 3)."""

    cost: Cost | None = None
    """If it measures the cost of one operation."""


def cost_of(probe: Probe[Any]) -> Cost | None:
    """The operation whose cost a probe measures; None if it measures something else."""
    return probe.cost if isinstance(probe, Microbenchmark) else None
