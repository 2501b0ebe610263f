# SPDX-License-Identifier: MIT
"""The descriptor of a probe: everything that the rest of rtgauge needs to know about it.

Few other modules name a probe, and a new probe must not add to them.

A probe `x` is engine/probes/x.c (or a folder x of several files), src/rtgauge/probe/x.py with its descriptor
`PROBE`, and docs/probes/x.md. An extension (rtgauge.extension) names the probe, and its presenter
(rtgauge.report.presenter) if it has one.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.model import StepKey
from rtgauge.record.probe_parameters import Parameters
from rtgauge.record.record_folder import Source
from rtgauge.validation import explain

if TYPE_CHECKING:
    from rtgauge.record.stream import Frame
    from rtgauge.target.target_protocol import Target

TRACE_INSTANCE = f"rtgauge-{secrets.token_hex(4)}"
"""The tracefs instance in which the kernel records for a probe. The runner makes and removes it. Each process
has a name of its own, because measurements in different containers share the kernel.
"""
Traced = Literal["tracepoints", "timerlat"]
"""How the kernel records in that instance."""


P = TypeVar("P", bound=Parameters)
"""A probe's own parameters."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How a requirement can bound a metric."""

    example: str
    """A requirement in full, such as `response<=500us hardness=99.9%`."""
    preset: str | None
    """The preset that measures the metric, idle and loaded; None if no preset does."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A measured quantity, named as in the stream and the record."""

    name: str
    plural: str
    unit: Literal["ns", "count"] = "ns"
    signed: bool = False
    """Whether a value may be negative, for example if a thread woke too early."""
    bound: Bound | None = None
    """None if a requirement cannot bound the metric."""
    is_delay: bool = True
    """Whether its maximum is a delay that the kernel's limits on real-time threads may have caused."""
    space: Literal["user", "kernel"] | None = None
    """If set, only steps in this space have the metric."""
    compared: bool = True
    """Whether `rtgauge compare --metric` accepts the metric of a task set."""
    shown: bool = True
    """Whether tables show the metric."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Trait: the probe acts at a period that can be set. rtgauge can search for the shortest period, and
    tabulates the metrics that are judged against the period.
    """

    period: str
    """The name of the parameter that sets the period (ns)."""
    activations: int
    """How often the probe acts in a period."""
    count: str
    """The name, as people write it, of the parameter for the number of activations or cycles."""
    metrics: tuple[str, ...]
    """The metrics to judge against a period, in the order of the papers' tables."""


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file that a step keeps in the record if the parameter with the file's name is set. The probe's
    command copies the file to the user's path.
    """

    name: str
    """The name of the file in the step's folder."""
    help: str
    """The help of the command's option."""
    export: Callable[[Source, Path], None]
    """Copies the file, in the format of the new name's ending. Raises RecordError if it is damaged,
    InputError or MeasureError if it cannot be written.
    """


@dataclass(frozen=True, kw_only=True)
class CommandTrait:
    """Trait: what a probe's command has in addition to an option for each parameter."""

    argument: str | None = None
    """The parameter that is the command's required argument."""
    argument_metavar: str | None = None
    not_options: frozenset[str] = frozenset()
    """Parameters, as people write them, that only plans accept."""
    prints_only_tables: bool = False
    """Whether the command prints only the presenter's tables, without a summary, if no series has a
    distribution.
    """


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Trait: how rtgauge shows the results."""

    pooled: bool = True
    """Whether all series of the main metric are pooled into one distribution, for the table of all loads and
    the figures.
    """
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    """Maps a series' label `role` to the name that the table shows."""
    tabulated: bool = False
    """Whether a comparison of operations shows the results in its tables, and not by quantiles."""
    needs_windows: bool = False
    """Whether the presenter's tables need the step's windows."""
    folded_above: int | None = None
    """The most steps that the terminal shows one by one. If there are more, it shows the presenter's tables.

    If set, the page shows the steps only in the probe's own chapter.
    """


