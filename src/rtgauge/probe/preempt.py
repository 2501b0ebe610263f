# SPDX-License-Identifier: MIT
"""preempt: from an event to the first instruction of a high task, while a low one runs (Garre et al. 2014, sec. 3.1)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.measuring import MeasuringParameters, MeasuringProbe
from rtgauge.validation import DurationNs, between


class PreemptParameters(MeasuringParameters):
    """Parameters of `preempt`."""

    event: Literal["timer", "wake-up"] = Field(default="timer", alias="event", description="what makes the high task ready")
    placement: Literal["same-core", "other-core"] = Field(default="other-core", alias="placement", description="of the task that wakes it")
    interval_ns: Annotated[DurationNs, between("20us", "10ms")] = Field(default=200_000, alias="interval", description="between two events")

    @model_validator(mode="after")
    def _check_priority(self) -> Self:
        if self.policy != "other" and self.priority < 2:
            raise ValueError("the low task has one priority less: give a priority of 2 or more")
        return self


class Preempt(MeasuringProbe):
    """A high task, a low one, and what wakes the high one."""

    name = "preempt"
    help = "from an event to the first instruction of a high-priority task, while a low one runs"
    parameters = PreemptParameters
    count_lasts_ns = 300_000
