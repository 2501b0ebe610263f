# SPDX-License-Identifier: MIT
"""preempt: from an event to the first instruction of a high task, while a low one runs (Garre et al. 2014, sec. 3.1)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import FIRST_CPU, MeasuringParameters, MeasuringProbe
from rtgauge.validation import CpuList, DurationNs, between


class PreemptParameters(MeasuringParameters):
    """Parameters of `preempt`."""

    cpu: CpuList | None = FIRST_CPU
    event: Literal["timer", "wake-up"] = Field(
        default="timer", alias="event", description="what makes the high task ready: its timer, or a task on another CPU"
    )
    placement: Literal["same-core", "other-core"] = Field(default="other-core", alias="placement", description="where the task runs that wakes it")
    interval_ns: Annotated[DurationNs, between("20us", "10ms")] = Field(default=200_000, alias="interval", description="time between two events")

    @model_validator(mode="after")
    def _check_priority(self) -> Self:
        if self.policy != "other" and self.priority < 2:
            raise ValueError("the low task has one priority less: give a priority of 2 or more")
        return self


class Preempt(MeasuringProbe):
    """A high task, a low one, and what wakes the high one."""

    name = "preempt"
    help = "from an event to the first instruction of a high-priority task, while a low one runs"
    about = "Preemption: a task of high priority becomes ready while one of low priority runs on its CPU."
    examples = ("--duration 10s", "--event wake-up --cpu 1")
    parameters = PreemptParameters
    count_lasts_ns = 300_000
