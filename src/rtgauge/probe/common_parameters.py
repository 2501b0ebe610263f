# SPDX-License-Identifier: MIT
"""The parameters that measuring probes share: CPUs, policy, duration, and how to keep the machine still."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from rtgauge.record.probe_parameters import Parameters
from rtgauge.units import format_duration, parse_duration_ns
from rtgauge.validation import CpuList, DurationNs, between

NO_LIMIT_US = 2**31 - 1
LONGEST = "3650d"
MOST_EARLY_NS = 10**9
LEAST_INTERVAL_NS = 5_000
"""The shortest interval. A wake-up by a timer takes about this long on a fast machine."""


DMA_LATENCY_OFF = -1


def _dma_latency(value: Any) -> Any:
    if value == "off":
        return DMA_LATENCY_OFF
    text = str(value).removesuffix("us")
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > NO_LIMIT_US:
        raise ValueError("give a latency in us, such as 0, or give off")
    return int(text)


def _on_off(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if value not in ("on", "off"):
        raise ValueError("give on or off")
    return value == "on"


def check_interval(what: str, interval_ns: int) -> None:
    """Raise ValueError if a thread could not sleep in so short an interval; `what` names the interval."""
    if interval_ns < LEAST_INTERVAL_NS:
        raise ValueError(
            f"the {what} of {format_duration(interval_ns)} is shorter than a wake-up takes, so the thread "
            f"would never sleep; give at least {format_duration(LEAST_INTERVAL_NS)}"
        )


DmaLatencyUs = Annotated[int, BeforeValidator(_dma_latency)]
"""A C-state exit latency in us; `off` becomes DMA_LATENCY_OFF."""
OnOff = Annotated[bool, BeforeValidator(_on_off)]
"""`on` or `off`, as a bool."""


Space = Literal["user", "kernel"]
"""The space that the measured task runs in."""
SPACE: Any = Field(default="user", description="where the task runs: user, or kernel")
"""The parameter of probes that also measure in kernel space."""

Runtime = Literal["linux", "cobalt", "rtai", "auto"]
"""The runtime of the measured threads: Linux, or a co-kernel. Each co-kernel has its own engine
(target/engine_path.py). Once the target is known, `auto` becomes one of the other three (runner/choice.py).
"""
RT: Any = Field(
    default="linux",
    description=(
        "kernel that schedules the measured threads: linux, cobalt (Xenomai 3), rtai, or auto (the "
        "co-kernel of the target if it has one, otherwise linux)"
    ),
)
"""The parameter of probes that the co-kernels' engines also have."""


def _rtai_latency(value: Any, info: ValidationInfo) -> Any:
    if value is None:
        return None
    if info.data.get("rt") != "rtai":
        raise ValueError("only rt rtai has this parameter; leave rtai-latency out")
    parts = str(value).split(",")
    if len(parts) != 2:
        raise ValueError("give two durations, one for user space and one for kernel space, such as 2us,1us")
    numbers = [parse_duration_ns(part) for part in parts]
    if not all(0 < number <= MOST_EARLY_NS for number in numbers):
        raise ValueError("each of the two durations must be longer than 0 and at most 1s")
    return ",".join(f"{number}ns" for number in numbers)


RtaiLatency = Annotated[str | None, BeforeValidator(_rtai_latency)]
"""How early RTAI's timers fire, as `USER,KERNEL`; parsed into ns."""
RTAI_LATENCY: Any = Field(
    default=None,
    description=(
        "with rt rtai, how early RTAI sets its timers in user and kernel space, e.g. 2us,1us; default: "
        "RTAI finds these times itself"
    ),
)
"""The parameter with these times. A model must declare `rt` before it."""


Duration = Annotated[DurationNs, between("1ns", LONGEST)]
"""The measured time."""
WarmUp = Annotated[DurationNs, between("0s", "1h")]


class StillParameters(Parameters):
    """How to keep the machine still during a measurement, and whether to keep the samples."""

    dma_latency_us: DmaLatencyUs = Field(
        default=0,
        description="allow the CPUs only C-states that they leave within this time, in us; off: allow "
        "all C-states",
    )
    memory_lock: OnOff = Field(
        default=True,
        description="lock the memory of the measuring program, so that page faults do not add to latencies",
    )
    samples: bool = Field(default=False, description="keep every raw sample")


class RuntimeParameters(StillParameters):
    """StillParameters of a probe that the co-kernels' engines also have."""

    rt: Runtime = RT
    rtai_latency: RtaiLatency = RTAI_LATENCY


class CokernelParameters(RuntimeParameters):
    """RuntimeParameters of a probe that measures on CPUs."""

    cpu: CpuList | None = Field(
        default=None, description="CPUs to measure, e.g. 0-3,6; default: all CPUs that this process may use"
    )


class SingleCpuParameters(CokernelParameters):
    """CokernelParameters of a probe that measures on one CPU."""

    cpu: CpuList | None = Field(
        default=None,
        description="rtgauge measures on the first of these CPUs; a second task may use the others",
    )


class TimedParameters(Parameters):
    """How long a probe measures."""

    duration_ns: Duration = Field(default=10_000_000_000, description="measured time, e.g. 5s, 10min")
    warm_up_ns: WarmUp = Field(
        default=200_000_000, description=("time at the beginning whose samples the figures leave out")
    )


class PolicyParameters(Parameters):
    """The policy and the priority of the measured tasks."""

    policy: Literal["fifo", "rr", "other"] = Field(default="fifo", description="scheduling policy")
    priority: int = Field(default=98, ge=1, le=99, description="real-time priority")


class MeasuringParameters(PolicyParameters, TimedParameters, CokernelParameters):
    """The parameters of a probe that measures the cost of an operation again and again."""

    alternatives: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"duration", "count"}),)

    duration_ns: Duration = Field(default=5_000_000_000, description="measured time, e.g. 5s, 10min")
    count: int | None = Field(
        default=None, ge=1, le=2**60, description="number of samples to measure, instead of a duration"
    )

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.count is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or count, not both")
        return self


NOT_THE_ENGINES = frozenset({"samples", "rt", "rtai_latency"})
"""Parameters that are not options of the engine."""
LENGTHS = ("count", "cycles", "steps")
"""Parameters that say how much to measure, instead of how long."""


def engine_options(parameters: Parameters, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the engine's options, which have the parameters' names. A count replaces the duration."""
    counted = any(parameters.get(name) is not None for name in LENGTHS)
    left_out = {*NOT_THE_ENGINES, *but, *(("duration_ns",) if counted else ())}
    return {name: value for name, value in parameters.values.items() if name not in left_out}
