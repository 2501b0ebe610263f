# SPDX-License-Identifier: MIT
"""response: time from a stimulus on a line to the answer of a waiting task (Brown & Martin 2010, 3.4; Adam et
al. 2021, alg. A1).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field, model_validator

from rtgauge.probe.descriptor import TRACE_INSTANCE, Bound, Metric, Pace, Shown, Traced
from rtgauge.units import NS_PER_S
from rtgauge.validation import DurationNs, between
from rtgauge_ext.signal.instrument_address import is_latmon
from rtgauge_ext.signal.parameters import (
    DIFFERENCE,
    NO_LINE,
    Role,
    SignalParameters,
    SignalProbe,
    check_context,
    check_instrument_time,
    path_in_kernel,
)

LEAST_ALONE_NS, MOST_ALONE_NS = 10_000, 60_000_000_000
"""Bounds of the interval if the kernel module makes the stimuli itself, without a line."""
ANSWER_NS = 20_000
"""Estimated length of an answer, used only for the time estimate."""


class ResponseParameters(SignalParameters):
    """Parameters of `response`."""

    measured_role: ClassVar[Role] = "slave"
    of_user_space: ClassVar[frozenset[str]] = frozenset({"trace-parts"})
    alternatives: ClassVar[tuple[frozenset[str], ...]] = (
        *SignalParameters.alternatives,
        frozenset({"interval", "interval-min"}),
        frozenset({"interval", "interval-max"}),
    )

    context: Literal["irq", "irq-thread", "thread", "irq-default"] | None = Field(
        default=None,
        description="in kernel space, what answers the stimulus: irq (the top half of the interrupt, "
        "the default), irq-thread (a threaded handler), thread (a FIFO kernel thread that "
        "the top half wakes) or irq-default (an ordinary handler, which PREEMPT_RT runs in "
        "a thread)",
    )
    interval_ns: Annotated[DurationNs, between("1us", "1h")] | None = Field(
        default=None,
        description="fixed time from one stimulus to the next, e.g. 10ms, instead of a random one",
    )
    interval_min_ns: Annotated[DurationNs, between("1ns", "1h")] = Field(
        default=3_000, description="shortest random time from an answer to the next stimulus"
    )
    interval_max_ns: Annotated[DurationNs, between("1ns", "1h")] = Field(
        default=7_071_000, description="longest random time from an answer to the next stimulus"
    )
    timeout_ns: Annotated[DurationNs, between("1ms", "1h")] = Field(
        default=100_000_000, description="how long to wait for an answer before it counts as lost"
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        lt=2**63,
        description="seed of the random intervals; the same seed draws the same intervals",
    )
    trace_parts: bool = Field(
        default=False,
        description="split the response of a task in user space into parts, by the kernel's tracepoints irq, "
        "softirq and sched",
    )

    @model_validator(mode="before")
    @classmethod
    def _least_interval(cls, written: Any) -> Any:
        """Without a line, raise the shortest interval: the CPU needs time between the module's stimuli."""
        if not isinstance(written, dict):
            return written
        given = cast("dict[str, Any]", written)
        alone = given.get("space") == "kernel" and given.get("path", path_in_kernel(given)) == NO_LINE
        return (
            {"interval-min": "10us", **given}
            if alone and not {"interval", "interval-min"} & given.keys()
            else given
        )

    @model_validator(mode="after")
    def _check_alone(self) -> Self:
        if self.space != "kernel" or self.path != NO_LINE:
            return self
        if self.rt == "rtai":
            raise ValueError(
                "in kernel space, response works only with rt linux or cobalt; choose one of these, or "
                "give space user"
            )
        if self.context not in ("irq", "thread"):
            raise ValueError(
                f"context {self.context} answers the interrupt of a line, which path none lacks; give "
                "context irq or thread"
            )
        if (
            self.interval_min_ns if self.interval_ns is None else self.interval_ns
        ) < LEAST_ALONE_NS or self.longest_ns > MOST_ALONE_NS:
            raise ValueError(
                "with path none, the time from one stimulus to the next must be from 10us to 1min"
            )
        return self

    @property
    def longest_ns(self) -> int:
        """The longest time between two stimuli."""
        return self.interval_max_ns if self.interval_ns is None else self.interval_ns

    @model_validator(mode="after")
    def _check_intervals(self) -> Self:
        check_context(self.space, self.context)
        if self.interval_ns is not None and self.model_fields_set & {"interval_min_ns", "interval_max_ns"}:
            raise ValueError("give either interval, or interval-min and interval-max")
        if self.interval_min_ns > self.interval_max_ns:
            raise ValueError("interval-min is longer than interval-max; give a shorter interval-min")
        if self.instrument is not None:
            self._check_instrument_times(self.instrument)
        if self.trace_parts and self.role == "master":
            raise ValueError("trace-parts splits the response of the slave; give role slave or both")
        return self

    def _check_instrument_times(self, instrument: str) -> None:
        if is_latmon(instrument):
            if self.interval_ns is None or self.interval_ns % 1_000 or self.interval_ns > NS_PER_S:
                raise ValueError(
                    "a latmon sends stimuli at a fixed interval in whole us; give an interval of 1us to 1s"
                )
            return
        check_instrument_time("timeout", self.timeout_ns)
        if self.interval_ns is not None:
            check_instrument_time("interval", self.interval_ns)
        else:
            check_instrument_time("interval-min", self.interval_min_ns)
            check_instrument_time("interval-max", self.interval_max_ns)


