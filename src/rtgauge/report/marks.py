# SPDX-License-Identifier: MIT
"""The marks of a record, gathered: each once, with how many steps have it and what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.record.model import Severity
from rtgauge.report.conditions import ordered_steps, step_labels
from rtgauge.report.tables import series_name
from rtgauge.units import plural

if TYPE_CHECKING:
    from rtgauge.record.model import Mark, Step
    from rtgauge.record.reader import Record

SEVERITIES = (Severity.INVALID, Severity.DOUBTFUL, Severity.NOTE)
"""The worst first."""


@dataclass(frozen=True)
class GatheredMark:
    """One mark of any number of steps. `where`: "on 5 of 5 steps", "under cpu, CPU 1", or "" for the whole run; `details`: (place, what was seen)."""

    name: str
    severity: Severity
    where: str
    details: list[tuple[str, str]]

    @property
    def several(self) -> bool:
        """Whether the steps saw different things."""
        return len({seen for _, seen in self.details}) > 1

    @property
    def detail(self) -> str:
        """What was seen, with the place of the first where the others saw something else."""
        place, text = self.details[0]
        return f"{place}: {text}" if self.several else text


def _place(step: Step, mark: Mark, names: dict[str, str]) -> str:
    if mark.series is None:
        return names[step.id]
    series = next((series_name(summary) for summary in step.series if summary.series == mark.series), f"series {mark.series}")
    return f"{names[step.id]}, {series}"


def gathered_marks(record: Record) -> list[GatheredMark]:
    """Every mark of the record once, the severest first."""
    names = step_labels(record)
    places: dict[tuple[Severity, str], list[tuple[str, str, str]]] = {}
    for mark in record.run.marks:
        places.setdefault((mark.severity, mark.name), []).append(("", "the whole run", mark.detail))
    for step in ordered_steps(record):
        for mark in step.marks:
            places.setdefault((mark.severity, mark.name), []).append((step.id, _place(step, mark, names), mark.detail))
    gathered: list[GatheredMark] = []
    for (severity, name), seen in places.items():
        steps = {step for step, _, _ in seen} - {""}
        if not steps:
            where = ""
        elif len(seen) == 1 and len(record.steps) > 1:
            where = f"under {seen[0][1]}"
        else:
            where = f"on {len(steps)} of {plural(len(record.steps), 'step')}" if len(record.steps) > 1 else ""
        gathered.append(GatheredMark(name, severity, where, [(place, detail) for _, place, detail in seen]))
    return sorted(gathered, key=lambda mark: SEVERITIES.index(mark.severity))
