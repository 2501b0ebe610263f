# SPDX-License-Identifier: MIT
"""path: the cycle of a control loop with a device behind a network that only answers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import AfterValidator, Field, model_validator

from rtgauge.errors import InputError, MeasureError
from rtgauge.probe.common_parameters import PolicyParameters, StillParameters, TimedParameters, engine_options
from rtgauge.probe.descriptor import Bound, Metric, Pace, Probe, command_line
from rtgauge.probe.explain_parameters import NAMES as EXPLAIN_NAMES
from rtgauge.probe.explain_parameters import ExplainParameters, explain_arguments, explain_cost_ns
from rtgauge.units import format_bound
from rtgauge.validation import CpuList, DurationNs, between
from rtgauge_ext.network.far_end import FORMS, check_far_end, far_end_words, path_to, peer_of, resolved

NET_EVENTS = (
    "net/net_dev_queue,net/net_dev_start_xmit,net/net_dev_xmit,net/netif_rx,net/napi_gro_receive_entry,"
    "net/netif_receive_skb_entry,net/netif_receive_skb"
)
"""The kernel's events that show where a packet is, for --explain-events in addition to `default`."""
LEAST_TIMEOUT_NS = 100_000_000
MOST_CYCLES_OPEN = 65_536
"""The engine remembers this many cycles that wait for an answer."""


class PathParameters(ExplainParameters, PolicyParameters, TimedParameters, StillParameters):
    """Parameters of `path`."""

    alternatives: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"duration", "count"}),
        frozenset({"path", "peer"}),
    )

    path: Annotated[str, AfterValidator(check_far_end)] = Field(
        default="", description=f"far end that answers: {FORMS}"
    )
    peer: str | None = Field(
        default=None,
        exclude=True,
        description="short for path: a host, which answers ICMP echo requests, or a path",
    )
    interval_ns: Annotated[DurationNs, between("20us", "1min")] = Field(
        default=1_000_000, description="the cycle: time between two releases"
    )
    timeout_ns: Annotated[DurationNs, between("1ms", "1min")] = Field(
        default_factory=lambda given: max(LEAST_TIMEOUT_NS, given["interval_ns"]),
        description="an answer that comes later than this after its release counts as lost; default: 100ms, "
        "but at least the interval",
    )
    receive: Literal["block", "poll"] = Field(
        default="block",
        description="how the task waits for the answer: asleep (block), or looking all the time (poll)",
    )
    busy_poll_us: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="SO_BUSY_POLL, in us: how long a receive polls the network card itself",
    )
    socket_priority: int = Field(
        default=0, ge=0, le=15, description="SO_PRIORITY of the frames, by which queueing disciplines choose"
    )
    size: int = Field(
        default=0,
        ge=0,
        le=1472,
        description="bytes in a frame after its IP, UDP or Ethernet header; 0: as few as possible",
    )
    cpu: CpuList | None = Field(
        default=None, description="CPU of the task, the first of these; default: the first CPU"
    )
    count: int | None = Field(
        default=None, ge=1, le=2**60, description="number of cycles to measure, instead of a duration"
    )

    @model_validator(mode="before")
    @classmethod
    def _with_peer(cls, written: Any) -> Any:
        """Turn a peer into its path."""
        if not isinstance(written, dict):
            return written
        given = dict(cast("dict[str, Any]", written))
        peer = given.pop("peer", None)
        if peer is None:
            return given
        if "path" in given:
            raise ValueError("give path or peer, not both")
        return {**given, "path": path_to(str(peer))}

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.check_explain()
        if self.count is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or count, not both")
        if self.timeout_ns < self.interval_ns:
            raise ValueError("the timeout is shorter than the interval; give a longer one")
        if self.timeout_ns // self.interval_ns > MOST_CYCLES_OPEN:
            raise ValueError(f"the timeout is more than {MOST_CYCLES_OPEN:,} intervals; give a shorter one")
        return self

    @property
    def measured_ns(self) -> int:
        """The length of the measured phase."""
        return self.duration_ns if self.count is None else self.count * self.interval_ns


class Path(Probe[PathParameters]):
    """Measures the cycles of one task."""

    def arguments(self, parameters: PathParameters, samples_dir: str | None) -> list[str]:
        """Return the engine's command line. Raises InputError if nothing names the far end, and
        MeasureError if its name cannot be resolved.
        """
        options = {
            **engine_options(parameters, EXPLAIN_NAMES),
            "path": resolved(parameters.path),
            "samples_dir": samples_dir,
        }
        explain = explain_arguments(
            parameters, parameters.measured_ns, woken_by_others=True, more_events=NET_EVENTS
        )
        return [*command_line(self.name, options), *explain]

    def peer(self, parameters: PathParameters) -> str | None:
        """Return the interface, or the address of the far end; None if its name cannot be resolved."""
        try:
            return peer_of(resolved(parameters.path))
        except (InputError, MeasureError):
            return None

    def subject(self, parameters: PathParameters) -> str:
        """Return the cycle and the far end."""
        return f"a cycle of {format_bound(parameters.interval_ns)} with {far_end_words(parameters.path)}"

    def trial_arguments(self, parameters: PathParameters) -> list[str]:
        """Return the command line without the options for explaining."""
        return self.arguments(parameters.but(explain=False), None)

    def expected_ns(self, parameters: PathParameters) -> int:
        """Return the length of warm-up and measured phase, and of measuring the cost of the events, in ns."""
        measured_ns = parameters.measured_ns
        return measured_ns + parameters.warm_up_ns + explain_cost_ns(parameters, measured_ns)


PROBE = Path(
    name="path",
    divides="rtgauge_ext.network.late_answer:divided",
    blames="rtgauge_ext.network.late_cycles:blame",
    order=35,
    help=(
        "whether a control loop keeps its cycle if its device is behind a network; the device only has to "
        "answer"
    ),
    about="""Path: does a loop with a device behind a network keep its cycle, and where does the time go?

At each release, a task sends a frame and waits for the answer. The far end does not need rtgauge: it only
returns what it gets.""",
    examples=(
        "--peer 192.168.1.5",
        '--path udp:192.168.1.5:7 --interval 2ms --require "period=2ms response<=1ms"',
        "--path eth:eth1,02:00:00:00:00:01 --receive poll --socket-priority 6",
        "--path ethercat:eth1 --interval 1ms --duration 1min",
    ),
    parameters=PathParameters,
    method=(
        "A task sleeps until its release, sends a frame, and reads frames until the answer comes or the next "
        "release is due. Each frame carries a random number of the run and the number of its cycle. The "
        "response is the time from the release until the answer was read. The kernel's time stamps of "
        "departure and arrival split it into four parts that add up to it exactly: wake-up (from the release "
        "until the task sends), send (until the driver has the frame), wire and device (until the kernel has "
        "the answer), and receive (until the task has read it). An answer that comes after the next release "
        "is late; after the timeout it is lost, and counts as missed, like a cycle in which the task itself "
        "was too late to send. The jitter is how much the time between two departures differs from the cycle."
    ),
    metrics=(
        Metric(
            name="response",
            plural="responses",
            is_delay=False,  # the device may take as long as the kernel throttles
            bound=Bound(example="period=1ms response<=1ms hardness=99.9%", preset="path"),
        ),
        Metric(
            name="jitter",
            plural="jitters",
            signed=True,
            is_delay=False,
            bound=Bound(example="jitter<=50us hardness=99.9%", preset=None),
        ),
    ),
    missed="cycles without an answer: the answer was lost, or the task itself was too late to send",
    pace=Pace(period="interval_ns", activations=1, count="count", metrics=("response",)),
)
