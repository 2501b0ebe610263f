# SPDX-License-Identifier: MIT
"""Draws the figures of a record, and makes its page from templates/page.html.j2. The page is one HTML file
that needs no network.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtgauge.probe import watch
from rtgauge.probe.probe_registry import plural_of
from rtgauge.record.facts import Facts
from rtgauge.record.model import Step
from rtgauge.record.reader import PAGE, Record
from rtgauge.record.writer import write_page as write_record_page
from rtgauge.report import method, step_tables
from rtgauge.report.answer_table import outcome_table
from rtgauge.report.change_tables import change_tables, deployment_table
from rtgauge.report.fact_rows import all_rows, hosts, short_rows, system_lines
from rtgauge.report.figure_data import Source
from rtgauge.report.figures.course import course_figure
from rtgauge.report.figures.exceedance import exceedance_figure
from rtgauge.report.figures.histogram_figure import histogram
from rtgauge.report.figures.vega import Figure, config
from rtgauge.report.gathered_marks import gathered_marks
from rtgauge.report.hardware_table import hardware_tables
from rtgauge.report.how_often import HowOften, how_often
from rtgauge.report.page_frame import page_text, write_page
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.record_conclusion import conclude, cross_check_lines, repeat_lines
from rtgauge.report.record_view import RecordView, common_quantity, example_requirement
from rtgauge.report.table import applying, pairs
from rtgauge.report.text import capital, day_and_time, quantity
from rtgauge.units import plural

LONGEST_PROGRAM = 60
"""A title has at most so many characters of the command that was watched."""
MOST_LINES = 16
"""A step's tables of series with more lines than this are folded."""


def figures(source: Source) -> dict[str, Figure]:
    """Return the figures that have data, by name, in the page's order."""
    drawn = [histogram(source), exceedance_figure(source), course_figure(source)]
    for presenter, steps in presenters(source.whole.steps):
        drawn += presenter.figures(source.whole, steps)
    return {figure.name: figure for figure in drawn if figure is not None}


@dataclass(frozen=True)
class Drawn:
    """The figures of a record by name, and the data behind them."""

    source: Source
    how_often: HowOften
    """How often a task can run."""
    figures: dict[str, Figure]
    """All figures in the page's order, with the figures of `how_often` last."""

    @classmethod
    def of(cls, record: Record, options: object | None = None) -> Drawn:
        """Draw the figures. Raises RecordError for a damaged record."""
        source = Source.of(RecordView(record))
        often = how_often([record], options)
        return cls(source, often, figures(source) | {figure.name: figure for figure in often.figures})


def _example(steps: Sequence[Step]) -> str | None:
    """Return a command that gives a verdict on the measured quantity."""
    requirement = example_requirement(steps)
    if requirement is None:
        return None
    command = "run" if not steps or requirement == example_requirement([]) else f"probe {steps[0].key.probe}"
    return f'rtgauge {command} --require "{requirement}"'


def _caption(source: Source) -> str:
    """Return the note that all figures share: which conditions are pooled or marked."""
    worst = {label: condition.worst for label, condition in source.conditions.items()}
    marked = [f"{label} ({severity.value})" for label, severity in worst.items() if severity is not None]
    pooled = any(len(condition.steps) > 1 for condition in source.conditions.values())
    return " ".join(applying((pooled, "Repeats are added up."), (marked, f"Marked: {', '.join(marked)}.")))


def _detail(step: Step, name: str) -> dict[str, object]:
    """Return the figures of one step CPU by CPU."""
    series = step_tables.series_table(step, name)
    return {"name": name, "series": replace(series, folded=len(series.rows) > MOST_LINES)}


def _load(step: Step, name: str) -> dict[str, object]:
    """Return one step's load: each program, with the values it should reach and reached, with units."""
    programs = [
        {
            "program": " ".join(part for part in (item.program, item.version) if part),
            "command": shlex.join(item.argv),
            "wanted": [quantity(key, figure) for key, figure in item.wanted.items()],
            "reached": [quantity(key, figure) for key, figure in item.reached.items()],
            "ended_early": item.ended_early,
        }
        for item in step.load.parts
    ]
    return {"name": name, "load": step.load.name, "programs": programs, "notes": step.load.notes}


def _facts(name: str, facts: Facts) -> dict[str, object]:
    """Return a machine's main facts, all its facts, and its audit from before the run."""
    short = pairs(f"Facts of {name}", short_rows(facts))
    every = pairs(f"All facts of {name}", all_rows(facts))
    return {"name": name, "short": short, "all": every, "audit": facts.audit}


