# SPDX-License-Identifier: MIT
"""The descriptor of a probe: everything that the rest of rtgauge needs to know of it.

Few other modules name a probe; a new probe must not need one that does.

A probe `x` is engine/probes/x.c (or a folder x of several files), src/rtgauge/probe/x.py with its descriptor
`PROBE`, and docs/probes/x.md. A probe of another package is found by its entry point in the group
`rtgauge.probes`; a presenter (rtgauge.report.presenter) by its one in the group `rtgauge.presenters`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from rtgauge.errors import RecordError
from rtgauge.record.model import StepKey
from rtgauge.record.parameters import Parameters
from rtgauge.validation import explain

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.record_folder import Source
    from rtgauge.record.stream import Frame

TRACE_INSTANCE = "rtgauge"
"""The instance of tracefs in which the kernel records for a probe; the runner has it made and removed."""
Traced = Literal["tracepoints", "timerlat"]
"""What records in it."""


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
    """Whether a value may be negative, as of what came too early."""
    bound: Bound | None = None
    """None if a requirement says nothing about it."""
    is_delay: bool = True
    """Whether its maximum is a latency: one that the kernel's limits on real-time threads may have caused."""
    space: Literal["user", "kernel"] | None = None
    """The space whose steps alone have it; None: every step."""
    compared: bool = True
    """Of a task set: whether `rtgauge compare --metric` has it."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Trait of a probe that acts at a period that can be set: a search over the period, and tables of what is
    judged against it.
    """

    period: str
    """The parameter (ns) that sets it."""
    activations: int
    """How often it acts in that time."""
    count: str
    """The key, as people write it, of the number of activations or cycles to measure."""
    metrics: tuple[str, ...]
    """The metrics that are judged against a period, in the order of the papers' tables."""


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file that a step keeps in the record if its parameter of that name is set, and that the probe's
    command copies to where the user wants it.
    """

    name: str
    """In the step's folder."""
    help: str
    """Of the command's option."""
    export: Callable[[Source, Path], None]
    """Copy it, in the form that the new name asks for. Raises RecordError for a damaged one, InputError or
    MeasureError if it cannot be written.
    """


