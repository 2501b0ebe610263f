# SPDX-License-Identifier: MIT
"""A probe whose parameters are the engine's options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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