def _subject(view: RecordView) -> str:
    """Return what was measured: the watched programs on their machines, or the machines."""
    command = view.record.run.command
    started = shlex.join(command[command.index("--") + 1 :]) if "--" in command else ""
    programs = dict.fromkeys(
        started[:LONGEST_PROGRAM] or key.parameters.get("program") or f"process {key.parameters.get('pid')}"
        for key in (step.key for step in view.record.steps)
        if key.probe == watch.PROBE.name
    )
    machines = ", ".join(hosts(view.record))
    return f"{', '.join(programs)} on {machines}" if programs else machines


def content_of(drawing: Drawn) -> dict[str, object]:
    """Return the page's content, for the template. Raises RecordError for a damaged record."""
    source, drawn = drawing.source, drawing.figures
    view = source.whole
    run, outcomes, marks = view.record.run, outcome_table(view), gathered_marks(view)
    # The hundreds of steps of a folded probe would all look the same.
    shown, few = view.unfolded, view.representatives
    names = few.labels
    made = [presenter.chapter(view, own, drawn) for presenter, own in presenters(view.steps)]
    chapters = [chapter for chapter in made if chapter is not None]
    first = [chapter for chapter in chapters if chapter.place == "first"]
    loads = {step.key.load for step in shown.steps}
    late = {shown.labels[step.id]: step for step in shown.steps if step.outliers and not step.tasks}
    data: dict[str, object] = {
        "figures": {name: figure.specs for name, figure in drawn.items()},
        "config": {theme: config(theme, len(source.cpus)) for theme in ("light", "dark")},
    }
    finished = f"{len(run.steps)} of {plural(len(run.planned), 'planned step')} are here."
    return {
        "run": run,
        "subject": _subject(view),
        "when": f"{day_and_time(run.created)} UTC",
        "plan": str(run.plan.get("name", "run")),
        "system": system_lines(view.record),
        "conclusion": conclude(view),
        "outcomes": outcomes if len(outcomes.rows) > 1 else None,
        "example": None if run.verdicts else _example(shown.steps),
        "unfinished": None if run.state == "complete" else finished,
        "probes_not_here": view.probes_not_here,
        "marks": marks,
        "first_chapters": first,
        "numbers": step_tables.load_tables(shown),
        "compares": "idle" in loads and len(loads) > 1,
        "lines": [*repeat_lines(shown), *cross_check_lines(shown), *step_lines(shown.steps, shown.labels)],
        "elsewhere": next(iter(first or chapters), None) if view.steps else None,
        "figures": drawn,
        "caption": _caption(source),
        "cpus": source.cpus,
        "frequency": drawing.how_often.tables,
        "timing": [figure.name for figure in drawing.how_often.figures],
        "chapters": [chapter for chapter in chapters if chapter.place != "first"],
        "detail": [_detail(step, shown.labels[step.id]) for step in shown.steps if not step.tasks],
        "largest": {name: step_tables.largest_table(step, name) for name, step in late.items()},
        "largest_name": plural_of(common_quantity(shown.steps)),
        "loads": [_load(step, names[step.id]) for step in few.steps],
        "deployments": {
            names[step.id]: deployment_table(made)
            for step in few.steps
            if (made := step.deployment) is not None
        },
        "folded": view.folded_probes,
        "changes": {
            names[step.id]: [*hardware_tables(step, among=few.steps), *change_tables(step)]
            for step in few.steps
        },
        "facts": [_facts(name, facts) for name, facts in view.record.systems.items()],
        "method": method.method_words(view),
        "tools": method.tools(view),
        "command": shlex.join(run.command),
        "parameters": pairs("Parameters", method.parameter_rows(few) + method.cpu_rows(view)),
        "data": data,
    }


def html(record: Record, drawn: Drawn | None = None) -> str:
    """Return the page as text; everything from the record is escaped.

    `drawn`: its figures, if they are already drawn. Raises RecordError for a damaged record.
    """
    return page_text("page.html.j2", page=content_of(drawn or Drawn.of(record)), capital=capital)


def render(record: Record, out: Path | None = None, drawn: Drawn | None = None) -> Path:
    """Write the page of `record`, whole or not at all, to `out` or to report.html in the record's folder;
    return its path.

    Raises InputError if it cannot be written, RecordError for a damaged record.
    """
    return save_page(record, html(record, drawn), out)


def save_page(record: Record, text: str, out: Path | None) -> Path:
    """Write the text of a page, as `render` does."""
    if out is None:
        return write_record_page(record.folder, PAGE, text)
    write_page(text, out)
    return out
