# SPDX-License-Identifier: MIT
"""Makes the page of a record with templates/page.html.j2: one HTML file that needs no network."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtgauge.probe.registry import plural_of
from rtgauge.record.facts import AuditSummary
from rtgauge.record.model import Mark, Run, Step
from rtgauge.record.reader import PAGE, Record
from rtgauge.record.writer import write_page as write_record_page
from rtgauge.report import method, tables
from rtgauge.report.changes import change_tables
from rtgauge.report.conclusion import Conclusion, conclude, cross_check_lines, outcome_table, repeat_lines
from rtgauge.report.deployment import DeploymentTable, deployment_table
from rtgauge.report.drawn_figures import Drawn
from rtgauge.report.fact_rows import all_rows, hosts, short_rows, system_lines
from rtgauge.report.figure_data import Source
from rtgauge.report.figures.vega import Figure, config
from rtgauge.report.marks import GatheredMark, gathered_marks, sighting_table
from rtgauge.report.page_frame import drawing_code, template_text, templates, write_page
from rtgauge.report.presenter import Chapter, presenters, step_lines
from rtgauge.report.record_view import RecordView, common_quantity, example_requirement
from rtgauge.report.sustained_tables import timing_grids
from rtgauge.report.table import Table, pairs
from rtgauge.report.text import capital, quantity
from rtgauge.units import plural

Pairs = list[tuple[str, str]]
"""(name, value) of each row of a table."""


@dataclass(frozen=True)
class Chart:
    """One chart of a figure; `index`: its position among the figure's specifications."""

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
class DetailStep:
    """One step CPU by CPU, and its measuring threads."""

    name: str
    series: Table
    threads: Table


@dataclass(frozen=True)
class LoadProgram:
    """A program of a load, with the values it should reach and did reach, with units."""

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
class Facts:
    """A machine: the main facts, all of them, and the audit from the time of measuring."""

    name: str
    short: Table
    all: Table
    audit: AuditSummary | None


@dataclass(frozen=True)
class Page:
    """The content of the page, in order."""

    run: Run
    hosts: list[str]
    when: str
    """The run's start in UTC, for people."""
    plan: str
    """The name of the plan."""
    system: list[str]
    """The machines, a line each."""
    conclusion: Conclusion
    outcomes: Table | None
    """The outcome of each step, if there are several."""
    example: str | None
    """A command that would give a verdict, if no requirement was given."""
    unfinished: str | None
    marks: list[GatheredMark]
    first_chapters: list[Chapter]
    numbers: dict[str, Table]
    """The table of each quantity, idle and loaded."""
    compares: bool
    """Whether both idle and a load were measured."""
    lines: list[str]
    """Lines on repeats, cross-checks and counts."""
    elsewhere: Chapter | None
    """The chapter that says what was measured, if `numbers` is empty."""
    figures: dict[str, FigureView]
    cpus: list[str]
    frequency: list[Table]
    """Tables of how often a task can run."""
    timing: list[str]
    """The names of the figures on frequencies."""
    chapters: list[Chapter]
    detail: list[DetailStep]
    largest: dict[str, Table]
    """The largest values, by step name."""
    largest_name: str
    """The quantity of the largest values, if all steps share it."""
    loads: list[LoadOfStep]
    deployments: dict[str, DeploymentTable]
    sightings: Table | None
    """The marks, step by step."""
    folded: list[tuple[str, int]]
    """(probe, number of its steps) of probes shown below by one step per load and deployment."""
    changes: dict[str, list[Table]]
    """The changes during each step, by step name."""
    facts: list[Facts]
    method: list[str]
    """How it was measured, a paragraph each."""
    tools: list[str]
    command: str
    parameters: Table
    clocks: dict[str, Table]
    """The clock of each step, by step name."""
    calibrations: Table
    data: dict[str, object]
    """Data for the script, as JSON."""


MOST_LINES = 16
"""Longer tables of a step's series are folded."""


def _example(steps: Sequence[Step]) -> str | None:
    """A command that would give a verdict on the measured quantity."""
    requirement = example_requirement(steps)
    if requirement is None:
        return None
    command = "run" if not steps or requirement == example_requirement([]) else f"probe {steps[0].key.probe}"
    return f'rtgauge {command} --require "{requirement}"'


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


