# SPDX-License-Identifier: MIT
"""The page of a record: one HTML file that works from disk, without a network. templates/page.html.j2 has the
names of its sections.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rtgauge.probe.registry import plural_of
from rtgauge.record.reader import PAGE
from rtgauge.record.writer import write_page as write_record_page
from rtgauge.report import method, tables
from rtgauge.report.calibrations import clock_table
from rtgauge.report.changes import change_tables
from rtgauge.report.conclusion import conclude, cross_check_lines, outcome_table, repeat_lines
from rtgauge.report.deployment import deployment_table
from rtgauge.report.drawn_figures import Drawn
from rtgauge.report.fact_rows import all_rows, hosts, short_rows, system_lines
from rtgauge.report.figures.vega import config
from rtgauge.report.frequency_tables import Timing
from rtgauge.report.marks import gathered_marks, sighting_table
from rtgauge.report.page_frame import drawing_code, template_text, templates, write_page
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.record_view import common_quantity, example_requirement
from rtgauge.report.sustained_tables import timing_grids
from rtgauge.report.table import pairs
from rtgauge.report.text import capital, quantity
from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rtgauge.record.facts import AuditSummary
    from rtgauge.record.model import LeftOut, Mark, Run, Step
    from rtgauge.record.reader import Record
    from rtgauge.report.conclusion import Conclusion
    from rtgauge.report.deployment import DeploymentTable
    from rtgauge.report.figure_data import Source
    from rtgauge.report.figures.vega import Figure
    from rtgauge.report.marks import GatheredMark
    from rtgauge.report.presenter import Chapter
    from rtgauge.report.record_view import RecordView
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
    """A machine: the facts in short, all of them, and what the audit found when it was measured."""

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


MOST_LINES = 16
"""Longer tables of a step's series are folded."""


def _example(steps: Sequence[Step]) -> str | None:
    """A command that ends in a verdict on what was measured."""
    requirement = example_requirement(steps)
    if requirement is None:
        return None
    command = "run" if not steps or requirement == example_requirement([]) else f"probe {steps[0].key.probe}"
    return f'rtgauge {command} --require "{requirement}"'


def _verdict(view: RecordView) -> VerdictSection:
    run = view.record.run
    outcomes = outcome_table(view)
    planned = plural(len(run.planned), "planned step")
    return VerdictSection(
        conclusion=conclude(view),
        outcomes=outcomes if len(outcomes.rows) > 1 else None,
        example=None if run.verdicts else _example(view.unfolded.steps),
        unfinished=None if run.state == "complete" else f"{len(run.steps)} of {planned} are here.",
        marks=gathered_marks(view),
        left_out=run.left_out,
    )


def _when(created: str) -> str:
    """2026-11-21T10:03:22Z -> "2026-11-21 10:03 UTC"."""
    return f"{created[:16].replace('T', ' ')} UTC"


def _numbers(view: RecordView, chapters: list[Chapter]) -> NumbersSection:
    shown = view.unfolded
    first = sorted(chapters, key=lambda chapter: chapter.place != "first")[:1] if view.steps else []
    loads = {step.key.load for step in shown.steps}
    return NumbersSection(
        tables.load_tables(shown),
        "idle" in loads and len(loads) > 1,
        [*repeat_lines(shown), *cross_check_lines(shown), *step_lines(shown.steps, shown.labels)],
        next(((chapter.id, chapter.measured) for chapter in first), None),
    )


def _marks_of(source: Source, label: str) -> list[Mark]:
    """The marks on the steps of one condition, each once."""
    condition = source.conditions.get(label)
    marks = (
        {(mark.severity, mark.name): mark for step in condition.steps for mark in step.marks}
        if condition
        else {}
    )
    return list(marks.values())


def _figure(figure: Figure, source: Source) -> FigureView:
    worst = {label: condition.worst for label, condition in source.conditions.items()}
    marked = [f"{label} ({severity.value})" for label, severity in worst.items() if severity is not None]
    pooled = any(len(condition.steps) > 1 for condition in source.conditions.values())
    notes = [*figure.notes]
    if pooled and figure.name in {"histogram", "exceedance"}:
        notes.append("Repeats are added up.")
    if marked:
        notes.append(f"Marked: {', '.join(marked)}.")
    charts: list[Chart] = []
    for index, spec in enumerate(figure.specs):
        title = figure.titles[index] if figure.titles else ""
        charts.append(Chart(index, title, str(spec["description"]), _marks_of(source, title)))
    return FigureView(figure.name, figure.title, notes, charts)


def _detail(view: RecordView) -> list[DetailStep]:
    details: list[DetailStep] = []
    for step in view.steps:
        if not step.tasks:
            name = view.labels[step.id]
            series = tables.series_table(step, name)
            threads = tables.thread_table(tables.heard_series(step), "CPU", f"step {name}")
            folded = replace(series, folded=len(series.rows) > MOST_LINES)
            details.append(DetailStep(name, folded, replace(threads, notes=[THREADS_NOTE])))
    return details


