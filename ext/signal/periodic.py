# SPDX-License-Identifier: MIT
"""periodic: a task toggles a line at a fixed period (Brown & Martin 2010, 3.5; Adam et al. 2021, alg. A2)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import check_interval
from rtgauge.probe.descriptor import Bound, Metric, Pace, Shown
from rtgauge.validation import DurationNs, between
from rtgauge_ext.signal.parameters import (
    DIFFERENCE,
    NO_LINE,
    Role,
    SignalParameters,
    SignalProbe,
    check_context,
    check_instrument_time,
)

KERNEL_PERIODS_NS = (20_000, 20_000_000_000)
"""The shortest and longest period that the kernel module accepts."""


class PeriodicParameters(SignalParameters):
    """Parameters of `periodic`."""

    measured_role: ClassVar[Role] = "master"
    of_user_space: ClassVar[frozenset[str]] = frozenset({"timer"})

    period_ns: Annotated[DurationNs, between("1ns", "1h")] = Field(
        default=7_071_000, description="period of the signal; the task toggles the line every half period"
    )
    context: Literal["irq", "thread"] | None = Field(
        default=None,
        description="in kernel space, what toggles the line: irq (the interrupt handler of the timer, the "
        "default) or thread (a kernel thread that the handler wakes)",
    )
    timer: Literal["nanosleep", "timerfd"] = Field(
        default="nanosleep",
        description="how the task waits in user space; Brown and Martin (2010) use timerfd",
    )

    @model_validator(mode="after")
    def _check_period(self) -> Self:
        check_context(self.space, self.context)
        if self.rt == "rtai" and self.context == "irq":
            raise ValueError("the timers of RTAI can only wake tasks; give context thread")
        if self.space == "kernel" and not KERNEL_PERIODS_NS[0] <= self.period_ns <= KERNEL_PERIODS_NS[1]:
            raise ValueError("in kernel space, the period must be from 20us to 20s")
        check_interval("half-period", self.period_ns // 2)
        if self.period_ns % 2:
            raise ValueError(
                f"half of a period of {self.period_ns}ns is not a whole number of ns; give an even number"
            )
        if self.instrument is not None:
            check_instrument_time("half of the period", self.period_ns // 2)
        return self


class Periodic(SignalProbe[PeriodicParameters]):
    """Toggles a line at each half-period."""

    def cross_checked_by(self, tool: str, parameters: PeriodicParameters) -> bool:
        """Return whether the tool measures the same; Xenomai's and RTAI's latency programs toggle no line."""
        return super().cross_checked_by(tool, parameters) and parameters.path == NO_LINE

    def cycle_ns(self, parameters: PeriodicParameters) -> int:
        """Return a half-period in ns."""
        return parameters.period_ns // 2


PROBE = Periodic(
    name="periodic",
    order=20,
    help="how late and how evenly a task toggles a line at a fixed period",
    about="""Periodic: a task toggles a line at a fixed period. How late and how even are its edges?

The task itself measures this, or an observer at the other end of the line, or both.""",
    examples=(
        "--period 1ms --duration 10s",
        "--space kernel --context thread --period 1ms",
        "--rt cobalt --space kernel --path none --period 1ms",
        "--path gpio:/dev/gpiochip0:17 --role master --timer timerfd --period 30ms",
        "--path gpio:/dev/gpiochip0:17 --period 30ms --instrument serial:/dev/ttyACM0",
    ),
    parameters=PeriodicParameters,
    method=(
        "In each half-period, a task sleeps until an absolute time and toggles a line. Latency is the time "
        "from when an edge is due to the edge itself. Jitter is the actual half-period minus the nominal "
        "one, so it can be negative. The task reads the clock right after it has toggled the line. An "
        "observer at the other end, if there is one, reads the clock when the edge arrives, or uses the "
        "time stamp that the kernel took; an instrument there time-stamps the edge with its own clock. If "
        "the time of an edge passes before the task is waiting again, the edge counts as missed."
    ),
    methods={
        "kernel": (
            "In kernel space, a high-resolution timer of a kernel module expires at each half-period. Its "
            "handler runs in hard-irq context, also on PREEMPT_RT. It toggles the line (context irq), or "
            "wakes a FIFO kernel thread that does (context thread). The kernel time-stamps when the "
            "handler starts, when the thread starts and when the line is toggled. Latency and jitter are "
            "measured at the toggled line."
        )
    },
    kernel_module="rtgauge_periodic",
    woken_by_others=False,
    metrics=(
        Metric(
            name="latency",
            plural="latencies",
            signed=True,
            bound=Bound(example="period=1ms latency<=200us hardness=100%", preset=None),
        ),
        Metric(
            name="jitter",
            plural="jitters",
            signed=True,
            bound=Bound(example="jitter<=200us hardness=99.9%", preset="brown2010"),
        ),
        DIFFERENCE,
    ),
    missed="edges whose time passed before the task was waiting again",
    pace=Pace(period="period_ns", activations=2, count="cycles", metrics=("jitter", "latency")),
    shown=Shown(
        roles={
            "self": "by itself",
            "observer": "observed",
            "wire": "on the wire",
            "instrument": "from outside",
        }
    ),
    instrument_metric="jitter",
    cross_checked=frozenset({"xenomai-latency", "rtai-latency"}),
)
