# SPDX-License-Identifier: MIT
"""The parameters that all probes on a signal path share: path, roles and their targets, CPUs, duration."""

from __future__ import annotations

import ipaddress
import re
import socket
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, cast

from pydantic import AfterValidator, Field, model_validator

from rtgauge.errors import InputError, MeasureError
from rtgauge.probe import probe_registry as probes
from rtgauge.probe.common_parameters import (
    LONGEST,
    SPACE,
    CokernelParameters,
    PolicyParameters,
    Space,
    TimedParameters,
    engine_options,
)
from rtgauge.probe.descriptor import Metric, Probe, command_line
from rtgauge.probe.explain_parameters import NAMES as EXPLAIN_NAMES
from rtgauge.probe.explain_parameters import ExplainParameters, explain_arguments, explain_cost_ns
from rtgauge.record.model import StepKey
from rtgauge.target.address import target_name
from rtgauge.units import MAX_CPU, format_duration, parse_duration_ns
from rtgauge.validation import CpuList, DurationNs, between
from rtgauge_ext.signal.instrument_address import check_address, is_latmon

if TYPE_CHECKING:
    from rtgauge.target.target_protocol import Target

ON_COKERNELS = "loop:mqueue"
"""A path that keeps user-space tasks on the co-kernel. Linux has it too."""
LOOPS = ("loop:eventfd", "loop:pipe", "loop:socketpair", ON_COKERNELS, "loop:udp")
UDP = re.compile(r"udp:(?:\[([^\]\s]{1,80})\]|([^:\[\]\s]{1,253})):([0-9]{1,5})")
GPIO_OPTIONS = ("bias-as-is", "bias-disabled", "pull-up", "pull-down", "active-low")
GPIO = re.compile(r"gpio:([^:,]{1,63}):([^:,]{1,63}(?:,[^:,]{1,63}){0,3})(?::([a-z,-]{1,100}))?")
RTDM = re.compile(r"rtdm:[^:,/\s]{1,63}:[0-9]{1,9}(?:,[0-9]{1,9}){0,3}")
"""GPIO lines of an RTDM driver: each N stands for /dev/rtdm/CHIP/gpioN."""

WIRE = "wire"
"""Connected lines of the kernel module rtgauge_wire, which replace GPIO lines if a machine has none."""
DIFFERENCE = Metric(name="difference", plural="differences", signed=True, is_delay=False)
"""For a step on the wire: a task's own measurement minus the one from the wire's time stamps."""
NO_LINE = "none"
"""There is no line: a task in the kernel only takes time stamps."""


def check_path(text: str) -> str:
    """Return the signal path if it is valid (README.md). Raises ValueError, with the notation, if not."""
    if not text.isprintable():
        raise ValueError("a path may contain only printable characters")
    kind = text.partition(":")[0]
    if kind == "udp":
        match = UDP.fullmatch(text)
        if match is None or not 1 <= int(match[3]) <= 65535:
            raise ValueError(
                f"'{text[:100]}' is not a valid path; write udp:HOST:PORT, such as udp:board:7000 or "
                "udp:[fe80::1%eth0]:7000"
            )
    elif kind == "gpio":
        match = GPIO.fullmatch(text)
        if match is None:
            raise ValueError(
                f"'{text[:100]}' is not a valid path; write gpio:CHIP:LINES, such as "
                "gpio:/dev/gpiochip0:17,27"
            )
        for option in match[3].split(",") if match[3] else ():
            if option not in GPIO_OPTIONS:
                raise ValueError(
                    f"'{text[:100]}' has an unknown option; choose from {', '.join(GPIO_OPTIONS)}"
                )
    elif kind == "rtdm":
        if RTDM.fullmatch(text) is None:
            raise ValueError(
                f"'{text[:100]}' is not a valid path; write rtdm:CHIP:LINES, such as "
                "rtdm:pinctrl-bcm2835:17,27 for /dev/rtdm/pinctrl-bcm2835/gpio17 and gpio27"
            )
    elif text not in (*LOOPS, WIRE, NO_LINE):
        raise ValueError(
            f"'{text[:100]}' is not a signal path; give {', '.join(LOOPS)}, udp:HOST:PORT, gpio:CHIP:LINES, "
            f"rtdm:CHIP:LINES or {WIRE}"
        )
    return text


