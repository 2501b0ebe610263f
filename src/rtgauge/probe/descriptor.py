# SPDX-License-Identifier: MIT
"""The descriptor of a probe: everything that the rest of rtgauge needs to know about it.

Few other modules name a probe, and a new probe must not add to them.

A probe `x` is engine/probes/x.c (or a folder x of several files), src/rtgauge/probe/x.py with its descriptor
`PROBE`, and docs/probes/x.md. A probe of another package has an entry point in the group `rtgauge.probes`,
and its presenter (rtgauge.report.presenter) one in the group `rtgauge.presenters`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.model import StepKey
from rtgauge.record.parameters import Parameters
from rtgauge.record.record_folder import Source
from rtgauge.validation import explain

if TYPE_CHECKING:
    from rtgauge.record.stream import Frame

TRACE_INSTANCE = "rtgauge"
"""The instance of tracefs in which the kernel records for a probe; the runner makes and removes it."""
Traced = Literal["tracepoints", "timerlat"]
"""The kind of recorder in that instance."""


P = TypeVar("P", bound=Parameters)
"""A probe's own parameters."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How a requirement bounds a metric."""

    example: str
    """A requirement in full, such as `response<=500us hardness=99.9%`."""
    preset: str | None
    """The preset that measures the metric, idle and loaded; None if there is none."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A quantity that the probe measures, as the stream and the record call it."""

    name: str
    plural: str
    unit: Literal["ns", "count"] = "ns"
    signed: bool = False
    """Whether a value may be negative, for example if something came too early."""
    bound: Bound | None = None
    """How a requirement bounds it; None if none can."""
    is_delay: bool = True
    """Whether its maximum is a latency that the kernel's limits on real-time threads may have caused."""
    space: Literal["user", "kernel"] | None = None
    """The only space whose steps have it; None: every step."""
    compared: bool = True
    """For a task set: whether `rtgauge compare --metric` accepts it."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Trait: the probe acts at a period that can be set. It gets a search over the period, and tables of the
    metrics that are judged against it.
    """

    period: str
    """The name of the parameter (ns)."""
    activations: int
    """How often the probe acts in a period."""
    count: str
    """The parameter, as people write it, for the number of activations or cycles to measure."""
    metrics: tuple[str, ...]
    """The metrics to judge against a period, in the order of the papers' tables."""


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file that a step keeps in the record if its parameter with that name is set. The probe's command
    copies it to where the user wants it.
    """

    name: str
    """The name of the file in the step's folder."""
    help: str
    """The help of the command's option."""
    export: Callable[[Source, Path], None]
    """Copies the file, in the format that the new name asks for. Raises RecordError if it is damaged,
    InputError or MeasureError if it cannot be written.
    """


@dataclass(frozen=True, kw_only=True)
class Search:
    """A study that the probe's command runs with `--search`, without keeping its record."""

    study: str
    """The name of the study."""
    help: str
    repeats_help: str
    finds: str
    """What it finds without a requirement, such as `the size that keeps every deadline`."""
    decides: tuple[str, ...]
    """Parameters that the study sets itself."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Trait: what a probe's command has in addition to an option for each parameter."""

    argument: str | None = None
    """The parameter that is the command's required argument."""
    argument_metavar: str | None = None
    not_options: frozenset[str] = frozenset()
    """Parameters, as people write them, that only plans have."""
    search: Search | None = None
    """The study of `--search`, if the command has it."""
    prints_only_tables: bool = False
    """Whether it prints only the presenter's tables, and no summary of the run, if nothing has a
    distribution.
    """


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Trait: how the results are shown."""

    pooled: bool = True
    """Whether all series of the main metric form one distribution, with a line in the table of all loads and
    in the figures.
    """
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    """Label `role` of a series -> the name of that view in a table's line."""
    folded_above: int | None = None
    """The number of steps that the terminal shows one by one. For more it shows the presenter's tables.

    If set, the page shows the steps only in the probe's own chapter.
    """


