# SPDX-License-Identifier: MIT
"""Presents what a probe shows beyond the tables and figures that every probe has.

Extensions register presenters by the name of a probe, or of a file that steps keep. A presenter is imported
when a record has a step for it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from rich.console import Console

from rtgauge import extension
from rtgauge.analysis.spikes import step_words
from rtgauge.known_extensions import from_where
from rtgauge.probe.probe_registry import probe_of
from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.report.figures.vega import Figure
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table


@dataclass(frozen=True)
class Chapter:
    """A section of the page. Its template, from any package, reads it as `chapter`."""

    id: str
    heading: str
    content: object
    """The content as the template reads it: a list of tables, unless the chapter has its own template."""
    measured: str
    """The end of the sentence "This run measured ...", for a run that has no other numbers."""
    template: str = "rtgauge.report/tables.html.j2"
    """`package/file.html.j2`: a file in that package's folder `templates`."""
    place: Literal["first", "after frequencies"] = "first"
    figures: Sequence[str] = ()
    """The names of the figures to show below the first table."""


class Presenter:
    """Shows nothing; probes override methods. `steps`: the probe's steps, in the conditions' order."""

    def conclusion(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002
        """Return the steps' result as part of a sentence; None if the largest values say enough."""
        return None

    def headline(self, view: RecordView) -> str | None:  # noqa: ARG002
        """Return the answer of a study in a few words; None if it has none."""
        return None

    def cause(self, view: RecordView, steps: Sequence[Step]) -> str | None:  # noqa: ARG002
        """Return what took most of the late time; None if that is not known."""
        return None

    def figures(self, view: RecordView, steps: Sequence[Step]) -> list[Figure]:  # noqa: ARG002 - to be overridden
        """Return the probe's figures. Raises RecordError for a damaged record."""
        return []

    def chapter(self, view: RecordView, steps: Sequence[Step], drawn: Container[str]) -> Chapter | None:  # noqa: ARG002
        """Return the probe's chapter; `drawn`: names of the page's figures. Raises RecordError for damage."""
        return None

    def frequency_grids(self, records: Sequence[Record]) -> list[Table]:  # noqa: ARG002
        """Return the probe's tables of frequencies over all records."""
        return []

    def lines(self, step: Step) -> list[str]:  # noqa: ARG002
        """Return lines about one step, such as the probe's own counts, to show below the tables."""
        return []

    def print_tables(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print the probe's tables in the terminal."""

    def print_brief(self, view: RecordView, steps: Sequence[Step], console: Console) -> None:
        """Print the tables that belong to a short summary."""
        self.print_tables(view, steps, console)


@cache
def presenters_of(name: str) -> list[Presenter]:
    """Return the presenters registered for a probe, or for a kept file; empty if the tables and figures that
    every probe has are enough.

    Raises InputError if a package that registers one cannot be imported, or registers something else.
    """
    return [cast("Presenter", loaded) for loaded in extension.load_all("presenters", name, Presenter)]


def presenters(steps: Sequence[Step]) -> list[tuple[Presenter, list[Step]]]:
    """Return the presenters of these steps, each with its steps: first presenters of kept files, then of
    probes, in their order.
    """
    probes = {probe.name: probe for probe in map(probe_of, steps)}
    files = dict.fromkeys(file for step in steps for file in step.checksums)
    steps_of: dict[Presenter, list[Step]] = {}
    for file in files:
        for presenter in presenters_of(file):
            steps_of.setdefault(presenter, []).extend(step for step in steps if file in step.checksums)
    for probe in sorted(probes.values(), key=lambda probe: (probe.order, probe.name)):
        for presenter in presenters_of(probe.name):
            steps_of.setdefault(presenter, [])
    for step in steps:
        for presenter in presenters_of(step.key.probe):
            steps_of[presenter].append(step)
    return list(steps_of.items())


def _imported_lines(step: Step) -> list[str]:
    """Return another tool's results, one per line. A text keeps its lines."""
    lines: list[str] = []
    for result in step.results:
        where = "".join(f", {label} {value}" for label, value in result.labels.items())
        text = result.values.get("text")
        if isinstance(text, str):
            lines += [f"{result.name}{where}: {line}" for line in text.splitlines() if line.strip()]
        else:
            known = ", ".join(
                f"{name.replace('_', ' ')} {part}" for name, part in result.values.items() if part is not None
            )
            lines.append(f"{result.name}{where}: {known}")
    return lines


def _cost_lines(steps: Sequence[Step], names: Mapping[str, str]) -> list[str]:
    """Return lines with the cost of recording kernel events, the largest of several steps; empty if not
    measured.
    """
    costs = [(step, step.explain.cost) for step in steps if step.explain is not None]
    costs = [(step, cost) for step, cost in costs if cost is not None]
    if not costs:
        return []
    step, worst = max(costs, key=lambda known: (known[1].low_ns > 0, known[1].median_ns))
    if len(costs) == 1:
        return [f"recording the kernel's events {worst.words}"]
    if worst.low_ns <= 0:
        return [f"it is unknown what recording the kernel's events costs in any of the {len(costs)} steps"]
    return [
        (
            f"recording the kernel's events {worst.words} in {names[step.id]}, more than in any other of "
            f"{len(costs)} steps"
        )
    ]


def step_lines(steps: Sequence[Step], names: Mapping[str, str]) -> list[str]:
    """Return the lines below the tables: each step's own lines after its name, then the cost of recording
    kernel events, then the outliers that are simultaneous. `names`: step id -> name.
    """
    lines = own_lines(steps, names)
    lines += _cost_lines(steps, names)
    together = [f"{names[step.id]}: {words}" for step in steps if (words := step_words(step)) is not None]
    return [*lines, f"simultaneous: {'; '.join(together)}"] if together else lines


def own_lines(steps: Sequence[Step], names: Mapping[str, str]) -> list[str]:
    """Return each step's own lines after its name, and a line for each probe whose extension is missing.
    `names`: step id -> name.
    """
    lines = [f"{names[step.id]}, {line}" for step in steps for line in _own_lines(step)]
    probes = {name: from_where("probes", name) for name in dict.fromkeys(step.key.probe for step in steps)}
    return [
        *lines,
        *(f"{name} is shown without its own tables{missing}" for name, missing in probes.items() if missing),
    ]


def _own_lines(step: Step) -> list[str]:
    if step.end_reason == "imported":
        return _imported_lines(step)
    return [line for presenter in presenters_of(step.key.probe) for line in presenter.lines(step)]


def frequency_grids(records: Sequence[Record]) -> list[Table]:
    """Return the tables that presenters add to the tables of frequencies."""
    steps = [step for record in records for step in record.steps]
    return [grid for presenter, _ in presenters(steps) for grid in presenter.frequency_grids(records)]
