# SPDX-License-Identifier: MIT
"""The page: one HTML file that works from disk, without a network."""

from __future__ import annotations

import functools
import shlex
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from rtgauge.analysis.frequency import gather
from rtgauge.analysis.microbenchmarks import microbenchmarks
from rtgauge.analysis.sustained import curves
from rtgauge.errors import InputError
from rtgauge.probe.registry import plural_of
from rtgauge.record.model import Severity
from rtgauge.report import frequency_tables, method, response_tables, sustained_tables, tables
from rtgauge.report.changes import change_tables
from rtgauge.report.conditions import ordered_steps, step_labels
from rtgauge.report.deployment_table import deployment_table
from rtgauge.report.fact_rows import all_rows, hosts, short_rows, system_lines
from rtgauge.report.figures.collect import figures
from rtgauge.report.figures.save import VEGALITE
from rtgauge.report.figures.source import Source
from rtgauge.report.figures.sustained import sustained_figure
from rtgauge.report.figures.theme import config
from rtgauge.report.figures.timing import timing_figures
from rtgauge.report.frequency_tables import Timing
from rtgauge.report.microbenchmark_tables import grids
from rtgauge.report.quantity import LATENCY, capital, common_quantity, example_requirement, quantities, quantity_of
from rtgauge.report.signals import signal_lines
from rtgauge.report.text import NARROW_SPACE, plural, quantity, us, whole
from rtgauge.schedulability.analysis.measured_set import measured_set
from rtgauge.schedulability.page import measured_tables
from rtgauge.schedulability.page.measured_figure import figure_name
from rtgauge.tire.page.chapter import chapters, marks_of, representatives, without_tire
from rtgauge.tire.page.drop_figure import drop_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rtgauge.record.model import Mark, Step
    from rtgauge.record.reader import Record
    from rtgauge.report.figures.response_parts import Figure

_SEVERITY = [Severity.INVALID, Severity.DOUBTFUL, Severity.NOTE]


def _example(steps: Sequence[Step]) -> str | None:
    """A command that ends in a verdict on what was measured."""
    requirement = example_requirement(steps)
    if requirement is None:
        return None
    command = "run" if not steps or requirement == example_requirement([]) else f"probe {steps[0].key.probe}"
    return f'rtgauge {command} --require "{requirement}"'