def _programs(step: Step) -> list[LoadProgram]:
    return [
        LoadProgram(
            program=" ".join(part for part in (item.program, item.version) if part),
            command=shlex.join(item.argv),
            wanted=[quantity(key, figure) for key, figure in item.wanted.items()],
            reached=[quantity(key, figure) for key, figure in item.reached.items()],
            ended_early=item.ended_early,
        )
        for item in step.load.parts
    ]


def page_of(drawing: Drawn) -> Page:
    """The content of the page. Raises RecordError for a damaged record."""
    source, drawn = drawing.source, drawing.figures
    view = source.whole
    run, outcomes, marks = view.record.run, outcome_table(view), gathered_marks(view)
    # The hundreds of steps of a folded probe would all look alike.
    shown, few = view.unfolded, view.representatives
    names = few.labels
    chapters = [
        chapter
        for presenter, own in presenters(view.steps)
        if (chapter := presenter.chapter(view, own, drawn)) is not None
    ]
    first = [chapter for chapter in chapters if chapter.place == "first"]
    loads = {step.key.load for step in shown.steps}
    data: dict[str, object] = {
        "figures": {name: figure.specs for name, figure in drawn.items()},
        "config": {theme: config(theme, len(source.cpus)) for theme in ("light", "dark")},
    }
    for chapter in chapters:
        data |= chapter.data
    return Page(
        run=run,
        hosts=hosts(view.record),
        when=f"{run.created[:16].replace('T', ' ')} UTC",
        plan=str(run.plan.get("name", "run")),
        system=system_lines(view.record),
        conclusion=conclude(view),
        outcomes=outcomes if len(outcomes.rows) > 1 else None,
        example=None if run.verdicts else _example(shown.steps),
        unfinished=None
        if run.state == "complete"
        else f"{len(run.steps)} of {plural(len(run.planned), 'planned step')} are here.",
        marks=marks,
        first_chapters=first,
        numbers=tables.load_tables(shown),
        compares="idle" in loads and len(loads) > 1,
        lines=[*repeat_lines(shown), *cross_check_lines(shown), *step_lines(shown.steps, shown.labels)],
        elsewhere=next(iter(first or chapters), None) if view.steps else None,
        figures={name: _figure(figure, source) for name, figure in drawn.items()},
        cpus=source.cpus,
        frequency=timing_grids([view.record], drawing.gathered, drawing.curves),
        timing=[figure.name for figure in drawing.timing],
        chapters=[chapter for chapter in chapters if chapter.place != "first"],
        detail=_detail(shown),
        largest={
            (name := shown.labels[step.id]): tables.largest_table(step, name)
            for step in shown.steps
            if step.outliers and not step.tasks
        },
        largest_name=plural_of(common_quantity(shown.steps)),
        loads=[
            LoadOfStep(names[step.id], step.load.name, _programs(step), step.load.notes) for step in few.steps
        ],
        deployments={
            names[step.id]: deployment_table(step.deployment)
            for step in few.steps
            if step.deployment is not None
        },
        sightings=sighting_table(marks),
        folded=view.folded_probes,
        changes={names[step.id]: change_tables(step) for step in few.steps},
        facts=[
            Facts(
                name,
                pairs(f"Facts of {name}", short_rows(facts)),
                pairs(f"All facts of {name}", all_rows(facts)),
                facts.audit,
            )
            for name, facts in view.record.systems.items()
        ],
        method=method.method_words(view),
        tools=method.tools(view),
        command=shlex.join(run.command),
        parameters=pairs("Parameters", method.parameter_rows(few) + method.cpu_rows(view)),
        clocks={
            names[step.id]: pairs(f"The clock, step {names[step.id]}", method.clock_rows(step))
            for step in few.steps
            if step.clock
        },
        calibrations=method.clock_table(method.calibrations(few)),
        data=data,
    )


def html(record: Record, drawn: Drawn | None = None) -> str:
    """The page as text, with everything from the record escaped.

    `drawn`: its figures, if already drawn. Raises RecordError for a damaged record.
    """
    page = page_of(drawn or Drawn.of(record))
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


def render(record: Record, out: Path | None = None, drawn: Drawn | None = None) -> Path:
    """Write the page of `record` whole or not at all, to `out` or as report.html into the record's folder;
    returns its path.

    Raises InputError if it cannot be written, RecordError for a damaged record.
    """
    text = html(record, drawn)
    if out is None:
        return write_record_page(record.folder, PAGE, text)
    write_page(text, out)
    return out