@dataclass(frozen=True, kw_only=True)
class Motion:
    """How a live page animates a simulation (docs/live.md)."""

    message: Callable[[int, Frame], bytes]
    """Makes a browser's message from a frame and its number, counted from 1. Raises RecordError if the frame
    is not valid.
    """
    script: str
    """A script, as `package/file.js`, that sets `views[NAME]` for the page."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe(ABC, Generic[P]):
    """One kind of measurement: a core that every probe has, and traits that some have."""

    name: str
    help: str
    """One line, for a list of probes."""
    parameters: type[P]
    method: str
    """The page's paragraph about how the probe measures."""
    metrics: tuple[Metric, ...]
    """The measured metrics, in the order of the tables; empty if the probe has no series."""

    order: int = 1000
    """The probe's place in lists, the smallest first."""
    about: str = ""
    """The help of the probe's command: one line, or also an empty line and more text. Default: `help`."""
    examples: tuple[str, ...] = ()
    """Useful combinations of the command's options."""
    missed: str | None = None
    """What the probe counts as missed, which breaks any bound; None if it only samples, and releases nothing
    that could be missed.
    """
    methods: Mapping[str, str] = field(default_factory=dict[str, str])
    """Replacements for `method`, by `kernel` (parameter `space`) or co-kernel (parameter `rt`), if the probe
    measures differently there.
    """
    when_nothing: str | None = "measure for longer (--duration)"
    """What to do if nothing was measured; None if that is a valid result, such as a CPU without gaps."""
    nothing_mark: str = ""
    """The engine's mark that says why nothing was measured; it replaces `nothing-measured`."""

    command: CommandTrait | None = field(default_factory=CommandTrait)
    """None if the probe's command is `rtgauge NAME`, without a load, instead of `rtgauge probe NAME`."""
    shown: Shown = field(default_factory=Shown)
    operation: Callable[[Any], str] | None = None
    """Returns the operation whose cost a step with these parameters measures, such as `task switch`. The
    costs of two operations share no scale.
    """
    pace: Pace | None = None
    files: Mapping[str, KeptFile] = field(default_factory=dict[str, KeptFile])
    """Parameters that keep a file in the record, and name its copy on the command line, like `samples`."""
    motion: Motion | None = None
    """How to animate the frames that the engine sends to viewers; None if it sends none."""
    cross_checked: frozenset[str] = frozenset()
    """The tools for `--cross-check` that measure the same quantity."""
    divides: str = ""
    """`module:function` that divides the parts of an explained latency further; empty if nothing does."""
    blames: str = ""
    """`module:function` that finds the culprit (Blame) of a step's late activations without an explanation,
    from the step, its windows and the requirement; empty if nothing does.
    """
    watches: bool = False
    """Whether the measured threads belong to the user's program."""
    measures_clocks: bool = False
    """Whether the probe measures the clocks. Each run begins with such a step on each target."""

    @property
    def called(self) -> str:
        """The probe's command, such as `rtgauge probe wakeup`."""
        return f"rtgauge {self.name}" if self.command is None else f"rtgauge probe {self.name}"

    @property
    def takes_requirement(self) -> bool:
        """Whether the probe's command accepts a requirement."""
        return any(metric.bound is not None for metric in self.metrics)

    def own(self, key: StepKey) -> P:
        """Return a step's parameters as this probe's own model.

        Raises RecordError if they do not fit the model.
        """
        if isinstance(key.parameters, self.parameters):
            return key.parameters
        try:
            return self.parameters.held(key.parameters.values)
        except ValueError as error:
            raise RecordError(
                f"the parameters of the probe {self.name} in this record are invalid: {error}"
            ) from None

    def cross_checked_by(self, tool: str, parameters: P) -> bool:
        """Return whether the tool measures the same as a step with these parameters. cyclictest measures only
        in user space.
        """
        in_user_space_only = tool == "cyclictest" and parameters.get("space") == "kernel"
        return (
            tool in self.cross_checked
            and (parameters.get("rt") or "linux") == runtime_of(tool)
            and not in_user_space_only
        )

    def peer(self, parameters: P) -> str | None:  # noqa: ARG002 - for a probe of a network path
        """Return the network interface, or the IP address of the other end, that a step with these parameters
        uses; None if it uses no network. The facts of the machine then contain the interface.
        """
        return None

    def subject(self, parameters: P) -> str | None:  # noqa: ARG002 - for some probes
        """Return what a requirement holds or fails for, "a cycle of 1 ms with 192.168.1.5"; None: the step's
        name says enough.
        """
        return None

    def interval_ns(self, parameters: P) -> int | None:
        """Return the time (ns) between two releases in a step with these parameters; None if it has no
        period.
        """
        period_ns: int | None = None if self.pace is None else parameters.get(self.pace.period)
        return None if self.pace is None or period_ns is None else period_ns // self.pace.activations

    @property
    def bounds(self) -> str:
        """The first metric that a requirement can bound."""
        return next((metric.name for metric in self.metrics if metric.bound is not None), "latency")

    def metric(self, name: str) -> Metric | None:
        """Return the metric with that name; None if there is none."""
        return next((metric for metric in self.metrics if metric.name == name), None)

    def modules(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002 - for some probes
        """Return the kernel modules (kmod/) that the step needs on its target, in the order of loading."""
        return ()

    def module_files(self, parameters: P, target: Target, notify: Callable[[str], None]) -> list[str]:  # noqa: ARG002 - for some probes
        """Return the paths of these modules on the target, for its kernel. `say` gets progress messages.

        Raises NoModules, with cause and remedy, if there are none and they cannot be built.
        """
        return []

    def changes(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002 - for some probes
        """Return the target's settings that the step itself changes; they are noted before the step and
        restored after it.
        """
        return ()

    def peers(self, parameters: P) -> Mapping[str, str]:  # noqa: ARG002 - for some probes
        """Return the other targets that the step needs, by their roles."""
        return {}

    def measurer(self, key: StepKey) -> str | None:  # noqa: ARG002 - for some probes
        """Return the name, among the `measurers` of extensions, of what measures the step.

        None: one engine on the target measures it.
        """
        return None

    def traces(self, parameters: P) -> Traced | None:  # noqa: ARG002 - for some probes
        """Return how the kernel records in a tracefs instance, which the runner makes and removes; None if it
        records nothing.
        """
        return None

    def points(self, parameters: P) -> Mapping[str, tuple[str, str]]:  # noqa: ARG002 - for some probes
        """Return event -> (program, symbol) of the points in a program at which the kernel makes events. The
        runner makes and removes the events.
        """
        return {}

    @abstractmethod
    def arguments(self, parameters: P, samples_dir: str | None) -> list[str]:
        """Return the engine's command line: verb and options. `samples_dir`: the target's folder for the
        files that the step keeps; None if it keeps none.
        """

    def trial_arguments(self, parameters: P) -> list[str]:
        """Return the command line for trying the engine before a run, when no tracefs instance exists yet."""
        return self.arguments(parameters, None)

    @abstractmethod
    def expected_ns(self, parameters: P) -> int | None:
        """Return about how long (ns) the step measures, with its warm-up; None if it runs until it is
        stopped.
        """


def runtime_of(tool: str) -> str:
    """Return the runtime that another tool measures on: its own for Xenomai's and RTAI's tools, otherwise
    linux.
    """
    return {"xenomai": "cobalt", "rtai": "rtai"}.get(tool.partition("-")[0], "linux")


def command_line(verb: str, options: Mapping[str, Any]) -> list[str]:
    """Return the engine's command line: an option for each value that is not None; a bool is on or off."""
    written = {
        name.replace("_", "-"): ("on" if value else "off") if isinstance(value, bool) else value
        for name, value in options.items()
        if value is not None
    }
    return [verb, *(f"--{name}={value}" for name, value in written.items())]


def key_names(probe: Probe[Any]) -> list[str]:
    """Return the parameters' names as people write them (`interval`, `warm-up`)."""
    return [field.alias or name for name, field in probe.parameters.model_fields.items()]


def normalise(probe: Probe[P], written: dict[str, Any], place: str) -> P:
    """Turn written parameters, such as `{"interval": "1ms"}`, into all parameters as numbers, with defaults.

    Raises InputError, naming `place`, if a parameter is unknown or not valid.
    """
    try:
        return probe.parameters.model_validate(written)
    except ValidationError as error:
        raise explain(error, place, key_names(probe)) from None
