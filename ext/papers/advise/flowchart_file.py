# SPDX-License-Identifier: MIT
"""Reads decision flowcharts, such as Brown & Martin's (2010, fig. 6), from TOML that experts can write."""

from __future__ import annotations

from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rtgauge.errors import InputError
from rtgauge.input_file import MOST_TOML, read_regular, toml_of
from rtgauge.nearest_name import nearest
from rtgauge.validation import DASHED, explain

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Line = Annotated[str, Field(min_length=1, max_length=600)]
Hardness = Literal["95%", "100%"]
LARGEST = 1_000_000


class ChartEntry(BaseModel):
    """Base of the models. Keys have dashes, unknown keys are errors, and no value is converted."""

    model_config = DASHED | ConfigDict(strict=True)


class Thresholds(ChartEntry):
    """The highest ratios of lateness to bound that count as in the black, marginal and in trouble."""

    black: float = Field(gt=0, le=1)
    """The highest ratio of lateness to bound that is clearly in the black."""
    marginal: float = Field(ge=1, le=LARGEST)
    """The highest ratio of lateness to bound that is marginal."""
    trouble: float = Field(ge=1, le=LARGEST)
    """The highest ratio of lateness to bound that is in trouble; above it is off the map."""

    @model_validator(mode="after")
    def _rising(self) -> Thresholds:
        if self.trouble < self.marginal:
            raise ValueError(f"trouble ({self.trouble:g}) must not be below marginal ({self.marginal:g})")
        return self


class Way(ChartEntry):
    """A way to implement the task, its costs, and what has changed since the paper was written."""

    id: Id
    """The way's id in the charts."""
    name: Line
    """The way's name for the reader."""
    kernel: Literal["stock", "preempt-rt", "linux", "xenomai", "none"]
    """The kernel that the way needs. `linux` is stock or PREEMPT_RT; `none` ends the chart."""
    space: Literal["user", "kernel", "none"]
    """The space in which the task runs. `kernel` and `space` decide which steps are evidence."""
    costs: list[Line]
    """What the way costs, in sentences."""
    today: list[Line] = Field(default_factory=list)
    """What has changed since the paper was written."""
    published: dict[
        Literal["response", "periodic"], Annotated[list[int], Field(min_length=3, max_length=3)]
    ] = Field(default_factory=dict[Literal["response", "periodic"], list[int]])
    """The paper's median and its values at 95 % and 100 % (us), for each of its tasks."""
    get: Line | None = None
    """How to install it."""
    instead: Line | None = None
    """A command that measures the way if rtgauge cannot."""
    about_instead: Line | None = None
    """A sentence about the command in `instead`."""


class Branch(ChartEntry):
    """The ways that follow a way that is not good enough."""

    hardness: Hardness
    """The hardness to which the branch applies."""
    at: Id
    """The way that is not good enough."""
    marginal: Id
    """The next way if `at` is marginal."""
    trouble: Id
    """The next way if `at` is in trouble."""


class Chart(ChartEntry):
    """A flowchart of the ways."""

    id: Id
    """The chart's id."""
    name: Line
    """The chart's name for the reader."""
    about: Line
    """A sentence that describes the chart."""
    start: dict[Hardness, Id]
    """The first way at each hardness."""
    off_the_map: Id
    """The next way if the margin is off the map, or if no branch matches."""
    differs: dict[Hardness, Line] = Field(default_factory=dict[Hardness, str])
    """How the chart differs from the paper's, by hardness."""
    branch: list[Branch]
    """The chart's branches."""

    def after(self, hardness: Hardness, at: str, word: str) -> str:
        """Return the way that follows a way that is not good enough: marginal, in trouble or off the map."""
        if word == "off the map":
            return self.off_the_map
        branch_taken = next(
            (branch for branch in self.branch if branch.hardness == hardness and branch.at == at), None
        )
        if branch_taken is None:
            return self.off_the_map
        return branch_taken.marginal if word == "marginal" else branch_taken.trouble