def resolved(path: str) -> str:
    """Return the path with its host name resolved to an address, because the engine does not resolve names.
    Raises MeasureError if the host is unknown.
    """
    match = UDP.fullmatch(path)
    if match is None:
        return path
    host = match[1] or match[2]
    try:
        address = str(ipaddress.ip_address(host))
    except ValueError:
        try:
            answers = socket.getaddrinfo(host, int(match[3]), type=socket.SOCK_DGRAM)
        except OSError as error:
            reason = error.strerror if isinstance(error, socket.gaierror) else error
            raise MeasureError(
                f"path {path}: this machine cannot find the address of the host {host} ({reason}); give the "
                "address itself: udp:ADDRESS:PORT"
            ) from None
        address = str(answers[0][4][0])
    return f"udp:[{address}]:{match[3]}" if ":" in address else f"udp:{address}:{match[3]}"


def check_peer(text: str) -> str:
    """Return a target's name in its canonical spelling. Raises ValueError if it does not name a target."""
    try:
        return target_name(text)
    except InputError as error:
        raise ValueError(str(error)) from None


def check_instrument(text: str) -> str:
    """Return an instrument's address unchanged if it is valid. Raises ValueError, with the notation,
    otherwise.
    """
    try:
        return check_address(text)
    except InputError as error:
        raise ValueError(str(error)) from None


INSTRUMENT_NS = (128, 17_000_000_000)
"""The shortest and longest time that fits the instrument's 31 bits of ticks."""


def check_instrument_time(name: str, time_ns: int) -> None:
    """Raise ValueError if the instrument cannot be set to this time."""
    shortest, longest = INSTRUMENT_NS
    if not shortest <= time_ns <= longest:
        raise ValueError(
            f"{name} of {format_duration(time_ns)} is outside the range of the instrument; give "
            f"{format_duration(shortest)} to {format_duration(longest)}"
        )


Role = Literal["master", "slave"]


def other_role(role: str) -> Role:
    """Return the opposite role."""
    return "slave" if role == "master" else "master"


def path_in_kernel(written: Mapping[str, Any]) -> str:
    """Return the default path in kernel space: the wire, or no line for RTAI, which has no wire."""
    return WIRE if written.get("rt", "linux") in ("linux", "cobalt") else NO_LINE


