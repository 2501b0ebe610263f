# SPDX-License-Identifier: MIT
"""wakeup: scheduling latency of a thread that sleeps until an absolute time (Delgado & Choi 2020, algorithm
1).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import (
    LONGEST,
    RT,
    RTAI_LATENCY,
    SPACE,
    DmaLatencyUs,
    OnOff,
    RtaiLatency,
    Runtime,
    Space,
)
from rtgauge.probe.descriptor import TRACE_INSTANCE, Bound, Metric, Pace, Probe
from rtgauge.probe.explain_parameters import (
    ExplainParameters,
    explain_arguments,
    explain_cost_ns,
    is_explained,
)
from rtgauge.units import NS_PER_UNIT, parse_duration_ns
from rtgauge.validation import CpuList, DurationNs, between

LEAST_TIMERLAT_NS, MOST_TIMERLAT_NS = 100_000, 1_000_000_000
"""Intervals of the timerlat tracer (kernel/trace/trace_osnoise.c: timerlat_min_period, timerlat_max_period).
"""

MOST_WARM_UP_NS = 200_000_000


def _warm_up_ns(given: dict[str, Any]) -> int:
    """Where it is not given: a tenth of the measured time, and no more than is enough."""
    measured_ns = (
        given["count"] * given["interval_ns"] if given["count"] is not None else given["duration_ns"]
    )
    return min(MOST_WARM_UP_NS, measured_ns // 10)


class WakeupParameters(ExplainParameters):
    """Parameters of `wakeup`."""

    cpu: CpuList | None = Field(
        default=None,
        alias="cpu",
        description="CPUs to measure, e.g. 0-3,6; default: all CPUs that this process may use",
    )
    space: Space = SPACE
    rt: Runtime = RT
    rtai_latency: RtaiLatency = RTAI_LATENCY
    interval_ns: DurationNs = Field(
        default=1_000_000,
        alias="interval",
        description="time between two releases of a thread; the papers have 100us",
    )
    policy: Literal["fifo", "rr", "other", "deadline"] = Field(
        default="fifo", alias="policy", description="scheduling policy"
    )
    priority: int = Field(default=98, alias="priority", ge=1, le=99, description="real-time priority")
    timer: Literal["nanosleep", "timerfd"] = Field(
        default="nanosleep", alias="timer", description="how a thread waits for its release"
    )
    phase: Literal["random", "fixed"] = Field(
        default="random",
        alias="phase",
        description="phase of the first release against the tick and the other CPUs; fixed as in the papers",
    )
    duration_ns: Annotated[DurationNs, between("1ns", LONGEST)] = Field(
        default=10_000_000_000, alias="duration", description="measured time, e.g. 5s, 10min"
    )
    count: int | None = Field(
        default=None,
        alias="count",
        ge=1,
        le=2**60,
        description="activations to measure on each CPU, instead of a duration",
    )
    warm_up_ns: Annotated[DurationNs, between("0s", "1h")] = Field(
        default_factory=_warm_up_ns,
        alias="warm-up",
        description=(
            "time at the beginning that is counted separately; default: a tenth of the measured time, at "
            "most 200ms"
        ),
    )
    window_ns: Annotated[DurationNs, between("10ms", "1h")] = Field(
        default=1_000_000_000,
        alias="window",
        description="length of a window of the record; comparing needs at least 20 windows",
    )
    stop_at_ns: Annotated[DurationNs, between("1ns", LONGEST)] | None = Field(
        default=None, alias="stop-at", description="end when a latency is larger, e.g. 200us"
    )
    dma_latency_us: DmaLatencyUs = Field(
        default=0,
        alias="dma-latency",
        description="limit the C-state exit latency to this many us; off: no limit",
    )
    memory_lock: OnOff = Field(
        default=True, alias="memory-lock", description="lock the memory of the measuring program"
    )
    samples: bool = Field(default=False, alias="samples", description="keep every raw sample")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.interval_ns <= 0:
            raise ValueError("the interval must be longer than 0; give one such as 1ms or 100us")
        if self.interval_ns > 3600 * 10**9:
            raise ValueError("the interval must not be longer than 1h")
        if self.count is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or count, not both")
        if self.count is not None and self.count * self.interval_ns > parse_duration_ns(LONGEST):
            raise ValueError(f"the count takes longer than {LONGEST}")
        self.check_explain()
        if self.space == "kernel":
            self._check_kernel_space()
        return self

    def _check_kernel_space(self) -> None:
        if (
            self.interval_ns % NS_PER_UNIT["us"]
            or not LEAST_TIMERLAT_NS <= self.interval_ns <= MOST_TIMERLAT_NS
        ):
            raise ValueError(
                "in kernel space the interval is from 100us to 1s, in whole us: the kernel's "
                "timerlat tracer takes no other"
            )
        if self.policy == "deadline":
            raise ValueError("in kernel space the policy is fifo, rr or other")
        if self.explain:
            raise ValueError("explain works only in user space")
        for name, value, only in (("timer", self.timer, "nanosleep"), ("phase", self.phase, "random")):
            if value != only:
                raise ValueError(f"{name} is for user space: the kernel's timerlat tracer has its own")


class Wakeup(Probe):
    """Scheduling latency, one measuring thread a CPU."""

    def arguments(self, parameters: dict[str, Any], samples_dir: str | None) -> list[str]:
        """The engine's command line."""
        space = parameters.get("space", "user")  # a record begun before there was a choice goes on
        in_kernel = space == "kernel"
        options = {
            "cpu": parameters["cpu"],
            "space": space,
            "interval-ns": parameters["interval_ns"],
            "policy": parameters["policy"],
            "priority": parameters["priority"],
            "timer": None if in_kernel else parameters["timer"],
            "phase": None if in_kernel else parameters["phase"],
            "trace-instance": TRACE_INSTANCE if in_kernel else None,
            "duration-ns": None if parameters["count"] else parameters["duration_ns"],
            "count": parameters["count"],
            "warm-up-ns": parameters["warm_up_ns"],
            "window-ns": parameters.get("window_ns"),  # a record begun before there was one goes on without
            "stop-at-ns": parameters["stop_at_ns"],
            "dma-latency-us": parameters["dma_latency_us"],
            "memory-lock": "on" if parameters["memory_lock"] else "off",
            "samples-dir": samples_dir,
        }
        explained = explain_arguments(parameters, self._measured_ns(parameters))
        return [
            self.name,
            *(f"--{name}={value}" for name, value in options.items() if value is not None),
            *explained,
        ]

    def traces(self, parameters: dict[str, Any]) -> Literal["tracepoints", "timerlat"] | None:
        """In kernel space the kernel's timerlat tracer."""
        return "timerlat" if parameters.get("space") == "kernel" else None

    def untraced(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """In user space and not explained: its CPUs, policy and limits are the same."""
        return {**parameters, "space": "user", "explain": False}

    def expected_ns(self, parameters: dict[str, Any]) -> int:
        """Warm-up and measured phase."""
        measured_ns = self._measured_ns(parameters)
        return (
            measured_ns
            + int(parameters["warm_up_ns"])
            + (explain_cost_ns(measured_ns) if is_explained(parameters) else 0)
        )

    @staticmethod
    def _measured_ns(parameters: dict[str, Any]) -> int:
        return int(
            parameters["count"] * parameters["interval_ns"]
            if parameters["count"]
            else parameters["duration_ns"]
        )


PROBE = Wakeup(
    name="wakeup",
    order=10,
    help="scheduling latency: from the expected release to the first instruction, one thread a CPU",
    about="""Scheduling latency: how late a thread wakes.

On each CPU one thread sleeps until a given time, reads the clock when it runs again,
and notes the difference.""",
    examples=(
        "--cpu 1 --interval 200us --duration 5s --priority 98",
        '--load cpu --require "latency<=200us"',
        "--count 100000 --samples latencies.csv",
        "--duration 1h --stop-at 500us --json",
        "--space kernel --interval 1ms --duration 1min",
        "--rt cobalt --target lab:xenomai",
        "--explain --explain-above 100us",
    ),
    parameters=WakeupParameters,
    method=(
        "One measuring thread a CPU sleeps until an absolute time, reads the clock as soon as it "
        "runs again, and keeps the actual minus the expected "
        "release time: the latency. An activation whose release time passed before the thread came "
        "back to wait for it is counted as missed; "
        "it has no latency of its own."
    ),
    kernel_method=(
        "In kernel space the kernel's timerlat tracer measures: on each CPU a timer expires at "
        "each release, its interrupt handler wakes a thread, and both "
        "read the clock. irq-latency is from the release to the handler, latency to the thread in "
        "the kernel. If the kernel has timerlat_fd (Linux 6.5), the thread is the engine's, and "
        "user-latency is to its return to user space, including the next system call; otherwise it is a "
        "kernel thread."
        " Every event is read from the kernel's buffer, and lost ones are counted. A release "
        "that passed before the thread came back to wait is counted as "
        "missed; no timer was armed for it, so it has no irq-latency."
    ),
    metrics=(
        Metric(
            name="latency",
            plural="latencies",
            unit="ns",
            signed=False,
            bound=Bound(example="period=1ms latency<=200us hardness=100%", preset="quick"),
        ),
        Metric(
            name="irq-latency",
            plural="irq-latencies",
            unit="ns",
            signed=False,
            space="kernel",
            bound=Bound(example="irq-latency<=50us hardness=100%", preset=None),
        ),
        Metric(
            name="user-latency",
            plural="user-latencies",
            unit="ns",
            signed=False,
            space="kernel",
            bound=Bound(example="user-latency<=200us hardness=100%", preset=None),
        ),
    ),
    missed="activations whose release time passed before the task came back to wait",
    pooled=True,
    pace=Pace(period="interval_ns", activations=1, count="count"),
    frequency=("latency", "irq-latency", "user-latency"),
    roles={},
    microbenchmark=False,
    cross_checked=frozenset({"cyclictest", "rtla", "xenomai-latency", "rtai-latency"}),
    alternatives=(frozenset({"duration", "count"}),),
)
