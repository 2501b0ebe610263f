# SPDX-License-Identifier: MIT
"""What every measuring probe takes: CPUs, policy, length, how the machine is held still."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from rtgauge.probe.descriptor import Parameters, Probe
from rtgauge.units import parse_duration_ns
from rtgauge.validation import CpuList, DurationNs, between

NO_LIMIT_US = 2**31 - 1
LONGEST = "3650d"
MOST_EARLY_NS = 10**9


DMA_LATENCY_OFF = -1


def _dma_latency(value: Any) -> Any:
    if value == "off":
        return DMA_LATENCY_OFF
    text = str(value).removesuffix("us")
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > NO_LIMIT_US:
        raise ValueError("write a latency in us such as 0, or off")
    return int(text)


def _on_off(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if value not in ("on", "off"):
        raise ValueError("write on or off")
    return value == "on"


DmaLatencyUs = Annotated[int, BeforeValidator(_dma_latency)]
"""A latency in us, or `off` (DMA_LATENCY_OFF inside)."""
OnOff = Annotated[bool, BeforeValidator(_on_off)]
"""`on` or `off`; a bool inside."""


Space = Literal["user", "kernel"]
"""Where the measured task runs."""
SPACE: Any = Field(default="user", alias="space", description="where the task runs: user, or kernel")
"""For probes that measure in kernel space too."""

Runtime = Literal["linux", "cobalt", "rtai", "auto"]
"""What the measured threads run on: Linux, or a co-kernel beside it.

Each co-kernel has an engine of its own (target/engine_path.py); auto is replaced
by one of the others when the target is known (runner/choice.py)."""
RT: Any = Field(
    default="linux",
    alias="rt",
    description=(
        "what the measured threads run on: linux, cobalt (Xenomai 3 on the target), rtai, or auto: the "
        "target's co-kernel if it has one"
    ),
)
"""For probes that a co-kernel's engine has too."""


def _rtai_latency(value: Any, info: ValidationInfo) -> Any:
    if value is None:
        return None
    if info.data.get("rt") != "rtai":
        raise ValueError("it works only with rt rtai: leave it out")
    parts = str(value).split(",")
    if len(parts) != 2:
        raise ValueError("write two durations, of user and of kernel space, like 2us,1us")
    numbers = [parse_duration_ns(part) for part in parts]
    if not all(0 < number <= MOST_EARLY_NS for number in numbers):
        raise ValueError("each of the two is longer than 0 and at most 1s")
    return ",".join(f"{number}ns" for number in numbers)


RtaiLatency = Annotated[str | None, BeforeValidator(_rtai_latency)]
"""By how much RTAI's timers fire early, `USER,KERNEL`; in ns inside."""
RTAI_LATENCY: Any = Field(
    default=None,
    alias="rtai-latency",
    description=(
        "with rt rtai: how early its timers fire in user and kernel space, e.g. 2us,1us; default: RTAI "
        "calibrates itself"
    ),
)
"""Behind `rt`."""

FIRST_CPU: Any = Field(
    default=None,
    alias="cpu",
    description="the first of these CPUs is measured; a second task takes its CPU from the others",
)
"""For probes that measure on one CPU."""


class MachineParameters(Parameters):
    """Where a probe measures, and how the machine is held still meanwhile."""

    cpu: CpuList | None = Field(
        default=None,
        alias="cpu",
        description="CPUs to measure, e.g. 0-3,6; default: all CPUs that this process may use",
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


class CokernelParameters(MachineParameters):
    """The same of a probe that a co-kernel's engine has too."""

    rt: Runtime = RT
    rtai_latency: RtaiLatency = RTAI_LATENCY


class MeasuringParameters(CokernelParameters):
    """Parameters of a probe that measures the cost of something again and again."""

    policy: Literal["fifo", "rr", "other"] = Field(
        default="fifo", alias="policy", description="scheduling policy"
    )
    priority: int = Field(default=98, alias="priority", ge=1, le=99, description="real-time priority")
    duration_ns: Annotated[DurationNs, between("1ns", LONGEST)] = Field(
        default=5_000_000_000, alias="duration", description="measured time, e.g. 5s, 10min"
    )
    count: int | None = Field(
        default=None, alias="count", ge=1, le=2**60, description="samples to measure, instead of a duration"
    )
    warm_up_ns: Annotated[DurationNs, between("0s", "1h")] = Field(
        default=200_000_000, alias="warm-up", description="time at the beginning that is counted separately"
    )

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.count is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or count, not both")
        return self


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuringProbe(Probe):
    """A probe with the parameters above and more; the engine has an option of the same name for each."""

    alternatives: tuple[frozenset[str], ...] = (frozenset({"duration", "count"}),)
    count_lasts_ns: int = 10_000
    """About how long one sample takes, with the rests; for the time that is left only."""

    def arguments(self, parameters: dict[str, Any], samples_dir: str | None) -> list[str]:
        """The engine's command line."""
        given = {
            name: value
            for name, value in parameters.items()
            if value is not None and name not in ("samples", "rt", "rtai_latency")
        }
        if "count" in given:
            del given["duration_ns"]
        if samples_dir is not None:
            given["samples_dir"] = samples_dir
        written = {
            name: ("on" if value else "off") if isinstance(value, bool) else value
            for name, value in given.items()
        }
        return [self.name, *(f"--{name.replace('_', '-')}={value}" for name, value in written.items())]

    def expected_ns(self, parameters: dict[str, Any]) -> int:
        """Warm-up and measured phase."""
        measured: int = (
            parameters["count"] * self.count_lasts_ns if parameters["count"] else parameters["duration_ns"]
        )
        return measured + int(parameters["warm_up_ns"])