class SignalParameters(ExplainParameters, PolicyParameters, TimedParameters, CokernelParameters):
    """Parameters of a probe on a signal path."""

    measured_role: ClassVar[Role]
    """The role of the task that the probe is about. The target plays it if its peer plays the other role."""
    of_user_space: ClassVar[frozenset[str]]
    """Parameters that have no effect in kernel space, and are ignored there."""
    alternatives: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"duration", "cycles"}),)

    cpu: CpuList | None = Field(
        default=None, description="CPU for the master; if this machine is only the slave, CPU for the slave"
    )
    space: Space = SPACE
    path: Annotated[str, AfterValidator(check_path)] = Field(
        default="loop:eventfd",
        description="signal path between master and slave: loop:KIND, udp:HOST:PORT, gpio:CHIP:LINES, "
        "rtdm:CHIP:LINES (on Cobalt) or wire (a virtual wire, made by a kernel module)",
    )
    role: Literal["both", "master", "slave"] = Field(
        default="both",
        description="role of this machine: master, slave, or both (two processes, each on its own CPU). "
        "With a peer, it defaults to the role of the measured task",
    )
    slave_cpu: int | None = Field(
        default=None,
        ge=0,
        le=MAX_CPU,
        description="CPU of the slave with role both; default: a CPU on another core",
    )
    peer: Annotated[str, AfterValidator(check_peer)] | None = Field(
        default=None, exclude=True, description="target that plays the other role, e.g. local or ssh://desk"
    )
    peer_path: Annotated[str, AfterValidator(check_path)] | None = Field(
        default=None, description="how the peer names the signal path; default: the same as path"
    )
    peer_cpu: CpuList | None = Field(default=None, description="CPU on the peer for the other role")
    instrument: Annotated[str, AfterValidator(check_instrument)] | None = Field(
        default=None,
        description="instrument that measures from outside: serial:/dev/ttyACM0, serial:ID or latmon:HOST",
    )
    wire_offset_ns: Annotated[DurationNs, between("0s", "1ms")] | None = Field(
        default=None,
        description="latency of the wires to the instrument, as `rtgauge instrument selftest --wire` "
        "measured it; rtgauge shows it with the figures, but never subtracts it",
    )
    cycles: int | None = Field(
        default=None,
        ge=1,
        le=2**60,
        description="number of edges of the master to measure, instead of a duration",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_role(cls, written: Any) -> Any:
        """Fill in defaults. With a peer or an instrument, the target plays the role that the probe is about.

        The default path is the wire in kernel space, and a loop on a co-kernel.
        """
        if not isinstance(written, dict):
            return written
        given = cast("dict[str, Any]", written)
        if given.get("space") == "kernel":
            given = {
                "path": path_in_kernel(given),
                "context": "thread" if given.get("rt") == "rtai" else "irq",
                **{name: value for name, value in given.items() if name not in cls.of_user_space},
            }
            if given["path"] == NO_LINE:
                given = {"role": cls.measured_role, **given}
        elif given.get("rt", "linux") != "linux":
            given = {"path": ON_COKERNELS, **given}
        return {"role": cls.measured_role, **given} if {"peer", "instrument"} & given.keys() else given

    @model_validator(mode="after")
    def _check_runtime(self) -> Self:
        for name in ("peer", "instrument"):
            if self.rt != "linux" and getattr(self, name) is not None:
                raise ValueError(
                    f"with {name}, the task would drive its line through Linux, and leave the co-kernel "
                    f"each time; leave out {name} or rt {self.rt}"
                )
        if self.path.startswith("rtdm:") and self.rt != "cobalt":
            raise ValueError("path rtdm:... works only on Cobalt; add rt cobalt")
        return self

    @model_validator(mode="after")
    def _check_peer(self) -> Self:
        if self.peer is None and self.peer_path is not None:
            raise ValueError(
                "peer-path names the path on the peer, but no peer is given; add peer, or leave peer-path out"
            )
        if self.peer is None and self.peer_cpu is not None:
            raise ValueError(
                "peer-cpu names a CPU of the peer, but no peer is given; add peer, or leave peer-cpu out"
            )
        if self.peer is not None and self.role == "both":
            raise ValueError(
                f"with a peer, this target plays only one role; give role master or slave (default: "
                f"{self.measured_role})"
            )
        if self.peer is not None and self.path in LOOPS:
            raise ValueError(
                f"{self.path} does not leave the machine; with a peer, give a path between the two "
                "machines, udp:HOST:PORT or gpio:CHIP:LINES"
            )
        if self.peer_path in LOOPS:
            raise ValueError(
                f"{self.peer_path} does not leave the machine; between two machines, give a path "
                "udp:HOST:PORT or gpio:CHIP:LINES"
            )
        return self

    @model_validator(mode="after")
    def _check_space(self) -> Self:
        if self.space == "user" and self.path == NO_LINE:
            raise ValueError(
                "path none works only with space kernel, where the task takes time stamps instead of "
                "driving a line; add space kernel, or give another path"
            )
        if self.path == WIRE and (self.role != "both" or self.peer is not None):
            raise ValueError("path wire does not leave the machine; give role both, and leave peer out")
        if self.peer_path in (WIRE, NO_LINE):
            raise ValueError(
                f"peer-path {self.peer_path} does not leave the machine; between two machines, give a path "
                "udp:HOST:PORT or gpio:CHIP:LINES"
            )
        if self.space == "user":
            return self
        if self.role not in (self.measured_role, "both"):
            raise ValueError(
                f"with space kernel, rtgauge measures the {self.measured_role}; give role "
                f"{self.measured_role} or both"
            )
        if self.policy != "fifo":
            raise ValueError(
                f"in kernel space, the policy can only be fifo, not {self.policy}; give policy fifo"
            )
        if self.path in LOOPS or self.path.startswith("udp:"):
            paths = {"linux": "wire or gpio:CHIP:LINES", "rtai": NO_LINE}.get(self.rt, f"{WIRE} or {NO_LINE}")
            raise ValueError(f"a task in kernel space cannot use path {self.path}; give path {paths}")
        if self.path == NO_LINE and self.role != self.measured_role:
            raise ValueError(
                f"with path none, there is only one task, in kernel space; give role {self.measured_role}"
            )
        if self.rt == "rtai" and self.path != NO_LINE:
            raise ValueError("in kernel space, rt rtai cannot drive a line; give path none")
        if self.rt != "linux" and self.path not in (NO_LINE, WIRE):
            raise ValueError(
                f"in kernel space, rt {self.rt} cannot use path {self.path}; give path wire or none"
            )
        return self

    @model_validator(mode="after")
    def _check_explained(self) -> Self:
        self.check_explain()
        if self.explain and (self.space == "kernel" or self.peer is not None or self.instrument is not None):
            raise ValueError(
                "explain works only in user space, without a peer and without an instrument; leave explain "
                "out"
            )
        return self

    @model_validator(mode="after")
    def _check_instrument(self) -> Self:
        if self.instrument is None:
            if self.wire_offset_ns is not None:
                raise ValueError(
                    "wire-offset is the latency of the wires to an instrument, but no instrument is given; "
                    "add instrument, or leave wire-offset out"
                )
            return self
        if self.peer is not None:
            raise ValueError(
                "the instrument plays the other role, so a peer has none to play; leave out instrument or "
                "peer"
            )
        if self.role != self.measured_role:
            raise ValueError(
                f"with an instrument, this target is always the {self.measured_role}; leave role out"
            )
        if self.path in (*LOOPS, WIRE):
            raise ValueError(
                f"{self.path} does not leave the machine, so an instrument cannot see it; give a line that "
                "does, such as gpio:/dev/gpiochip0:17,27"
            )
        if is_latmon(self.instrument) and self.measured_role == "master":
            raise ValueError(
                "a latmon sends stimuli and measures answers, so it works only with the probe response"
            )
        return self

    @model_validator(mode="after")
    def _check_signal(self) -> Self:
        if self.cycles is not None and "duration_ns" in self.model_fields_set:
            raise ValueError("give duration or cycles, not both")
        if self.slave_cpu is not None and self.role != "both":
            raise ValueError("slave-cpu works only with role both; for a single role, give cpu")
        if self.path in LOOPS and self.role != "both":
            raise ValueError(
                f"{self.path} does not leave the machine; give role both, or a path between two machines "
                "(udp:HOST:PORT or gpio:CHIP:LINES)"
            )
        return self


NOT_THE_ENGINES = (
    frozenset({"path", "cycles", "peer_path", "peer_cpu", "instrument", "wire_offset_ns"}) | EXPLAIN_NAMES
)
"""Parameters that are not options of the engine, or have another name there."""


def check_context(space: Space, context: str | None) -> None:
    """Raise ValueError if a task in user space has a context."""
    if space == "user" and context is not None:
        raise ValueError("context works only in kernel space; add space kernel, or leave context out")


S = TypeVar("S", bound=SignalParameters)


@dataclass(frozen=True, kw_only=True, eq=False)
class SignalProbe(Probe[S]):
    """A probe whose parameters extend SignalParameters. The engine has an option of the same name for each of
    them; `cycles` is its `count`.
    """

    nothing_mark: str = "no-stimulus"

    instrument_metric: str
    """The metric that an instrument on the line measures. Its series has the role `instrument`."""

    kernel_module: str
    """The kernel module that contains the kernel-space task."""
    woken_by_others: bool
    """Whether something other than a timer of its own CPU wakes the task."""

    def arguments_with_instrument(self, parameters: S, samples_dir: str | None) -> list[str]:
        """Return the engine's command line if an instrument plays the other role.

        A slave runs until it is stopped, and keeps no samples.
        """
        if parameters.role == "master":
            return self.arguments(parameters, samples_dir)
        return self.arguments(_until_stopped(parameters), None)

    def both_ends(self, parameters: S, samples_dir: str | None) -> dict[Role, list[str]]:
        """Return the engine's command line for each role of a step with a peer.

        The master decides how long the step takes and keeps the samples. The slave runs until it is stopped.
        """
        peers = self.of_peer(
            parameters.but(
                role=other_role(parameters.role),
                path=parameters.peer_path or parameters.path,
                cpu=parameters.peer_cpu,
            )
        )
        master, slave = (parameters, peers) if parameters.role == "master" else (peers, parameters)
        return {
            "master": self.arguments(master, samples_dir),
            "slave": self.arguments(_until_stopped(slave), None),
        }

    def peers(self, parameters: S) -> Mapping[str, str]:
        """Return the peer by its role, if there is one."""
        return {} if parameters.peer is None else {other_role(parameters.role): parameters.peer}

    def measurer(self, key: StepKey) -> str | None:
        """Return what measures with a peer or with an instrument; None for one engine on the target."""
        if key.peer is not None:
            return "two-ends"
        instrument = key.parameters.get("instrument")
        if instrument is None:
            return None
        return "latmon" if is_latmon(str(instrument)) else "instrument"

    def of_peer(self, parameters: S) -> S:
        """Return the parameters for the peer: user space, and no task context."""
        return parameters.but(space="user", context=None)

    def modules(self, parameters: S) -> tuple[str, ...]:
        """Return the kernel modules in the order of loading: the common core, the wire if it is the path, and
        the kernel-space task. Each runtime has its own wire and task. RTAI has no wire.
        """
        runtime = parameters.rt
        suffix = "" if runtime == "linux" else f"_{runtime}"
        wire = (f"rtgauge_wire{suffix}",) if parameters.path == WIRE and runtime != "rtai" else ()
        task = (f"{self.kernel_module}{suffix}",) if parameters.space == "kernel" else ()
        return ("rtgauge_core", *wire, *task) if wire or task else ()

    def module_files(self, parameters: S, target: Target, notify: Callable[[str], None]) -> list[str]:
        """Return the paths of the kernel modules on the target. Raises NoModules."""
        from rtgauge_ext.signal.kernel_modules import modules_for

        return modules_for(target, self.modules(parameters), notify)

    def options(self, parameters: S) -> dict[str, Any]:
        """Return the engine's options for these parameters."""
        return {
            **engine_options(parameters, NOT_THE_ENGINES),
            "path": resolved(parameters.path),
            "count": parameters.cycles,
        }

    def arguments(self, parameters: S, samples_dir: str | None) -> list[str]:
        """Return the engine's command line."""
        return [
            *command_line(self.name, {**self.options(parameters), "samples_dir": samples_dir}),
            *explain_arguments(
                parameters, self._measured_ns(parameters), woken_by_others=self.woken_by_others
            ),
        ]

    def trial_arguments(self, parameters: S) -> list[str]:
        """Return the engine's command line without the options for explaining."""
        return self.arguments(parameters.but(explain=False), None)

    @abstractmethod
    def cycle_ns(self, parameters: S) -> int:
        """Return about how long a cycle takes, in ns."""

    def expected_ns(self, parameters: S) -> int:
        """Return the length of warm-up and measured phase, and of measuring the cost of the events, in ns."""
        measured_ns = self._measured_ns(parameters)
        return measured_ns + parameters.warm_up_ns + explain_cost_ns(parameters, measured_ns)

    def _measured_ns(self, parameters: S) -> int:
        cycles = parameters.cycles
        return parameters.duration_ns if cycles is None else cycles * self.cycle_ns(parameters)


class SignalStep(NamedTuple):
    """A step on a signal path: its probe and parameters."""

    probe: SignalProbe[Any]
    parameters: SignalParameters


def signal_step(key: StepKey) -> SignalStep:
    """Return the probe and the parameters of a step. Raises InputError if it is not on a signal path."""
    probe = probes.get(key.probe)
    parameters = probe.own(key)
    if not isinstance(probe, SignalProbe) or not isinstance(parameters, SignalParameters):
        raise InputError(f"the probe {key.probe} does not use a signal path")
    return SignalStep(probe, parameters)


def _until_stopped(parameters: S) -> S:
    return parameters.but(cycles=None, duration_ns=parse_duration_ns(LONGEST))
