# SPDX-License-Identifier: MIT
"""The page of a record: one HTML file that works from disk, without a network. page_model.py says what is on
it, templates/page.html.j2 how it looks.
"""

from __future__ import annotations

import functools
import shlex
from importlib import resources
from typing import TYPE_CHECKING

from rtgauge.escape import escaped
from rtgauge.probe.registry import plural_of, probe_of
from rtgauge.record.files import clear_errors, write_whole
from rtgauge.record.reader import PAGE
from rtgauge.record.writer import write_page as write_record_page
from rtgauge.report import frequency_tables, method, sustained_tables, tables
from rtgauge.report.calibrations import clock_table
from rtgauge.report.changes import change_tables
from rtgauge.report.conclusion import conclude, cross_check_lines, outcomes, repeat_lines
from rtgauge.report.conditions import (
    folded_probes,
    ordered_steps,
    representatives,
    step_labels,
    without_folded,
)
from rtgauge.report.deployment_table import deployment_table
from rtgauge.report.drawing_code import drawing_code
from rtgauge.report.drawn_figures import Drawn
from rtgauge.report.fact_rows import all_rows, hosts, short_rows, system_lines
from rtgauge.report.figures.theme import config
from rtgauge.report.frequency_tables import Timing
from rtgauge.report.marks import gathered_marks
from rtgauge.report.page_model import (
    ChangesSection,
    Chart,
    DetailStep,
    Facts,
    FigureView,
    FrequencySection,
    Header,
    LargestOfStep,
    LargestSection,
    LoadOfStep,
    LoadProgram,
    LoadTable,
    MethodSection,
    NumbersSection,
    Page,
    VerdictSection,
)
from rtgauge.report.presenter import frequency_grids, presenters, step_lines
from rtgauge.report.quantity import LATENCY, capital, common_quantity, example_requirement, quantity_of
from rtgauge.report.text import quantity, whole
from rtgauge.system.audit import audit_summary_of
from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import jinja2

    from rtgauge.record.model import Mark, Step
    from rtgauge.record.reader import Record
    from rtgauge.report.figures.figure import Figure
    from rtgauge.report.figures.source import Source
    from rtgauge.report.presenter import Chapter


def template_text(name: str) -> str:
    """A file of the templates as text: of this package, or `package/file` of another one."""
    package, _, file = name.rpartition("/")
    return (resources.files(package or "rtgauge.report") / "templates" / file).read_text(encoding="utf-8")


def _shown(value: object) -> object:
    """What a template shows; text of ours (markup) stays as it is."""
    return escaped(value) if type(value) is str else value