THREADS_NOTE = (
    "Times in us. lost: samples taken and not kept; impossible: negative values, in no other figure; run "
    "delay: time that the thread was ready and did not run, over the measured phase."
)


def _load(step: Step, name: str) -> LoadOfStep:
    programs = [
        LoadProgram(
            program=" ".join(part for part in (item.program, item.version) if part),
            command=shlex.join(item.argv),
            wanted=[quantity(key, figure) for key, figure in item.wanted.items()],
            reached=[quantity(key, figure) for key, figure in item.reached.items()],
            ended_early=item.ended_early,
        )
        for item in step.load.parts
    ]
    return LoadOfStep(name, step.load.name, programs, step.load.notes)


def _method(view: RecordView) -> MethodSection:
    few = view.representatives
    names = few.labels
    return MethodSection(
        paragraphs=method.method_words(view),
        tools=method.tools(view),
        command=shlex.join(view.record.run.command),
        parameters=pairs("Parameters", method.parameter_rows(few) + method.cpu_rows(view)),
        clocks={
            names[step.id]: pairs(f"The clock, step {names[step.id]}", method.clock_rows(step))
            for step in few.steps
            if step.clock
        },
        calibrations=clock_table(method.calibrations(few)),
    )


def page_of(drawing: Drawn) -> Page:
    """Everything on the page. Raises RecordError for a damaged record."""
    source, drawn = drawing.source, drawing.figures
    view = source.whole
    # What shows each step by itself would show the same for each of the hundreds of steps of a folded probe.
    shown, few = view.unfolded, view.representatives
    chapters = [
        chapter
        for presenter, own in presenters(view.steps)
        if (chapter := presenter.chapter(view, own, drawn)) is not None
    ]
    data: dict[str, object] = {
        "figures": {name: figure.specs for name, figure in drawn.items()},
        "config": {theme: config(theme, len(source.cpus)) for theme in ("light", "dark")},
    }
    for chapter in chapters:
        data |= chapter.data
    run, verdict = view.record.run, _verdict(view)
    largest = [step for step in shown.steps if step.outliers and not step.tasks]
    return Page(
        header=Header(
            run,
            hosts(view.record),
            _when(run.created),
            str(run.plan.get("name", "run")),
            system_lines(view.record),
        ),
        verdict=verdict,
        first_chapters=[chapter for chapter in chapters if chapter.place == "first"],
        numbers=_numbers(view, chapters),
        figures={name: _figure(figure, source) for name, figure in drawn.items()},
        cpus=source.cpus,
        frequency=FrequencySection(
            timing_grids([view.record], drawing.gathered, drawing.curves),
            [figure.name for figure in drawing.timing],
        ),
        chapters=[chapter for chapter in chapters if chapter.place != "first"],
        detail=_detail(shown),
        largest=LargestSection(
            plural_of(common_quantity(shown.steps)),
            {(name := shown.labels[step.id]): tables.largest_table(step, name) for step in largest},
        ),
        loads=[_load(step, few.labels[step.id]) for step in few.steps],
        deployments={
            few.labels[step.id]: deployment_table(step.deployment)
            for step in few.steps
            if step.deployment is not None
        },
        marks=sighting_table(verdict.marks),
        changes=ChangesSection(
            view.folded_probes, {few.labels[step.id]: change_tables(step) for step in few.steps}
        ),
        facts=[
            Facts(
                name,
                pairs(f"Facts of {name}", short_rows(facts)),
                pairs(f"All facts of {name}", all_rows(facts)),
                facts.audit,
            )
            for name, facts in view.record.systems.items()
        ],
        method=_method(view),
        data=data,
    )


def html(record: Record, timing: Timing | None = None, drawn: Drawn | None = None) -> str:
    """The page as text.

    All that comes from the record is escaped. `timing`: how frequencies are judged, and the markers of their
    figures.

    `drawn`: the figures, where they are drawn already.

    Raises RecordError for a damaged record.
    """
    page = page_of(drawn or Drawn.of(record, timing or Timing()))
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            page=page,
            capital=capital,
            style=template_text("style.css"),
            script=template_text("page.js"),
            engine=drawing_code(),
        )
    )


def render(
    record: Record, out: Path | None = None, timing: Timing | None = None, drawn: Drawn | None = None
) -> Path:
    """Write the page of `record` to `out`, or as report.html into the record's folder as it was opened; it is
    complete or not there.

    Gives its path.

    Raises InputError where it cannot be written, RecordError for a damaged record.
    """
    text = html(record, timing, drawn)
    if out is None:
        return write_record_page(record.folder, PAGE, text)
    write_page(text, out)
    return out
