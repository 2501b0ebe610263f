# SPDX-License-Identifier: MIT
"""periodic: a task toggles a line at a fixed period (Brown & Martin 2010, sec. 3.5; Adam et al. 2021, algorithm A2)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.signal_parameters import Role, SignalParameters, SignalProbe
from rtgauge.validation import DurationNs, between


class PeriodicParameters(SignalParameters):
    """Parameters of `periodic`."""

    measured_role: ClassVar[Role] = "master"

    period_ns: Annotated[DurationNs, between("2us", "1h")] = Field(
        default=7_071_000, alias="period", description="period of the signal; the line is toggled each half of it"
    )
    timer: Literal["nanosleep", "timerfd"] = Field(default="nanosleep", alias="timer", description="how the task waits; timerfd as in the papers")

    @model_validator(mode="after")
    def _check_period(self) -> Self:
        if self.period_ns % 2:
            raise ValueError(f"a period of {self.period_ns}ns has no half in whole ns; give an even number")
        return self


class Periodic(SignalProbe):
    """A line that is toggled each half-period."""

    name = "periodic"
    help = "a task toggles a line at a fixed period: how late is each edge, how even are the half-periods"
    about = """Periodic: a task toggles a line at a fixed period; how late is each edge, how even are the half-periods?

Measured by the task itself, by the other end of the line, or by both."""
    examples = ("--period 1ms --duration 10s", "--path gpio:/dev/gpiochip0:17 --role master --timer timerfd --period 30ms")
    parameters = PeriodicParameters

    def cycle_ns(self, parameters: dict[str, Any]) -> int:
        """A half-period."""
        half: int = parameters["period_ns"] // 2
        return half
