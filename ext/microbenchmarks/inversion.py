# SPDX-License-Identifier: MIT
"""inversion: does a high task starve while a low one holds the lock (Garre et al. 2014, 3.2, fig. 2)?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rtgauge.probe.common_parameters import SingleCpuParameters
from rtgauge.probe.descriptor import Metric, Shown
from rtgauge.probe.simple_probe import SimpleProbe
from rtgauge.validation import DurationNs, between

KINDS = 6


class InversionParameters(SingleCpuParameters):
    """Parameters of `inversion`."""

    lock: Literal["all", "pi-mutex", "mutex", "ceiling-mutex", "semaphore", "futex", "spin"] = Field(
        default="all", description="kind of lock that the low-priority task takes"
    )
    section_ns: Annotated[DurationNs, between("10us", "100ms")] = Field(
        default=2_000_000, description="how long the low-priority task computes while it holds the lock"
    )
    limit_ns: Annotated[DurationNs, between("1ms", "500ms")] = Field(
        default=100_000_000, description="how long the high-priority task waits before it counts as starved"
    )
    trials: int = Field(default=3, ge=1, le=1000, description="number of times to try each kind of lock")
    priority: int = Field(
        default=98,
        ge=3,
        le=99,
        description="real-time priority of the high-priority task; the other two tasks have priorities "
        "1 and 2 lower",
    )


def _lasts(parameters: InversionParameters) -> int:
    """Return the longest time (ns): every trial reaches its limit, with the pauses between trials."""
    kinds = KINDS if parameters.lock == "all" else 1
    return parameters.trials * kinds * (parameters.limit_ns + 2 * parameters.section_ns) * 3 // 2


PROBE = SimpleProbe(
    name="inversion",
    order=80,
    help=(
        "whether a high-priority task starves while it waits for a low-priority task's lock, for each kind "
        "of lock"
    ),
    about=(
        "Priority inversion: does a high-priority task starve when it waits for a lock that a low-priority "
        "task holds, while a middle-priority task computes?"
    ),
    examples=("", "--lock semaphore --section 5ms --trials 10"),
    parameters=InversionParameters,
    lasts=_lasts,
    method=(
        "Three FIFO tasks run on one CPU, as in fig. 2 of Garre et al. (2014). The low-priority task holds "
        "a lock, and the high-priority task waits for it. The middle task computes until the high-priority "
        "task has the lock, or has waited as long as the limit. The value is how long the high-priority "
        "task waits after it becomes ready."
    ),
    metrics=(Metric(name="wait", plural="waits"),),
    shown=Shown(pooled=False, tabulated=True),
)
