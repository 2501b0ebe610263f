# SPDX-License-Identifier: MIT
"""watch: latencies of the threads in a user's program, from the kernel's wake-up and switch tracepoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from rtgauge.probe.common_parameters import (
    DMA_LATENCY_OFF,
    LONGEST,
    DmaLatencyUs,
    Duration,
    StillParameters,
    TimedParameters,
    engine_options,
)
from rtgauge.probe.descriptor import TRACE_INSTANCE, Bound, Metric, Probe, Shown, Traced, command_line
from rtgauge.probe.explain_parameters import NAMES as EXPLAIN_NAMES
from rtgauge.probe.explain_parameters import ExplainParameters, explain_arguments, explain_cost_ns
from rtgauge.probe.points import parse_points, point_events, point_options
from rtgauge.units import parse_duration_ns
from rtgauge.validation import DurationNs

MOST_PID = 2**22
"""The kernel's PID_MAX_LIMIT (include/linux/threads.h)."""
COMM_BYTES = 15
"""The kernel's TASK_COMM_LEN (include/linux/sched.h) without the NUL."""


def named(command: Sequence[str]) -> str:
    """Return the content of /proc/PID/comm for a program that this command starts: at most 15 bytes."""
    name = "".join(letter for letter in Path(command[0]).name if letter.isprintable())
    return name.encode()[:COMM_BYTES].decode(errors="ignore") or "program"


class WatchParameters(ExplainParameters, TimedParameters, StillParameters):
    """Parameters of `watch`."""

    pid: int | None = Field(default=None, ge=1, le=MOST_PID, description="process ID of the program")
    program: str | None = Field(
        default=None,
        description="name of the program, as in /proc/PID/comm or as its executable file is named; only one "
        "running program may have this name",
    )
    threads: str | None = Field(
        default=None,
        description=(
            "names of the threads to watch, separated by commas; default: threads with a real-time policy, "
            "otherwise "
            "all"
        ),
    )
    cycle: str | None = Field(
        default=None,
        description=(
            "system call in which the loop waits for its next release: CALL or CALL:FD, such as "
            "epoll_wait:5; default: rtgauge finds the call itself"
        ),
    )
    period_ns: Duration | None = Field(
        default=None,
        description="period that the loop should have; default: the period in the requirement, if "
        "there is one",
    )
    points: str | None = Field(
        default=None,
        description=(
            "points of the program, one per line, in the order in which a cycle passes them: "
            "NAME=BINARY:SYMBOL; SYMBOL is a function, usdt:PROVIDER:NAME or 0xADDRESS; the part NAME runs "
            "from this point to the next"
        ),
    )
    point_budget_ns: DurationNs = Field(
        default=5_000, description="what one point may cost at most; otherwise rtgauge does not measure"
    )
    stacks: bool = Field(
        default=False,
        description="show where a real-time thread did what it should not do also at the first time, which "
        "costs more",
    )
    duration_ns: Duration = Field(
        default=10_000_000_000,
        description="how long to watch, e.g. 10s or 10min; the program may end earlier",
    )
    dma_latency_us: DmaLatencyUs = Field(
        default=DMA_LATENCY_OFF,
        description="allow the CPUs only C-states that they leave within this time, in us; off: allow "
        "all C-states",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.pid is None) == (self.program is None):
            raise ValueError("give pid or program")
        if self.program is not None and (not self.program.isprintable() or not 0 < len(self.program) < 256):
            raise ValueError("give the program's name: the one in /proc/PID/comm, or its file name")
        if self.cycle is not None and re.fullmatch(r"[a-z0-9_]{2,23}(:[0-9]{1,9})?", self.cycle) is None:
            raise ValueError(
                "give the system call as CALL or CALL:FD, such as clock_nanosleep or epoll_wait:5"
            )
        if self.threads is not None and (
            not self.threads.isprintable() or not all(0 < len(name) < 16 for name in self.threads.split(","))
        ):
            raise ValueError(
                "give the names of the threads, separated by commas, as in /proc/PID/task/TID/comm (1 to "
                "15 characters each)"
            )
        if self.points is not None:
            parse_points(self.points)
        self.check_explain()
        return self