class Flowchart(ChartEntry):
    """A file with ways and charts."""

    thresholds: Thresholds
    way: list[Way] = Field(min_length=1, max_length=100)
    chart: list[Chart] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _whole(self) -> Flowchart:
        """Check that every named way exists, that every start is there, and that no chart has a cycle."""
        ways = {way.id: way for way in self.way}
        for what, entries in (("ways", self.way), ("charts", self.chart)):
            for name, count in Counter(entry.id for entry in entries).items():
                if count > 1:
                    raise ValueError(f"{count} {what} have the id '{name}'; each needs an id of its own")
        for chart in self.chart:
            named = [
                *chart.start.values(),
                chart.off_the_map,
                *(place for b in chart.branch for place in (b.at, b.marginal, b.trouble)),
            ]
            unknown = next((name for name in named if name not in ways), None)
            if unknown is not None:
                raise ValueError(
                    f"chart {chart.id} leads to the unknown way '{unknown}'{nearest(unknown, ways)}"
                )
            if ways[chart.off_the_map].kernel != "none":
                raise ValueError(
                    f'chart {chart.id}: off-the-map must lead to a way with kernel = "none", which '
                    "ends the chart"
                )
            if set(chart.start) != {"95%", "100%"}:
                raise ValueError(f"chart {chart.id}: give a start for 95% and one for 100%")
            if len({(b.hardness, b.at) for b in chart.branch}) < len(chart.branch):
                raise ValueError(f"chart {chart.id} has two branches for the same way; leave one out")
            for hardness in chart.start:
                _ends(chart, hardness, chart.start[hardness], (), set())
        return self

    def of(self, way: str) -> Way:
        """Return the way with that id."""
        return next(candidate for candidate in self.way if candidate.id == way)

    def measured_by(self, kernel: str, space: str) -> list[str]:
        """Return the ids of the ways for which a step in this space, on this kernel (stock, preempt-rt or
        xenomai), is evidence.
        """
        return [way.id for way in self.way if way.kernel in (kernel, "linux") and way.space == space]

    def named(self, chart: str) -> Chart:
        """Return the chart with that id. Raises InputError if there is none."""
        chart_named = next((candidate for candidate in self.chart if candidate.id == chart), None)
        if chart_named is None:
            ids = [candidate.id for candidate in self.chart]
            raise InputError(
                f"--chart {chart}: this is not the name of a chart{nearest(chart, ids)}; give "
                f"{', '.join(ids)}, or a file that ends in .toml"
            )
        return chart_named


def _ends(chart: Chart, hardness: Hardness, at: str, before: tuple[str, ...], ending: set[str]) -> None:
    """Raise ValueError if the chart has a cycle. `ending`: the ways from which the chart is known to end."""
    if at in before:
        raise ValueError(f"chart {chart.id} runs in a circle: {' -> '.join([*before, at])}")
    if at == chart.off_the_map or at in ending:
        return
    for word in ("marginal", "in trouble"):
        _ends(chart, hardness, chart.after(hardness, at, word), (*before, at), ending)
    ending.add(at)


def parse_flowchart(text: str, what: str) -> Flowchart:
    """Parse the flowchart in a TOML text. `what` names it in errors. Raises InputError if it is invalid."""
    try:
        return Flowchart.model_validate(toml_of(text, what))
    except ValidationError as error:
        raise explain(error, what, []) from None


class Chosen(NamedTuple):
    """A file of charts, and the chart chosen from it."""

    flowchart: Flowchart
    chart: Chart


def load_flowchart(source: str) -> Chosen:
    """Load the chart with this id, or the last chart of a .toml file. Raises InputError if that fails."""
    if not source.endswith(".toml"):
        own = parse_flowchart(
            (resources.files("rtgauge_ext.papers.advise") / "flowchart.toml").read_text(encoding="utf-8"),
            "the flowchart",
        )
        return Chosen(own, own.named(source))
    try:
        text = read_regular(Path(source), MOST_TOML).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--chart {source} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    flowchart = parse_flowchart(text, f"--chart {source}")
    return Chosen(flowchart, flowchart.chart[-1])


FILE: dict[str, type[BaseModel]] = {
    "[thresholds]": Thresholds,
    "[[way]]": Way,
    "[[chart]]": Chart,
    "[[chart.branch]]": Branch,
}
"""What a table shows -> its model, for the reference."""
