# SPDX-License-Identifier: MIT
"""Gathers a record's marks: each mark once, with its steps and details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rtgauge.record.marks import MarkKindBase, mark_kinds
from rtgauge.record.model import Mark, Severity, Step
from rtgauge.report.record_view import RecordView, series_name
from rtgauge.report.table import Cell, Column, Table, Tone, texts
from rtgauge.units import plural

SEVERITIES = (Severity.INVALID, Severity.DOUBTFUL, Severity.NOTE)
"""The severities, the worst first."""
SHOWN = 4
"""The most steps to name, if only some have the mark in its highest severity."""


@dataclass(frozen=True)
class Sighting:
    """A mark in one place: the step (and CPU), the severity there, and the detail."""

    place: str
    severity: Severity
    detail: str
    step: str | None


@dataclass(frozen=True)
class GatheredMark:
    """A mark of any number of steps, with its severity in the worst place.

    `where`: "on 5 of 5 steps", "under cpu, CPU 1", or "" for the whole run.
    """

    name: str
    where: str
    sightings: list[Sighting]
    """The most severe sighting comes first."""

    @property
    def severity(self) -> Severity:
        """The severity in the worst place."""
        return self.sightings[0].severity

    @property
    def kind(self) -> MarkKindBase | None:
        """The mark's kind; None for a mark of another version, or of an extension that is not installed."""
        return mark_kinds().get(self.name)

    @property
    def several(self) -> bool:
        """Whether the details differ between places."""
        return len({sighting.detail for sighting in self.sightings}) > 1

    @property
    def detail(self) -> str:
        """The detail in the worst place; if details differ, with that place."""
        first = self.sightings[0]
        same_place = not self.several or self.where.endswith(first.place)
        return first.detail if same_place else f"{first.place}: {first.detail}"


def _place(step: Step, mark: Mark, names: dict[str, str]) -> str:
    if mark.series is None:
        return names[step.id]
    named = (series_name(summary) for summary in step.series if summary.series == mark.series)
    return f"{names[step.id]}, {next(named, f'series {mark.series}')}"


def _where(sightings: list[Sighting], steps: int, names: dict[str, str]) -> str:
    marked_steps = list(dict.fromkeys(sighting.step for sighting in sightings if sighting.step is not None))
    if not marked_steps or steps == 1:
        return ""
    if len(sightings) == 1:
        return f"under {sightings[0].place}"
    worst = sightings[0].severity
    at_worst = (sighting.step for sighting in sightings if sighting.severity is worst)
    worst_steps = list(dict.fromkeys(step for step in at_worst if step is not None))
    where = f"on {len(marked_steps)} of {plural(steps, 'step')}"
    if len(worst_steps) == len(marked_steps):
        return where
    more = ", ..." if len(worst_steps) > SHOWN else ""
    return f"{where}, {worst.value} under {', '.join(names[step] for step in worst_steps[:SHOWN])}{more}"


def gathered_marks(view: RecordView) -> list[GatheredMark]:
    """Return each mark of the record once, the most severe first."""
    names = view.labels
    by_name: dict[str, list[Sighting]] = {}
    for mark in view.record.run.marks:
        by_name.setdefault(mark.name, []).append(Sighting("the whole run", mark.severity, mark.detail, None))
    for step in view.steps:
        for mark in step.marks:
            seen = Sighting(_place(step, mark, names), mark.severity, mark.detail, step.id)
            by_name.setdefault(mark.name, []).append(seen)
    for sightings in by_name.values():
        sightings.sort(key=lambda sighting: SEVERITIES.index(sighting.severity))
    steps = len(view.record.steps)
    gathered = [GatheredMark(name, _where(seen, steps, names), seen) for name, seen in by_name.items()]
    return sorted(gathered, key=lambda mark: SEVERITIES.index(mark.severity))


TONES: dict[Severity, Tone] = {
    Severity.INVALID: "alarm",
    Severity.DOUBTFUL: "doubt",
    Severity.NOTE: "quiet",
}
MOST_SIGHTINGS = 60


def sighting_table(marks: Sequence[GatheredMark]) -> Table | None:
    """Return every mark in every place, at most MOST_SIGHTINGS per mark; None if no mark's details differ."""
    if not any(mark.several for mark in marks):
        return None
    rows = [
        [mark.name, Cell(sighting.severity.value, TONES[sighting.severity]), sighting.place, sighting.detail]
        for mark in marks
        for sighting in mark.sightings[:MOST_SIGHTINGS]
    ]
    columns = [Column("mark", "nowrap"), *texts("severity"), Column("where", "nowrap")]
    note = "note: worth knowing; doubtful: read the figures with care; invalid: do not use them."
    return Table("Marks", [*columns, Column("what was seen", "prose")], rows, [note])
