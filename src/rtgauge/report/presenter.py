# SPDX-License-Identifier: MIT
"""What a probe shows beyond the tables and figures of every probe.

Packages register presenters as entry points in the group `rtgauge.presenters`, by the name
of the probe, or of the file that a step keeps; a presenter is imported when a record has such a step."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from rtgauge.analysis.spikes import step_words
from rtgauge.errors import InputError
from rtgauge.probe.registry import probe_of
from rtgauge.record.model import Step
from rtgauge.record.reader import Record

if TYPE_CHECKING:
    from rich.console import Console

    from rtgauge.report.figures.vega import Figure
    from rtgauge.report.record_view import RecordView
    from rtgauge.report.table import Table

GROUP = "rtgauge.presenters"
"""The group of entry points: the name of a probe, or of a file that steps keep = the presenter."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A section of the page: its template, of any package, shows it as `chapter`."""

    id: str
    heading: str
    template: str = "rtgauge.report/tables.html.j2"
    """`package/file.html.j2`: a file in the folder `templates` of that package."""
    content: object
    """What the template shows, as `chapter.content`: a list of tables if it has no template of its own."""
    place: Literal["first", "after frequencies"] = "first"
    measured: str
    """How the sentence "This run measured ..." ends for a run of which nothing else has numbers."""
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    """For the page's script, beside what is there already."""


class Presenter:
    """Shows nothing: a probe overrides what it has. `steps`: of its probes, in the conditions' order."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002
        """What came of these steps, as part of a sentence; None if the largest values say it."""
        return None

    def results(self, view: RecordView) -> Sequence[BaseModel]:  # noqa: ARG002
        """What a search of its probe found, for the document that `--json` prints."""
        return []

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - to be overridden
        """Its figures. Raises RecordError for a damaged record."""
        return []

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002
        """Its chapter; `drawn`: names of the page's figures. Raises RecordError for a damaged record."""
        return None

    def frequency_grids(self, records: Sequence[Record], width: int | None = None) -> list[Table]:  # noqa: ARG002
        """Its tables of frequencies, of all records together. `width`: of a terminal; None for a page."""
        return []

    def lines(self, step: Step) -> list[str]:  # noqa: ARG002
        """What it counted in one step, a line each, below the tables."""
        return []

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Its tables on the terminal."""


@cache
def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def presenter_of(name: str) -> Presenter | None:
    """The presenter of a probe, or of the steps that keep a file of that name; None if the tables and figures
    of every probe are enough.

    Raises InputError if the package that registers it cannot be imported, or registers something else.
    """
    point = _registered().get(name)
    if point is None:
        return None
    try:
        presenter: object = point.load()
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{name}: the package that presents it cannot be used ({point.value}: {error}); update "
            "or remove that package"
        ) from None
    if not isinstance(presenter, Presenter):
        raise InputError(f"{name}: {point.value} is not a presenter; update or remove that package")
    return presenter


def presenters(steps: Sequence[Step]) -> list[tuple[Presenter, list[Step]]]:
    """The presenters of these steps, each with its own: those of kept files, then in the probes' order."""
    probes = {probe.name: probe for probe in map(probe_of, steps)}
    files = dict.fromkeys(file for step in steps for file in step.checksums)
    own: dict[Presenter, list[Step]] = {}
    for file in files:
        presenter = presenter_of(file)
        if presenter is not None:
            own.setdefault(presenter, []).extend(step for step in steps if file in step.checksums)
    for probe in sorted(probes.values(), key=lambda probe: (probe.order, probe.name)):
        presenter = presenter_of(probe.name)
        if presenter is not None:
            own.setdefault(presenter, [])
    for step in steps:
        presenter = presenter_of(step.key.probe)
        if presenter is not None:
            own[presenter].append(step)
    return list(own.items())


def _imported_lines(step: Step) -> list[str]:
    """The results of another tool, a line each; a text keeps its lines."""
    lines: list[str] = []
    for result in step.results:
        where = "".join(f", {label} {value}" for label, value in result.labels.items())
        text = result.values.get("text")
        if isinstance(text, str):
            lines += [f"{result.name}{where}: {line}" for line in text.splitlines() if line.strip()]
        else:
            known = ", ".join(
                f"{name.replace('_', ' ')} {value}"
                for name, value in result.values.items()
                if value is not None
            )
            lines.append(f"{result.name}{where}: {known}")
    return lines


def _cost_lines(steps: Sequence[Step], names: Mapping[str, str]) -> list[str]:
    """What recording the kernel's events cost: of several steps the largest; empty if not measured."""
    costs = [
        (step, step.explain.cost)
        for step in steps
        if step.explain is not None and step.explain.cost is not None
    ]
    if not costs:
        return []
    step, worst = max(costs, key=lambda known: (known[1].low_ns > 0, known[1].median_ns))
    if len(costs) == 1:
        return [f"recording the kernel's events {worst.words}"]
    if worst.low_ns <= 0:
        return [f"recording the kernel's events has no measurable cost in {len(costs)} steps"]
    return [
        f"recording the kernel's events {worst.words} in {names[step.id]}, the most of {len(costs)} steps"
    ]


def step_lines(steps: Sequence[Step], names: Mapping[str, str]) -> list[str]:
    """The lines of all steps behind their names, what explaining cost, and which outliers are one event."""
    lines = [f"{names[step.id]}, {line}" for step in steps for line in _own_lines(step)]
    lines += _cost_lines(steps, names)
    together = [f"{names[step.id]}: {words}" for step in steps if (words := step_words(step)) is not None]
    return [*lines, f"joined in time: {'; '.join(together)}"] if together else lines


def _own_lines(step: Step) -> list[str]:
    if step.end_reason == "imported":
        return _imported_lines(step)
    presenter = presenter_of(step.key.probe)
    return [] if presenter is None else presenter.lines(step)


def frequency_grids(records: Sequence[Record], width: int | None = None) -> list[Table]:
    """The tables that presenters have beside those of the frequencies."""
    steps = [step for record in records for step in record.steps]
    return [grid for presenter, _ in presenters(steps) for grid in presenter.frequency_grids(records, width)]
