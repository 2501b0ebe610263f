# SPDX-License-Identifier: MIT
"""wakeup: scheduling latency of a thread that sleeps until a set time (Delgado & Choi 2020, algorithm 1)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import (
    LONGEST,
    SPACE,
    CokernelParameters,
    Duration,
    Space,
    WarmUp,
    check_interval,
    engine_options,
)
from rtgauge.probe.descriptor import TRACE_INSTANCE, Bound, Metric, Pace, Probe, Traced, command_line
from rtgauge.probe.explain_parameters import NAMES as EXPLAIN_NAMES
from rtgauge.probe.explain_parameters import ExplainParameters, explain_arguments, explain_cost_ns
from rtgauge.units import NS_PER_UNIT, parse_duration_ns
from rtgauge.validation import DurationNs, between

LEAST_TIMERLAT_NS, MOST_TIMERLAT_NS = 100_000, 1_000_000_000
"""Intervals of timerlat (kernel/trace/trace_osnoise.c: timerlat_min_period, timerlat_max_period)."""

OF_USER_SPACE = frozenset({"timer", "phase"})
"""Parameters that have no effect with the kernel's timerlat tracer."""
MOST_WARM_UP_NS = 200_000_000


def _warm_up_ns(given: dict[str, Any]) -> int:
    """Return the default warm-up: a tenth of the measured time, but no longer than is always enough."""
    measured_ns = (
        given["count"] * given["interval_ns"] if given["count"] is not None else given["duration_ns"]
    )
    return min(MOST_WARM_UP_NS, measured_ns // 10)


class WakeupParameters(ExplainParameters, CokernelParameters):
    """Parameters of `wakeup`."""

    alternatives: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"duration", "count"}),)

    space: Space = SPACE
    interval_ns: DurationNs = Field(
        default=1_000_000,
        description="time between two releases of a thread; Delgado and Choi (2020) and Jo and Choi "
        "(2022) use 100us",
    )
    policy: Literal["fifo", "rr", "other", "deadline"] = Field(
        default="fifo", description="scheduling policy"
    )
    priority: int = Field(default=98, ge=1, le=99, description="real-time priority")
    timer: Literal["nanosleep", "timerfd"] = Field(
        default="nanosleep", description="how a thread waits for its release"
    )
    phase: Literal["random", "fixed"] = Field(
        default="random",
        description="when the first release comes, relative to the tick and the other CPUs: random, or "
        "fixed as in the papers",
    )
    count: int | None = Field(
        default=None, ge=1, le=2**60, description="activations to measure on each CPU, instead of a duration"
    )
    duration_ns: Duration = Field(default=10_000_000_000, description="measured time, e.g. 5s, 10min")
    warm_up_ns: WarmUp = Field(
        default_factory=_warm_up_ns,
        description=(
            "time at the beginning whose samples the figures leave out; default: a tenth of the measured "
            "time, at most 200ms"
        ),
    )
    window_ns: Annotated[DurationNs, between("10ms", "1h")] = Field(
        default=1_000_000_000,
        description="length of one window, for which the record keeps a histogram; a comparison needs "
        "at least 20 windows",
    )
    stop_at_ns: Duration | None = Field(
        default=None, description="end the measurement at the first latency above this, e.g. 200us"
    )

    @property
    def measured_ns(self) -> int:
        """The length of the measured phase."""
        return self.duration_ns if self.count is None else self.count * self.interval_ns

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.interval_ns <= 0:
            raise ValueError("the interval must be longer than 0; give one such as 1ms or 100us")
        check_interval("interval", self.interval_ns)
        if self.interval_ns > 3600 * 10**9:
            raise ValueError("the interval must not be longer than 1h")
        if self.count is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or count, not both")
        if self.count is not None and self.count * self.interval_ns > parse_duration_ns(LONGEST):
            raise ValueError(f"this many activations would take longer than {LONGEST}; give a smaller count")
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
                "in kernel space, give an interval from 100us to 1s in whole us, because the kernel's "
                "timerlat tracer accepts only these"
            )
        if self.policy == "deadline":
            raise ValueError("in kernel space, the policy must be fifo, rr or other")
        if self.explain:
            raise ValueError("explain works only in user space; leave out explain, or give space user")
        for name, value, only in (("timer", self.timer, "nanosleep"), ("phase", self.phase, "random")):
            if value != only:
                raise ValueError(
                    f"{name} works only in user space, because the kernel's timerlat tracer does not let "
                    f"rtgauge choose it; leave {name} out"
                )