@functools.cache
def templates() -> jinja2.Environment:
    """The templates of this package by file, and those of presenters by `package/file`; all that they show is
    escaped.
    """
    import jinja2

    loader = jinja2.FunctionLoader(template_text)
    return jinja2.Environment(
        loader=loader,
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _example(steps: Sequence[Step]) -> str | None:
    """A command that ends in a verdict on what was measured."""
    requirement = example_requirement(steps)
    if requirement is None:
        return None
    command = "run" if not steps or requirement == example_requirement([]) else f"probe {steps[0].key.probe}"
    return f'rtgauge {command} --require "{requirement}"'


def _verdict(record: Record, shown: Record) -> VerdictSection:
    run = record.run
    return VerdictSection(
        conclusion=conclude(record),
        outcomes=outcomes(record),
        example=None if run.verdicts else _example(ordered_steps(shown)),
        unfinished=None
        if run.state == "complete"
        else f"{len(run.steps)} of {plural(len(run.planned), 'planned step')} are here.",
        marks=gathered_marks(record),
        left_out=run.left_out,
    )


def _when(created: str) -> str:
    """2026-11-21T10:03:22Z -> "2026-11-21 10:03 UTC"."""
    return f"{created[:16].replace('T', ' ')} UTC"


def _load_tables(shown: Record) -> list[LoadTable]:
    load_tables: list[LoadTable] = []
    for name, rows in tables.load_rows(shown).items():
        probes = {
            probe.name: probe
            for step in shown.steps
            if quantity_of(step) == name and (probe := probe_of(step)).pooled
        }
        missed = list(dict.fromkeys(probe.missed for probe in probes.values() if probe.missed is not None))
        counted = "activations" if name == LATENCY else "samples"
        load_tables.append(
            LoadTable(
                name, rows, counted, "; ".join(missed) if missed and any(row.missed for row in rows) else None
            )
        )
    return load_tables


def _numbers(record: Record, shown: Record, chapters: list[Chapter]) -> NumbersSection:
    names = step_labels(shown)
    lines = step_lines(ordered_steps(shown), names)
    elsewhere = (
        next(
            (
                (known.id, known.measured)
                for known in sorted(chapters, key=lambda known: known.place != "first")
            ),
            None,
        )
        if record.steps
        else None
    )
    loads = {step.key.load for step in shown.steps}
    return NumbersSection(
        _load_tables(shown),
        "idle" in loads and len(loads) > 1,
        [*repeat_lines(shown), *cross_check_lines(shown), *lines],
        elsewhere,
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


def _detail(steps: Sequence[Step], names: dict[str, str]) -> list[DetailStep]:
    return [
        DetailStep(
            names[step.id],
            step,
            quantity_of(step),
            tables.series_rows(step),
            tables.thread_rows(tables.heard_series(step)),
        )
        for step in steps
        if not step.tasks
    ]


def _largest_of(steps: Sequence[Step], names: dict[str, str]) -> LargestSection:
    parts = [
        LargestOfStep(
            names[step.id], quantity_of(step), plural_of(quantity_of(step)), tables.outlier_rows(step)
        )
        for step in steps
        if step.outliers and not step.tasks
    ]
    return LargestSection(plural_of(common_quantity(steps)), parts)


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


def _method(record: Record, few: Record) -> MethodSection:
    names = step_labels(few)
    return MethodSection(
        paragraphs=method.method_words(record),
        tools=method.tools(record),
        command=shlex.join(record.run.command),
        parameters=method.parameter_rows(few) + method.cpu_rows(record),
        clocks=[(names[step.id], method.clock_rows(step)) for step in ordered_steps(few) if step.clock],
        calibrations=clock_table(method.calibrations(few)),
    )


def page_of(record: Record, drawing: Drawn) -> Page:
    """Everything on the page. Raises RecordError for a damaged record."""
    source, gathered, searched, drawn = drawing.source, drawing.gathered, drawing.curves, drawing.figures
    # What shows each step by itself would show the same for each of the hundreds of steps of a folded probe.
    shown, few = without_folded(record), representatives(record)
    names, few_names = step_labels(shown), step_labels(few)
    steps, few_steps = ordered_steps(shown), ordered_steps(few)
    chapters = [
        chapter
        for presenter, own in presenters(ordered_steps(record))
        if (chapter := presenter.chapter(record, own, drawn)) is not None
    ]
    verdict = _verdict(record, shown)
    data: dict[str, object] = {
        "figures": {name: figure.specs for name, figure in drawn.items()},
        "config": {theme: config(theme, len(source.cpus)) for theme in ("light", "dark")},
    }
    for chapter in chapters:
        data |= chapter.data
    return Page(
        header=Header(
            record.run,
            hosts(record),
            _when(record.run.created),
            str(record.run.plan.get("name", "run")),
            system_lines(record),
        ),
        verdict=verdict,
        first_chapters=[chapter for chapter in chapters if chapter.place == "first"],
        numbers=_numbers(record, shown, chapters),
        figures={name: _figure(figure, source) for name, figure in drawn.items()},
        cpus=source.cpus,
        frequency=FrequencySection(
            [
                *frequency_tables.grids([table.table for table in gathered]),
                *frequency_grids([record]),
                *sustained_tables.grids(searched),
            ],
            [figure.name for figure in drawing.timing],
        ),
        chapters=[chapter for chapter in chapters if chapter.place != "first"],
        detail=_detail(steps, names),
        largest=_largest_of(steps, names),
        loads=[_load(step, few_names[step.id]) for step in few_steps],
        deployments=[
            (few_names[step.id], deployment_table(step.deployment))
            for step in few_steps
            if step.deployment is not None
        ],
        marks=verdict.marks,
        changes=ChangesSection(
            folded_probes(record), [(few_names[step.id], change_tables(step)) for step in few_steps]
        ),
        facts=[
            Facts(name, short_rows(facts), all_rows(facts), audit_summary_of(facts))
            for name, facts in record.systems.items()
        ],
        method=_method(record, few),
        headings=list(tables.FIGURES.values()),
        data=data,
    )


def html(record: Record, timing: Timing | None = None, drawn: Drawn | None = None) -> str:
    """The page as text.

    All that comes from the record is escaped. `timing`: how frequencies are judged, and the markers of their
    figures.

    `drawn`: the figures, where they are drawn already.

    Raises RecordError for a damaged record.
    """
    page = page_of(record, drawn or Drawn.of(record, timing or Timing()))
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            page=page,
            capital=capital,
            whole=functools.partial(whole),
            style=template_text("style.css"),
            script=template_text("page.js"),
            engine=drawing_code(),
        )
    )


def write_page(text: str, out: Path) -> None:
    """Write a page to `out`; it is complete or not there.

    Raises InputError where `out` cannot be written, MeasureError for a full disk.
    """
    with clear_errors(out, option="-o", kind="file"):
        write_whole(out, text.encode(errors="replace"))


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
