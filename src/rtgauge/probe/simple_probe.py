# SPDX-License-Identifier: MIT
"""A probe whose parameters are the engine's options, and its special case, the microbenchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from rtgauge.probe.common_parameters import CokernelParameters, MeasuringParameters, engine_options
from rtgauge.probe.descriptor import Probe, command_line

C = TypeVar("C", bound=CokernelParameters)
Lasting = Callable[[C], int]
"""Returns how long a step with these parameters takes, with its warm-up (ns)."""


def timed(sample_ns: int = 10_000) -> Lasting[MeasuringParameters]:
    """Return a function that returns a step's length (ns). `sample_ns`: estimated time of a sample, with its
    pauses.
    """

    def lasts(parameters: MeasuringParameters) -> int:
        return ((parameters.count or 0) * sample_ns or parameters.duration_ns) + parameters.warm_up_ns

    return lasts


@dataclass(frozen=True, kw_only=True, eq=False)
class SimpleProbe(Probe[C]):
    """A probe whose engine has an option with the same name for each parameter."""

    lasts: Lasting[C]

    def arguments(self, parameters: C, samples_dir: str | None) -> list[str]:
        """Return the engine's command line."""
        return command_line(self.name, {**engine_options(parameters), "samples_dir": samples_dir})

    def expected_ns(self, parameters: C) -> int:
        """Return the length (ns) of warm-up and measured phase."""
        return self.lasts(parameters)


@dataclass(frozen=True, kw_only=True)
class CostColumn:
    """An operation's column in the tables of Garre et al. 2014, and how often it went as intended."""

    name: str
    """What every name of the operation begins with. The tables list operations in the order of the probes."""
    operation: Callable[[Any], str]
    """Returns the operation that a step with these parameters measured, such as `semaphore (same-cpu)`."""
    result: str
    """The name of the result that holds the counts."""
    met: str
    """The key in that result for the operations that went as intended."""
    tries: tuple[str, ...]
    """The keys in that result whose values add up to all operations."""
    met_name: str
    """What happened in the operations that went as intended, such as `slept until woken`."""
    note: str
    """What readers must know about these counts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Microbenchmark(SimpleProbe[C]):
    """A probe in the tables of the microbenchmarks (Garre et al. 2014, sec. 3)."""

    cost: CostColumn | None = None
    """The operation whose cost the probe measures; None if it does not measure just one."""


def cost_of(probe: Probe[Any]) -> CostColumn | None:
    """Return the operation whose cost a probe measures; None if it does not measure just one."""
    return probe.cost if isinstance(probe, Microbenchmark) else None