@dataclass(frozen=True, kw_only=True)
class Search:
    """A study that the probe's command runs with `--search`, and whose record it does not keep."""

    study: str
    """Its name."""
    help: str
    repeats_help: str
    finds: str
    """`the size that keeps every deadline`: what no requirement is needed for."""
    decides: tuple[str, ...]
    """Parameters that it sets itself."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Trait: what a probe's command has besides an option for each parameter."""

    argument: str | None = None
    """The parameter that it takes without a name in front of it, and must have."""
    argument_metavar: str | None = None
    not_options: frozenset[str] = frozenset()
    """Parameters, as people write them, that only plans have."""
    search: Search | None = None
    """If it has `--search`."""
    prints_only_tables: bool = False
    """Whether it prints only the presenter's tables, not the summary of a run, if nothing has a
    distribution.
    """


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Trait: how its results are shown."""

    pooled: bool = True
    """Whether all series of its main metric together are one distribution, with a line in the table of all
    loads and in the figures.
    """
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    """Label `role` of a series -> how a line of a table names that view."""
    folded_above: int | None = None
    """The page has its steps in its own chapter only.

    The terminal has so many one by one, and instead of more of them the presenter's tables.
    """


@dataclass(frozen=True, kw_only=True)
class Motion:
    """What a step simulates, for a live page that shows it as it moves (docs/live.md)."""

    message: Callable[[int, Frame], bytes]
    """What a browser gets of a frame; the number counts the frames that came, from 1. Raises RecordError if
    it is none.
    """
    script: str
    """`package/file.js`: a script that sets `views[NAME]` for the page's own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe(ABC, Generic[P]):
    """One kind of measurement: a core that every probe gives, and traits that some have."""

    name: str
    help: str
    """A line, in a list of probes."""
    parameters: type[P]
    method: str
    """The paragraph of the page that says how it measures."""
    metrics: tuple[Metric, ...]
    """What it measures, in the order of its tables; empty if it has no series."""

    order: int = 1000
    """Its place in a list of the probes: the smallest comes first."""
    about: str = ""
    """What its command's help says: a line, an empty one, and more where it is needed; by default `help`."""
    examples: tuple[str, ...] = ()
    """Options of its command that make sense together."""
    missed: str | None = None
    """What it counts as missed, which breaks any bound; None if nothing can be missed: it samples, and
    nothing is released.
    """
    methods: Mapping[str, str] = field(default_factory=dict[str, str])
    """`kernel` (parameter `space`) or a co-kernel (parameter `rt`) -> the paragraph instead of `method`, if
    it measures otherwise there.
    """
    when_nothing: str | None = "measure for longer (--duration)"
    """What to do if not one value was measured; None if that is an answer, as of a CPU without gaps."""

    command: Command | None = field(default_factory=Command)
    """None if it is not `rtgauge probe NAME`, but a command of its own, `rtgauge NAME`, without a load."""
    shown: Shown = field(default_factory=Shown)
    pace: Pace | None = None
    files: Mapping[str, KeptFile] = field(default_factory=dict[str, KeptFile])
    """Parameters that keep a file, and are a file's name on the command line; `samples` is one for all."""
    motion: Motion | None = None
    """If its engine sends frames of what it simulates to those who watch."""
    cross_checked: frozenset[str] = frozenset()
    """The tools (`--cross-check`) that measure the same."""
    measures_clocks: bool = False
    """Whether it measures the clocks, as each run does first on each of its targets."""

    @property
    def called(self) -> str:
        """Its command: `rtgauge probe wakeup`."""
        return f"rtgauge {self.name}" if self.command is None else f"rtgauge probe {self.name}"

    @property
    def takes_requirement(self) -> bool:
        """Whether its command takes a requirement."""
        return any(metric.bound is not None for metric in self.metrics)

    def own(self, key: StepKey) -> P:
        """The parameters of a step as this probe's own model.

        Raises RecordError if they are of a record that has others.
        """
        if isinstance(key.parameters, self.parameters):
            return key.parameters
        try:
            return self.parameters.held(key.parameters.values)
        except ValueError as error:
            raise RecordError(f"{self.name}: the record's parameters cannot be used: {error}") from None

    def cross_checked_by(self, tool: str, parameters: P) -> bool:
        """Whether the tool measures the same as a step with these parameters; cyclictest does in user
        space.
        """
        in_user_space_only = tool == "cyclictest" and parameters.get("space") == "kernel"
        return (
            tool in self.cross_checked
            and (parameters.get("rt") or "linux") == runtime_of(tool)
            and not in_user_space_only
        )

    def interval_ns(self, parameters: P) -> int | None:
        """Between two releases of a step with these parameters; None if nothing is released."""
        period_ns: int | None = None if self.pace is None else parameters.get(self.pace.period)
        return None if self.pace is None or period_ns is None else period_ns // self.pace.activations

    @property
    def bounds(self) -> str:
        """The metric that a requirement bounds first."""
        return next((metric.name for metric in self.metrics if metric.bound is not None), "latency")

    def metric(self, name: str) -> Metric | None:
        """The metric of that name; None if it has no such."""
        return next((metric for metric in self.metrics if metric.name == name), None)

    def modules(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002 - some probes need it
        """The kernel modules (kmod/) that a step with these parameters needs on its target, in the order of
        loading.
        """
        return ()

    def changes(self, parameters: P) -> tuple[str, ...]:  # noqa: ARG002 - some probes need it
        """Settings of its target that a step with these parameters changes by itself: they are noted before
        it and put back after it.
        """
        return ()

    def traces(self, parameters: P) -> Traced | None:  # noqa: ARG002 - of every probe
        """What it has the kernel record in an instance of tracefs, which the runner makes and removes; None:
        nothing.
        """
        return None

    @abstractmethod
    def arguments(self, parameters: P, samples_dir: str | None) -> list[str]:
        """The engine's command line: verb and options."""

    def trial_arguments(self, parameters: P) -> list[str]:
        """The command line with which the engine is tried before a run, when no instance of tracefs is there
        yet.
        """
        return self.arguments(parameters, None)

    @abstractmethod
    def expected_ns(self, parameters: P) -> int | None:
        """How long it takes with its warm-up; None if it runs until it is stopped."""


def runtime_of(tool: str) -> str:
    """The runtime that another tool measures on: Xenomai's own on Cobalt, RTAI's own on RTAI, the others on
    Linux.
    """
    return {"xenomai": "cobalt", "rtai": "rtai"}.get(tool.partition("-")[0], "linux")


def command_line(verb: str, options: Mapping[str, Any]) -> list[str]:
    """The engine's command line: an option for each value that is not None, a truth as on or off."""
    written = {
        name.replace("_", "-"): ("on" if value else "off") if isinstance(value, bool) else value
        for name, value in options.items()
        if value is not None
    }
    return [verb, *(f"--{name}={value}" for name, value in written.items())]


def key_names(probe: Probe[Any]) -> list[str]:
    """The parameters' names as people write them (`interval`, `warm-up`)."""
    return [field.alias or name for name, field in probe.parameters.model_fields.items()]


def normalise(probe: Probe[P], written: dict[str, Any], place: str) -> P:
    """`{"interval": "1ms"}` -> every parameter with its default, in numbers.

    Raises InputError that names the `place`.
    """
    try:
        return probe.parameters.model_validate(written)
    except ValidationError as error:
        raise explain(error, place, key_names(probe)) from None