class Wakeup(Probe[WakeupParameters]):
    """Measures scheduling latency with a thread on each CPU."""

    def arguments(self, parameters: WakeupParameters, samples_dir: str | None) -> list[str]:
        """Return the engine's command line."""
        in_kernel = parameters.space == "kernel"
        options = engine_options(parameters, EXPLAIN_NAMES | OF_USER_SPACE if in_kernel else EXPLAIN_NAMES)
        traced = {"trace_instance": TRACE_INSTANCE if in_kernel else None}
        return [
            *command_line(self.name, {**options, **traced, "samples_dir": samples_dir}),
            *explain_arguments(parameters, parameters.measured_ns),
        ]

    def traces(self, parameters: WakeupParameters) -> Traced | None:
        """Return the timerlat tracer in kernel space."""
        return "timerlat" if parameters.space == "kernel" else None

    def trial_arguments(self, parameters: WakeupParameters) -> list[str]:
        """Return the command line for user space, not explained. CPUs, policy and limits are the same."""
        return self.arguments(parameters.but(space="user", explain=False), None)

    def expected_ns(self, parameters: WakeupParameters) -> int:
        """Return the length (ns) of warm-up, measured phase, and the measurement of the events' cost."""
        measured_ns = parameters.measured_ns
        return measured_ns + parameters.warm_up_ns + explain_cost_ns(parameters, measured_ns)


PROBE = Wakeup(
    name="wakeup",
    order=10,
    help="scheduling latency: time from when a thread should wake to its first instruction, with one "
    "thread on each CPU",
    about="""Scheduling latency: how late does a thread wake?

On each CPU, one thread sleeps until a given time and reads the clock when it runs again. The difference is
the latency.""",
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
        "On each CPU, a thread sleeps until an absolute time (its release) and reads the clock as soon as "
        "it runs again. The latency is the time in between. If a release passes before the thread is "
        "waiting for it, the activation is counted as missed and has no latency."
    ),
    methods={
        "kernel": (
            "In kernel space, the kernel's timerlat tracer measures. On each CPU, a timer expires at each "
            "release, its interrupt handler wakes a thread, and both read the clock. irq-latency is the "
            "time from the release to the handler; latency is the time from the release to the thread in "
            "the kernel. If the kernel has timerlat_fd (Linux 6.5), the thread belongs to the engine, and "
            "user-latency is the time from the release to its return to user space, including the next "
            "system call. Otherwise the thread is a kernel thread. rtgauge reads every event from the "
            "kernel's buffer and counts lost ones. If a release passes before the thread is waiting for "
            "it, the activation is counted as missed. No timer is armed for it, so it has no irq-latency."
        )
    },
    metrics=(
        Metric(
            name="latency",
            plural="latencies",
            bound=Bound(example="period=1ms latency<=200us hardness=100%", preset="quick"),
        ),
        Metric(
            name="irq-latency",
            plural="irq-latencies",
            space="kernel",
            bound=Bound(example="irq-latency<=50us hardness=100%", preset=None),
        ),
        Metric(
            name="user-latency",
            plural="user-latencies",
            space="kernel",
            bound=Bound(example="user-latency<=200us hardness=100%", preset=None),
        ),
    ),
    missed="activations whose release time passed before the task came back to wait",
    pace=Pace(
        period="interval_ns",
        activations=1,
        count="count",
        metrics=("latency", "irq-latency", "user-latency"),
    ),
    cross_checked=frozenset({"cyclictest", "rtla", "xenomai-latency", "rtai-latency"}),
)
