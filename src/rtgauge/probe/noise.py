# SPDX-License-Identifier: MIT
"""noise: the gaps in a task that only reads the clock, and the cause of each gap according to the kernel's "
"counters."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import MeasuringParameters, OnOff
from rtgauge.probe.descriptor import Bound, Metric, Shown
from rtgauge.probe.simple_probe import SimpleProbe, timed
from rtgauge.validation import DurationNs, between

BUSY_MOST = 0.8
"""The largest busy share of a round that the engine accepts, to keep the machine usable."""


class NoiseParameters(MeasuringParameters):
    """Parameters of `noise`."""

    threshold_ns: Annotated[DurationNs, between("100ns", "1s")] = Field(
        default=1_000, description="shortest gap to count; ignore shorter ones"
    )
    round_ns: Annotated[DurationNs, between("1ms", "1s")] = Field(
        default=100_000_000, description="time from the start of one busy stretch to the start of the next"
    )
    busy_ns: Annotated[DurationNs, between("100us", "1s")] = Field(
        default=75_000_000, description="how long the task is busy in each round, at most 80 % of it"
    )
    interrupts: OnOff = Field(
        default=True, description="count interrupts after each gap if counting takes little time"
    )

    @model_validator(mode="after")
    def _check_busy(self) -> Self:
        if self.busy_ns > self.round_ns // 100 * round(100 * BUSY_MOST):
            raise ValueError(
                f"busy must be at most {BUSY_MOST:.0%} of round, so that the machine stays usable"
            )
        return self


PROBE = SimpleProbe(
    name="noise",
    order=40,
    help="gaps in a task that only reads the clock, with the cause that the kernel's counters show",
    about="""Noise: how often, and for how long, does something take the CPU from a task that never sleeps?

Each gap is attributed to another task, to an interrupt, or to something below the kernel: hardware, firmware
or a hypervisor.""",
    examples=("--duration 10s", "--cpu 1 --threshold 5us --load network"),
    parameters=NoiseParameters,
    lasts=timed(5_000_000),
    method=(
        "On each CPU, a task reads the clock all the time during a part of each round. If two readings "
        "differ by the threshold or more, something took the CPU in between: a gap. The kernel's counters "
        "show whether this was another task or an interrupt on this CPU. If they show neither, it was "
        "something below the kernel."
    ),
    metrics=(Metric(name="gap", plural="gaps", bound=Bound(example="gap<=20us", preset=None)),),
    when_nothing=None,
    shown=Shown(tabulated=True),
)