@functools.cache
def drawing_code() -> str:
    """The JavaScript that draws: Vega, Vega-Lite and Vega-Embed, from the vl-convert package."""
    import vl_convert

    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGALITE)
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def template_text(name: str) -> str:
    """A file of the templates as text."""
    return (resources.files("rtgauge.report") / "templates" / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Shown:
    """A mark with where it is: the step and, where it is about one series, that."""

    step: str
    series: str
    name: str
    severity: str
    detail: str


def _marks(record: Record) -> list[_Shown]:
    rest = without_tire(record)
    names = step_labels(rest)
    found = [_Shown("the whole run", "", mark.name, mark.severity.value, mark.detail) for mark in record.run.marks]
    found += [_Shown(where, "", mark.name, mark.severity.value, mark.detail) for where, mark in marks_of(record)]
    for step in ordered_steps(rest):
        series = {summary.series: tables.series_name(summary) for summary in step.series}
        for mark in step.marks:
            place = "" if mark.series is None else series.get(mark.series, f"series {mark.series}")
            found.append(_Shown(names[step.id], place, mark.name, mark.severity.value, mark.detail))
    return sorted(found, key=lambda mark: [s.value for s in _SEVERITY].index(mark.severity))


def _in_short(marks: list[_Shown]) -> str:
    """How many marks of each severity: "1 doubtful, 4 notes"."""
    counts = {severity: sum(mark.severity == severity.value for mark in marks) for severity in _SEVERITY}
    return ", ".join(plural(n, "note") if severity is Severity.NOTE else f"{n} {severity.value}" for severity, n in counts.items() if n)


def _largest(record: Record) -> str | None:
    """A sentence about the largest latency of the run; None where nothing was measured."""
    names = step_labels(record)
    steps = [step for step in record.steps if step.total is not None and step.total.metric == LATENCY and not step.tasks]
    totals = [(step.total.max_ns, step) for step in steps if step.total is not None and step.total.max_ns is not None]
    if not totals:
        return None
    value, step = max(totals, key=lambda pair: pair[0])
    series = [s for s in step.series if s.max_ns == value]
    where = f" on {tables.series_name(series[0])}" if series else ""
    missed = sum(step.total.missed for step in steps if step.total is not None)
    count = sum(step.total.count for step in steps if step.total is not None)
    nothing = " None was missed." if all(tables.missed_known(step) for step in steps) else " How many were missed is not known."
    tail = f" {whole(missed, group=NARROW_SPACE)} more were missed." if missed else nothing
    return f"The largest of {whole(count, group=NARROW_SPACE)} latencies is {us(value, group=NARROW_SPACE)} us{where}, under {names[step.id]}.{tail}"


def _load(step: Step, name: str) -> dict[str, Any]:
    parts = [
        {
            "program": " ".join(part for part in (item.program, item.version) if part),
            "command": shlex.join(item.argv),
            "wanted": [quantity(key, figure) for key, figure in item.wanted.items()],
            "reached": [quantity(key, figure) for key, figure in item.reached.items()],
            "ended_early": item.ended_early,
        }
        for item in step.load.parts
    ]
    return {"name": name, "load": step.load.name, "parts": parts, "notes": step.load.notes}


def _thread(step: Step) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for summary in step.series:
        counts = summary.thread.model_dump() if summary.thread is not None else {}
        cells = {
            "warm-up": whole(summary.warm_up.count, group=NARROW_SPACE),
            "warm-up missed": whole(summary.warm_up.missed, group=NARROW_SPACE),
            "warm-up max": us(summary.warm_up.max_ns, group=NARROW_SPACE),
            "lost": whole(summary.lost, group=NARROW_SPACE),
            "impossible": whole(summary.impossible, group=NARROW_SPACE),
            "switches, voluntary": whole(counts.get("voluntary_switches"), group=NARROW_SPACE),
            "switches, involuntary": whole(counts.get("involuntary_switches"), group=NARROW_SPACE),
            "page faults, minor": whole(counts.get("minor_faults"), group=NARROW_SPACE),
            "page faults, major": whole(counts.get("major_faults"), group=NARROW_SPACE),
            "run delay": us(counts.get("run_delay_ns"), group=NARROW_SPACE),
            "CPU time": us(counts.get("cpu_ns"), group=NARROW_SPACE),
        }
        rows.append({"name": tables.series_name(summary), "cells": cells})
    return rows


def _marks_of(source: Source, label: str) -> list[Mark]:
    """The marks on the steps of one condition, each once."""
    condition = source.conditions.get(label)
    found = {(mark.severity, mark.name): mark for step in condition.steps for mark in step.marks} if condition else {}
    return list(found.values())


def _figure(figure: Figure, source: Source) -> dict[str, Any]:
    worst = {label: condition.worst for label, condition in source.conditions.items()}
    marked = [f"{label} ({severity.value})" for label, severity in worst.items() if severity is not None]
    pooled = any(len(condition.steps) > 1 for condition in source.conditions.values())
    notes = [*figure.notes]
    if pooled and figure.name in {"histogram", "exceedance"}:
        notes.append("Repeats are added up.")
    if marked:
        notes.append(f"Marked: {', '.join(marked)}.")
    charts: list[dict[str, Any]] = []
    for i, spec in enumerate(figure.specs):
        title = figure.titles[i] if figure.titles else ""
        charts.append({"index": i, "title": title, "label": spec["description"], "marks": _marks_of(source, title)})
    return {"name": figure.name, "title": figure.title, "notes": notes, "charts": charts}


def _taskset(step: Step, name: str, drawn: dict[str, Figure]) -> dict[str, Any]:
    """Tables 6, 7 (idle) and 8 (loaded) and figure 5 of Delgado et al. 2020, for this machine."""
    measured = measured_set(step)
    latencies = step.model_copy(update={"series": [one for one in step.series if one.metric == "latency"]})
    return {
        "name": name,
        "step": step,
        "answer": measured.result.answer.value,
        "rows": measured_tables.parameter_rows(measured, NARROW_SPACE),
        "tables": [("table 6", measured_tables.WRITTEN), ("outcome", measured_tables.OUTCOME)],
        "figures": [(task.counts.task, measured_tables.figure_rows(task)) for task in measured.tasks],
        "words": measured_tables.words(measured),
        "figure": figure_name(step) if figure_name(step) in drawn else None,
        "threads": _thread(latencies),
    }


def _context(record: Record, timing: Timing) -> dict[str, Any]:
    source = Source.of(record)
    gathered = gather([record], timing.options)
    searched = curves([record])
    more = [*timing_figures(gathered, timing.markers), sustained_figure(searched)]
    drawn = figures(source) | {figure.name: figure for figure in more if figure is not None}
    drop = drop_of(record)
    # What speaks of each step by itself would say the same of the tire's hundreds of them.
    rest, few = without_tire(record), representatives(record)
    names, few_names = step_labels(rest), step_labels(few)
    steps, few_steps = ordered_steps(rest), ordered_steps(few)
    marks = _marks(record)
    what = common_quantity(steps)
    overall = [verdict for verdict in record.run.verdicts if verdict.step is None]
    return {
        "run": record.run,
        "hosts": hosts(record),
        "system_lines": system_lines(record),
        "overall": overall or record.run.verdicts,
        "each_verdict": [(names.get(verdict.step, verdict.step), verdict) for verdict in record.run.verdicts if verdict.step is not None] if overall else [],
        "example": _example(steps),
        "signals": [f"{names[step.id]}, {line}" for step in ordered_steps(record) for line in signal_lines(step)],
        "largest": _largest(rest),
        "unfinished": None if record.run.state == "complete" else f"{len(record.run.steps)} of {plural(len(record.run.planned), 'planned step')} are here.",
        "headings": list(tables.FIGURES.values()),
        "what": what,
        "plurals": {quantity: plural_of(quantity) for quantity in [what, *quantities(steps)]},
        "micro_grids": grids(microbenchmarks([record]), NARROW_SPACE),
        "tires": chapters(record, set(drawn)),
        "drop": drop,
        "tire_steps": len(record.steps) - len(steps),
        "timing_grids": [
            *frequency_tables.grids([one.table for one in gathered], NARROW_SPACE),
            *response_tables.grids([record]),
            *sustained_tables.grids(searched),
        ],
        "load_rows": tables.load_rows(rest, NARROW_SPACE),
        "figures": {name: _figure(figure, source) for name, figure in drawn.items()},
        "cpus": source.cpus,
        "detail": [(names[step.id], step, quantity_of(step), tables.series_rows(step, NARROW_SPACE), _thread(step)) for step in steps if not step.tasks],
        "tasksets": [_taskset(step, names[step.id], drawn) for step in steps if step.tasks],
        "late": [(names[step.id], quantity_of(step), tables.outlier_rows(step, group=NARROW_SPACE)) for step in steps if step.outliers and not step.tasks],
        "loads": [_load(step, few_names[step.id]) for step in few_steps],
        "deployments": [(few_names[step.id], deployment_table(step.deployment)) for step in few_steps if step.deployment is not None],
        "marks": marks,
        "marks_in_short": _in_short(marks),
        "command": shlex.join(record.run.command),
        "changes": [(few_names[step.id], change_tables(step, NARROW_SPACE)) for step in few_steps],
        "facts": [(name, short_rows(facts), all_rows(facts)) for name, facts in record.systems.items()],
        "tools": method.tools(record),
        "method": method.method_words(record),
        "parameters": method.parameter_rows(few) + method.cpu_rows(record),
        "clocks": [(few_names[step.id], method.clock_rows(step)) for step in few_steps if step.clock],
        "calibrations": method.calibrations(few),
        "capital": capital,
        "whole": functools.partial(whole, group=NARROW_SPACE),
        "data": {
            "drop": None if drop is None else drop.as_data(),
            "figures": {name: figure.specs for name, figure in drawn.items()},
            "config": {theme: config(theme, len(source.cpus)) for theme in ("light", "dark")},
        },
    }


def html(record: Record, timing: Timing | None = None) -> str:
    """The page as text. All that comes from the record is escaped. `timing`: how frequencies are judged, and the markers of their figures.

    Raises RecordError for a damaged record.
    """
    import jinja2

    loader = jinja2.PackageLoader("rtgauge.report", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.get_template("page.html.j2")
    return page.render(**_context(record, timing or Timing()), style=template_text("style.css"), script=template_text("page.js"), engine=drawing_code())


def render(record: Record, out: Path, timing: Timing | None = None) -> None:
    """Write the page of `record` to `out`; it is complete or not there. Raises InputError where `out` cannot be written, RecordError for a damaged record."""
    text = html(record, timing)
    aside = out.with_name(f".{out.name}.partial")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(out)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise InputError(f"the page cannot be written to {out} ({error.strerror}): name another file with -o") from None
