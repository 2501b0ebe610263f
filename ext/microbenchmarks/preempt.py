# SPDX-License-Identifier: MIT
"""preempt: the time in which a high task preempts a low one after an event (Garre et al. 2014, 3.1)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import MeasuringParameters, SingleCpuParameters
from rtgauge.probe.descriptor import Metric
from rtgauge.probe.simple_probe import timed
from rtgauge.validation import DurationNs, between
from rtgauge_ext.microbenchmarks.microbenchmark import CostColumn, Microbenchmark


class PreemptParameters(SingleCpuParameters, MeasuringParameters):
    """Parameters of `preempt`."""

    event: Literal["timer", "wake-up"] = Field(
        default="timer",
        description="what makes the high-priority task ready: its timer, or a task on another CPU",
    )
    placement: Literal["same-core", "other-core"] = Field(
        default="other-core", description="where to run the task that wakes the high-priority task"
    )
    interval_ns: Annotated[DurationNs, between("20us", "10ms")] = Field(
        default=200_000, description="time between two events"
    )

    @model_validator(mode="after")
    def _check_priority(self) -> Self:
        if self.policy != "other" and self.priority < 2:
            raise ValueError("the priority must be 2 or more, because the low-priority task runs at one less")
        return self


def _operation(parameters: PreemptParameters) -> str:
    where = (
        f", {parameters.placement}"
        if parameters.event == "wake-up" and parameters.placement != "other-core"
        else ""
    )
    return f"preemption ({parameters.event}{where})"


PROBE = Microbenchmark(
    name="preempt",
    order=60,
    help="time from an event to the first instruction of a high-priority task that preempts a "
    "low-priority task",
    about="Preemption: a high-priority task becomes ready while a low-priority task runs on its CPU. "
    "How long does it take to start?",
    examples=("--duration 10s", "--event wake-up --cpu 1"),
    parameters=PreemptParameters,
    lasts=timed(300_000),
    method=(
        "A low-priority task computes while a high-priority task on the same CPU waits. The value is the "
        "time from the event until the high-priority task first reads the clock. The event is either the "
        "time for which a timer is set, or the moment before a task on another CPU posts."
    ),
    metrics=(Metric(name="preemption", plural="preemptions"),),
    operation=_operation,
    cost=CostColumn(
        name="preemption",
        result="preemptions",
        met="preempted",
        tries=("events",),
        met_name="preempted the low task",
        note=(
            "The count of preemptions includes the warm-up, and preemptions by other tasks. If an event "
            "comes while the low-priority task is not running, it still counts as a sample."
        ),
    ),
)