class Response(SignalProbe[ResponseParameters]):
    """Sends a stimulus and waits for its answer, again and again."""

    def options(self, parameters: ResponseParameters) -> dict[str, Any]:
        """Return the engine's options: a fixed interval, or a random one."""
        options = super().options(parameters)
        if parameters.interval_ns is not None:
            del options["interval_min_ns"], options["interval_max_ns"]
        traced = TRACE_INSTANCE if options.pop("trace_parts") else None
        return {**options, "trace_instance": traced}

    def traces(self, parameters: ResponseParameters) -> Traced | None:
        """Return tracepoints, if the response is split into parts."""
        return "tracepoints" if parameters.trace_parts else None

    def trial_arguments(self, parameters: ResponseParameters) -> list[str]:
        """Return the command line without splitting into parts, and without the options for explaining."""
        return super().trial_arguments(parameters.but(trace_parts=False))

    def of_peer(self, parameters: ResponseParameters) -> ResponseParameters:
        """Return the parameters without tracing, which concerns only the target."""
        return super().of_peer(parameters).but(trace_parts=False)

    def cycle_ns(self, parameters: ResponseParameters) -> int:
        """Return a cycle's time in ns: the fixed interval, or the mean random interval plus an answer."""
        if parameters.interval_ns is not None:
            return parameters.interval_ns
        return (parameters.interval_min_ns + parameters.interval_max_ns) // 2 + ANSWER_NS


PROBE = Response(
    name="response",
    order=30,
    help="time from a stimulus on a line until a task that waits for it has answered",
    about="""Response: how long does a task that waits for a stimulus on a line take to answer it?

A master sends stimuli and measures, and a slave answers. They are two processes on this machine, or run on
two machines.""",
    examples=(
        "--cycles 100000",
        "--path loop:pipe --interval 10ms --load network",
        "--space kernel --context irq-thread --load cpu",
        "--rt cobalt --space kernel --context thread --target lab:xenomai",
        "--path gpio:/dev/gpiochip0:17,27 --role master",
        "--path udp:192.168.1.5:7000 --role slave --duration 1h",
        "--path udp:192.168.1.5:7000 --target ssh://board --peer local --load cpu",
        "--path gpio:gpiochip0:27,17 --instrument serial:/dev/ttyACM0 --interval 10ms",
    ),
    parameters=ResponseParameters,
    method=(
        "A master reads the clock, makes an edge on a line (the stimulus) and waits. A slave that waits "
        "for this edge answers at once with an edge of its own, and the master reads the clock again. The "
        "response is the difference between the two readings. The time from one stimulus to the next is "
        "random, or fixed. If the answer does not come within the timeout, the stimulus is lost. If the "
        "previous stimulus is still unanswered when the next one is due, that one is skipped. Both count "
        "as missed. If the master is too late to make a stimulus, this is counted separately, because the "
        "slave did not lose it. If an instrument is the master, it makes the stimulus and time-stamps both "
        "edges with its own clock, in steps of 8 ns; what the slave measures itself is then called the "
        "inner view."
    ),
    methods={
        "kernel": (
            "In kernel space, the slave is a kernel module. The top half of its interrupt answers (context "
            "irq), or a threaded handler (irq-thread), a FIFO kernel thread that the top half wakes "
            "(thread), or an ordinary handler, which PREEMPT_RT runs in a thread (irq-default). The kernel "
            "time-stamps each step. The master runs in user space, so the response that it measures "
            "includes its own share; the response on the wire does not. With path none, the module uses no "
            "line: a Linux timer raises the interrupt of the module on the same CPU, and the response is "
            "the time from there to a time stamp that the module takes as its answer. On Cobalt, the "
            "interrupt and the thread belong to the co-kernel (an injected interrupt of Dovetail, an RTDM "
            "task)."
        )
    },
    kernel_module="rtgauge_response",
    woken_by_others=True,
    metrics=(
        Metric(
            name="response",
            plural="responses",
            bound=Bound(example="response<=500us hardness=99.9%", preset="brown2010"),
        ),
        DIFFERENCE,
    ),
    missed=(
        "stimuli that the slave did not answer in time, or that were skipped because the previous answer "
        "was still missing"
    ),
    pace=Pace(period="interval_ns", activations=1, count="cycles", metrics=("response",)),
    shown=Shown(
        roles={
            "master": "by the master",
            "slave": "by the slave",
            "wire": "on the wire",
            "instrument": "from outside",
        }
    ),
    instrument_metric="response",
)
