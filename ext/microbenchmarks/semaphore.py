# SPDX-License-Identifier: MIT
"""semaphore: time from one task's post to the other's return from wait, also with other primitives (Garre et
al. 2014, 3.1).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rtgauge.probe.common_parameters import MeasuringParameters, SingleCpuParameters
from rtgauge.probe.descriptor import Metric
from rtgauge.probe.simple_probe import timed
from rtgauge_ext.microbenchmarks.microbenchmark import CostColumn, Microbenchmark


class SemaphoreParameters(SingleCpuParameters, MeasuringParameters):
    """Parameters of `semaphore`."""

    method: Literal["semaphore", "mutex", "condition", "eventfd", "pipe", "mqueue", "signal"] = Field(
        default="semaphore", description="how a task waits for the other task"
    )
    placement: Literal["same-cpu", "same-core", "other-core"] = Field(
        default="same-cpu", description="where to run the second task"
    )


def _operation(parameters: SemaphoreParameters) -> str:
    return f"{parameters.method} ({parameters.placement})"


PROBE = Microbenchmark(
    name="semaphore",
    order=70,
    help="time from when one task posts until the other returns from its wait, with a semaphore, a "
    "mutex, a pipe, a signal and others",
    about="Semaphore: how long after one task posts does the other task return from its wait? The "
    "probe also measures other mechanisms, such as a mutex or a pipe.",
    examples=("--count 100000", "--method pipe --placement other-core"),
    parameters=SemaphoreParameters,
    lasts=timed(),
    method=(
        "Two tasks wake each other in turn. One reads the clock right before it posts, and the other right "
        "after it returns from its wait. The value is the time in between."
    ),
    metrics=(Metric(name="hand-over", plural="hand-overs"),),
    operation=_operation,
    cost=CostColumn(
        name="semaphore",
        result="hand-overs",
        met="slept",
        tries=("hand_overs",),
        met_name="slept until woken",
        note=(
            "The count `slept until woken` includes the warm-up. A hand-over to a task that was not yet "
            "asleep is shorter, but still counts as a sample."
        ),
    ),
)
