# SPDX-License-Identifier: MIT
"""`rtgauge run STUDY`: a paper's whole experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from pydantic import BaseModel
from rich.console import Console

from rtgauge.analysis.comparison import Comparison
from rtgauge.cli.conclusion import document, settle, status
from rtgauge.cli.display import make_display
from rtgauge.record.model import Run, RunDocument
from rtgauge.report.compare.chapters import chapter_of
from rtgauge.report.compare.page import render
from rtgauge.report.compare.tables import grids
from rtgauge.report.compare.terminal import print_grids
from rtgauge.report.terminal import print_summary
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.planned_steps import RunOptions
from rtgauge.runner.run import resume_run, start_run
from rtgauge.study import delgado2020
from rtgauge.study.delgado2020 import Choice
from rtgauge.verdict.requirement import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rtgauge.errors import InputError
    from rtgauge.plan.plan import Overrides, Plan
    from rtgauge.record.model import Step
    from rtgauge.record.reader import Record
    from rtgauge.runner.progress import Progress
    from rtgauge.study.delgado2020 import Measured, Selected

COMPARISON_PAGE = "compare.html"


class StudyDocument(BaseModel):
    """The one document that `--json` prints: what was measured now, in order; the comparison and the choice are None where it was stopped before."""

    study: str
    runs: list[RunDocument] = []
    comparison: Comparison | None = None
    choice: Choice | None = None


class _Study:
    """Measures, shows what is known as soon as it is, and collects what `--json` prints at the end."""

    def __init__(self, options: RunOptions, *, as_json: bool) -> None:
        self._options = options
        self._as_json = as_json
        self._ended: list[tuple[Record, InputError | None]] = []
        self._document = StudyDocument(study=delgado2020.NAME)

    @property
    def hands(self) -> delgado2020.Hands:
        """What the study calls."""
        return delgado2020.Hands(self._measure, self._resume, self._selected)

    def _measure(self, plan: Plan) -> Measured:
        return self._part(lambda display, interrupt: start_run(plan, self._options, display, interrupt))

    def _resume(self, folder: Path) -> Measured:
        return self._part(lambda display, interrupt: resume_run(folder, self._options, display, interrupt))

    def _part(self, part: Callable[[Progress, Interrupt], tuple[Path, Run, list[Step]]]) -> Measured:
        display = make_display()
        with Interrupt(display.stopping) as interrupt, display:
            path, run, _ = part(display, interrupt)
        record, problem = settle(path, run)
        self._ended.append((record, problem))
        self._document.runs.append(document(record))
        if not self._as_json:
            print_summary(record, Console())
        return path, run

    def _selected(self, selected: Selected) -> None:
        self._document.comparison, self._document.choice = selected.comparison, selected.choice
        if selected.comparison is not None:
            page = selected.record / COMPARISON_PAGE
            render([chapter_of(selected.comparison, selected.sides, selected.pairs)], [side.record for side in selected.sides], page)
            if not self._as_json:
                console = Console()
                print_grids(grids(selected.comparison, console.width), console)
            typer.echo(f"page     {page}", err=self._as_json)
        typer.echo(f"chosen   {selected.choice.deployment}: {selected.choice.reason}", err=self._as_json)

    def end(self) -> int:
        """Print the document, where one is asked for, and give the exit status: the gravest of the parts'."""
        if self._as_json:
            typer.echo(self._document.model_dump_json(indent=1))
        return max(status(record, problem) for record, problem in self._ended)


def run_study(overrides: Overrides, options: RunOptions, *, as_json: bool) -> int:
    """Measure a study from its beginning. Gives the exit status."""
    if overrides.require is not None:
        parse_requirement(overrides.require)
    study = _Study(options, as_json=as_json)
    delgado2020.run_study(study.hands, overrides)
    return study.end()


def resume_study(folder: Path, options: RunOptions, *, as_json: bool) -> int:
    """Go on with a study from one of its records. Gives the exit status."""
    study = _Study(options, as_json=as_json)
    delgado2020.resume_study(study.hands, folder)
    return study.end()