class Watch(Probe[WatchParameters]):
    """Observes the threads of a program through the kernel."""

    def arguments(self, parameters: WatchParameters, samples_dir: str | None) -> list[str]:
        """Return the engine's command line."""
        return [
            *self._options(
                parameters,
                {
                    "trace_instance": TRACE_INSTANCE,
                    "samples_dir": samples_dir,
                    **point_options(parameters.points),
                },
            ),
            *explain_arguments(parameters, parameters.duration_ns, woken_by_others=True),
        ]

    def _options(self, parameters: WatchParameters, more: dict[str, Any]) -> list[str]:
        options = engine_options(parameters, {*EXPLAIN_NAMES, "points", "stacks"}) | more
        return [*command_line(self.name, options), *(["--stacks"] if parameters.stacks else [])]

    def points(self, parameters: WatchParameters) -> dict[str, tuple[str, str]]:
        """Return the points of the program, and the engine's own at which it measures their cost."""
        return point_events(parameters.points)

    def traces(self, parameters: WatchParameters) -> Traced | None:  # noqa: ARG002 - always the same
        """Return tracepoints."""
        return "tracepoints"

    def trial_arguments(self, parameters: WatchParameters) -> list[str]:
        """Return a command line that finds the program and its threads but records nothing."""
        return self._options(parameters, {})

    def expected_ns(self, parameters: WatchParameters) -> int | None:
        """Return the length (ns) of warm-up, measured phase, and the measurement of the events' cost; None if
        only the program's end ends the step.
        """
        if parameters.duration_ns == parse_duration_ns(LONGEST):
            return None
        cost_ns = explain_cost_ns(parameters, parameters.duration_ns)
        return parameters.duration_ns + parameters.warm_up_ns + cost_ns


PROBE = Watch(
    name="watch",
    order=95,
    help=(
        "latency, response and execution time of the loops in your own program, and what blocks and "
        "preempts them"
    ),
    about="""Watch the loops of your own program.

For each thread, the result shows its period, how long after its release each cycle starts and ends, which
releases it missed, what blocks and preempts it, and what delayed it most. You need not change or rebuild the
program. The command needs root and a kernel with tracefs.""",
    examples=(
        "--pid 1234 --duration 1min",
        '--require "period=1ms latency<=100us response<=500us" -- ./control --rate 1000',
        "--program control --duration 1min",
        "--pid 1234 --threads control,io --explain-above 200us --save",
        "--target ssh://board --pid 812",
        "--target ssh://board -- /opt/control --rate 1000",
    ),
    parameters=WatchParameters,
    method=(
        "The kernel's tracepoints for system calls, timers, wake-ups and switches show what each thread "
        "does. A release is the time for which the thread waits. If the thread is periodic, this is a "
        "point of its grid; otherwise it is the expiry of its timer, or the wake-up by another task. "
        "latency is the time from the release until the call in which the thread waits has returned. "
        "response is the time from the release until the thread waits for its next release. execution is "
        "the CPU time in between, and period is the time from one start to the next. Sleeps for anything "
        "else, such as a lock or a disk, are part of the response. A release for which the thread was not "
        "waiting counts as possibly late."
    ),
    metrics=(
        Metric(
            name="latency",
            plural="latencies",
            bound=Bound(example="latency<=100us hardness=100%", preset=None),
        ),
        Metric(
            name="response",
            plural="responses",
            bound=Bound(example="response<=500us hardness=100%", preset=None),
        ),
        Metric(
            name="part",
            plural="parts",
            is_delay=False,
            bound=Bound(example="part<=100us hardness=99%", preset=None),
        ),
        Metric(name="execution", plural="execution times", is_delay=False),
        Metric(name="period", plural="periods", is_delay=False),
        Metric(name="overrun", plural="overruns", is_delay=False, shown=False),
        Metric(name="uncertain", plural="uncertain responses", is_delay=False, shown=False),
        Metric(name="least-response", plural="least responses", is_delay=False, shown=False),
        Metric(name="gap", plural="gaps"),
    ),
    command=None,
    watches=True,
    shown=Shown(pooled=False),
    when_nothing=(
        "watch the program while it is working, watch it for longer (--duration), or watch other threads "
        "(--threads)"
    ),
)