@dataclass(frozen=True, kw_only=True)
class Motion:
    """How a live page animates what a step simulates (docs/live.md)."""

    message: Callable[[int, Frame], bytes]
    """Makes a browser's message from a frame and its number, counted from 1. Raises RecordError if the frame
    is not valid.
    """
    script: str
    """A script, `package/file.js`, that sets `views[NAME]` for the page's own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe(ABC, Generic[P]):
    """One kind of measurement: a core that every probe has, and traits that some have."""

    name: str
    help: str
    """One line, for a list of probes."""
    parameters: type[P]
    method: str
    """The page's paragraph about how it measures."""
    metrics: tuple[Metric, ...]
    """The measured metrics, in the order of its tables; empty if it has no series."""

    order: int = 1000
    """Its place in a list of the probes, the smallest first."""
    about: str = ""
    """The help of its command: one line, then an empty one and more if needed. The default is `help`."""
    examples: tuple[str, ...] = ()
    """Options of its command that are useful together."""
    missed: str | None = None
    """What it counts as missed, which breaks any bound; None if nothing can be missed, because it samples and
    releases nothing.
    """
    methods: Mapping[str, str] = field(default_factory=dict[str, str])
    """`kernel` (parameter `space`) or a co-kernel (parameter `rt`) -> the paragraph that replaces `method`,
    if it measures differently there.
    """
    when_nothing: str | None = "measure for longer (--duration)"
    """What to do if there is not a single value; None if that is a result, such as a CPU without gaps."""

    command: Command | None = field(default_factory=Command)
    """None if its command is not `rtgauge probe NAME`, but `rtgauge NAME`, without a load."""
    shown: Shown = field(default_factory=Shown)
    pace: Pace | None = None
    files: Mapping[str, KeptFile] = field(default_factory=dict[str, KeptFile])
    """Parameters that keep a file, and name the file on the command line; `samples` is one for all probes."""
    motion: Motion | None = None
    """How to animate the frames that its engine sends to viewers, if it does."""
    cross_checked: frozenset[str] = frozenset()
    """The tools (`--cross-check`) that measure the same quantity."""
    watches: bool = False
    """Whether the measured threads belong to the user's program."""
    measures_clocks: bool = False
    """Whether it measures the clocks, which is the first step of each run on each target."""

    @property
    def called(self) -> str:
        """Its command, such as `rtgauge probe wakeup`."""
        return f"rtgauge {self.name}" if self.command is None else f"rtgauge probe {self.name}"

    @property
    def takes_requirement(self) -> bool:
        """Whether its command accepts a requirement."""
        return any(metric.bound is not None for metric in self.metrics)

    def own(self, key: StepKey) -> P:
        """Return the parameters of a step as this probe's own model.

        Raises RecordError if the record's parameters do not fit it.
        """
        if isinstance(key.parameters, self.parameters):
            return key.parameters
        try:
            return self.parameters.held(key.parameters.values)
        except ValueError as error:
            raise RecordError(f"{self.name}: the record's parameters cannot be used: {error}") from None

    def cross_checked_by(self, tool: str, parameters: P) -> bool:
        """Return whether the tool measures the same as a step with these parameters. cyclictest does so only
        in user space.
        """
        in_user_space_only = tool == "cyclictest" and parameters.get("space") == "kernel"
        return (
            tool in self.cross_checked
            and (parameters.get("rt") or "linux") == runtime_of(tool)
            and not in_user_space_only
        )

    def interval_ns(self, parameters: P) -> int | None:
        """Return the time between two releases of such a step; None if nothing is released."""
        period_ns: int | None = None if self.pace is None else parameters.get(self.pace.period)
        return None if self.pace is None or period_ns is None else period_ns // self.pace.activations

    @property
    def bounds(self) -> str:
        """The metric that a requirement bounds first."""
        return next((metric.name for metric in self.metrics if metric.bound is not None), "latency")

    def metric(self, name: str) -> Metric | None:
        """Return the metric with that name; None if there is none."""
        return next((metric for metric in self.metrics if metric.name == name), None)

    def modules(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002 - for some probes
        """Return the kernel modules (kmod/) that such a step needs on its target, in the order of loading."""
        return ()

    def changes(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002 - for some probes
        """Return the target's settings that such a step changes itself, to be noted before it and restored
        after.
        """
        return ()

    def traces(self, parameters: P) -> Traced | None:  # noqa: ARG002 - for some probes
        """Return what the kernel records in an instance of tracefs, which the runner makes and removes, or
        None.
        """
        return None

    @abstractmethod
    def arguments(self, parameters: P, samples_dir: str | None) -> list[str]:
        """Return the engine's command line: verb and options."""

    def trial_arguments(self, parameters: P) -> list[str]:
        """Return the command line for trying the engine before a run, when there is no instance of tracefs
        yet.
        """
        return self.arguments(parameters, None)

    @abstractmethod
    def expected_ns(self, parameters: P) -> int | None:
        """Return how long such a step takes, with its warm-up; None if it runs until it is stopped."""


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
    """`{"interval": "1ms"}` -> every parameter with its default, in numbers.

    Raises InputError, naming `place`, if a parameter is unknown or not valid.
    """
    try:
        return probe.parameters.model_validate(written)
    except ValidationError as error:
        raise explain(error, place, key_names(probe)) from None
