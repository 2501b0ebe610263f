# SPDX-License-Identifier: MIT
"""What the page shows: one dataclass a section, in the page's order. templates/page.html.j2 has the same
names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.record.facts import AuditSummary
    from rtgauge.record.model import LeftOut, Mark, Run
    from rtgauge.report.conclusion import Conclusion
    from rtgauge.report.deployment_table import DeploymentTable
    from rtgauge.report.marks import GatheredMark
    from rtgauge.report.presenter import Chapter
    from rtgauge.report.table import Table

Pairs = list[tuple[str, str]]
"""(name, value) of each line of a table."""


@dataclass(frozen=True)
class Header:
    """The machines and the run.

    `when`: its beginning in UTC, for people; `plan`: what was run; `system`: the machines in lines.
    """

    run: Run
    hosts: list[str]
    when: str
    plan: str
    system: list[str]


@dataclass(frozen=True)
class VerdictSection:
    """The answer.

    `outcomes`: how each step did, if there are several; `example`: a command that would give a verdict, if no
    requirement was given.
    """

    conclusion: Conclusion
    outcomes: Table | None
    example: str | None
    unfinished: str | None
    marks: list[GatheredMark]
    left_out: list[LeftOut]


@dataclass(frozen=True)
class NumbersSection:
    """Idle beside loaded: a table a quantity.

    `compares`: both idle and a load were measured; `lines`: of repeats, a cross-check, and what was counted;
    `elsewhere`: (id of a chapter, what the run measured), if no quantity has a line here.
    """

    tables: dict[str, Table]
    compares: bool
    lines: list[str]
    elsewhere: tuple[str, str] | None


@dataclass(frozen=True)
class Chart:
    """One chart of a figure. `index`: its place among the specifications of the figure."""

    index: int
    title: str
    label: str
    marks: list[Mark]


@dataclass(frozen=True)
class FigureView:
    """A figure with its caption."""

    name: str
    title: str
    notes: list[str]
    charts: list[Chart]


@dataclass(frozen=True)
class FrequencySection:
    """How often a task can run. `figures`: names."""

    grids: list[Table]
    figures: list[str]


@dataclass(frozen=True)
class DetailStep:
    """One step CPU by CPU, and its measuring threads."""

    name: str
    series: Table
    threads: Table


@dataclass(frozen=True)
class LargestSection:
    """The largest values, a table a step by its name; `plural` names what the steps have in common."""

    plural: str
    tables: dict[str, Table]


@dataclass(frozen=True)
class LoadProgram:
    """A program of a load: what it had to reach and what it did reach, with units."""

    program: str
    command: str
    wanted: Pairs
    reached: Pairs
    ended_early: str | None


@dataclass(frozen=True)
class LoadOfStep:
    """The load of one step."""

    name: str
    load: str
    programs: list[LoadProgram]
    notes: list[str]


@dataclass(frozen=True)
class ChangesSection:
    """What changed over each step.

    `folded`: (probe, number of its steps) of which only one of each load and deployment is here.
    """

    folded: list[tuple[str, int]]
    steps: dict[str, list[Table]]


@dataclass(frozen=True)
class Facts:
    """One machine: the facts in short, all of them, and what the audit found when it was measured, None where
    that is not known.
    """

    name: str
    short: Table
    all: Table
    audit: AuditSummary | None


@dataclass(frozen=True)
class MethodSection:
    """How it was measured. `clocks`: a table a step."""

    paragraphs: list[str]
    tools: list[str]
    command: str
    parameters: Table
    clocks: dict[str, Table]
    calibrations: Table


@dataclass(frozen=True)
class Page:
    """All sections. `figures`: by name; `data`: for the script, as JSON."""

    header: Header
    verdict: VerdictSection
    first_chapters: list[Chapter]
    numbers: NumbersSection
    figures: dict[str, FigureView]
    cpus: list[str]
    frequency: FrequencySection
    chapters: list[Chapter]
    detail: list[DetailStep]
    largest: LargestSection
    loads: list[LoadOfStep]
    deployments: dict[str, DeploymentTable]
    marks: Table | None
    changes: ChangesSection
    facts: list[Facts]
    method: MethodSection
    data: dict[str, object]
