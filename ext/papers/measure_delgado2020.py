# SPDX-License-Identifier: MIT
"""Measures the study of `rtgauge run delgado2020`. Shows which deployment was chosen before the measurement
under load, and keeps the comparison next to the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer
from pydantic import BaseModel

from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.sides import Side
from rtgauge.cli.command_end import document_of, print_head, settle, status
from rtgauge.cli.console import Console
from rtgauge.cli.extension_options import AddedValues
from rtgauge.cli.progress import Display, make_display
from rtgauge.cli.run_command import DisplayOptions, Start
from rtgauge.errors import MeasureError
from rtgauge.record.model import Run, RunDocument, StepKey
from rtgauge.record.reader import Record
from rtgauge.record.writer import write_page
from rtgauge.report.compare.comparison_figures import comparison_figures
from rtgauge.report.compare.comparison_page import ComparisonChapter, chapter_of, comparison_grids, html
from rtgauge.report.compare.comparison_tables import grids
from rtgauge.report.terminal_summary import print_summary
from rtgauge.report.terminal_table import print_tables
from rtgauge.runner.interrupt import Interrupt
from rtgauge.study.adaptive import AdaptiveStudy
from rtgauge_ext.papers.deployment_choice import (
    IDLE,
    ChosenDeployment,
    ComparedDeployments,
    choose_deployment,
)
from rtgauge_ext.papers.qq_figure import qq_figures

COMPARISON_PAGE = "compare.html"


class StudyDocument(BaseModel):
    """The document that `--json` prints. Comparison and choice are None if the study was stopped early."""

    study: str
    runs: list[RunDocument] = []
    comparison: Comparison | None = None
    choice: ChosenDeployment | None = None


def _is_chosen(run: Run) -> bool:
    """Return whether a deployment is chosen, so that the steps under load are planned."""
    return any(key.load != IDLE for key in run.planned)


def _print_choice(compared: ComparedDeployments, display: Display, *, as_json: bool) -> None:
    with display.paused():
        if compared.comparison is not None and not as_json:
            console = Console()
            print_head(compared.comparison, "", console, values=compared.comparison.values)
            print_tables(grids(compared.comparison), console)
        typer.echo(f"chosen   {compared.choice.deployment}: {compared.choice.reason}", err=as_json)


def _chapter(
    result: Comparison, sides: Sequence[Side], pairs: Sequence[tuple[Side, Side]]
) -> ComparisonChapter:
    """Return the comparison's chapter, with the paper's selection and Q-Q plots."""
    figures = [*comparison_figures(sides, quantiles=result.quantiles), *qq_figures(pairs)]
    return replace(chapter_of(result, sides), grids=comparison_grids(result, sides), figures=figures)


def measure_study(
    study: AdaptiveStudy,
    start: Start,
    resumed: Record | None,
    require: str | None,
    shown: DisplayOptions,
    added: AddedValues,
) -> int:
    """Measure the study delgado2020, or continue it if `resumed` is its record, and return the exit status.
    `require`: the run's requirement, or None.

    Raises InputError if the address of the live page is wrong, MeasureError if no deployment can be chosen.
    """
    display = make_display(later_s=study.later_s)

    def next_steps(record: Record) -> Sequence[StepKey]:
        steps = study(record)
        if steps and not _is_chosen(record.run):
            _print_choice(choose_deployment(record), display, as_json=shown.json)
        return steps

    with (
        Interrupt(display.stopping) as interrupt,
        display,
        added.listening(display, require) as progress,
    ):
        if resumed is not None and _is_chosen(resumed.run):
            _print_choice(choose_deployment(resumed), display, as_json=shown.json)
        path, run, _ = start(progress, interrupt, next_steps)
    record, problem = settle(path, run)
    compared: ComparedDeployments | None = None
    no_choice: MeasureError | None = None
    try:
        compared = choose_deployment(record) if run.state == "complete" or _is_chosen(record.run) else None
    except MeasureError as error:
        no_choice = error
    if compared is not None and compared.comparison is not None:
        text = html(
            [_chapter(compared.comparison, compared.sides, compared.pairs)],
            [side.record for side in compared.sides],
        )
        write_page(record.folder, COMPARISON_PAGE, text)
    if shown.json:
        study_document = StudyDocument(study=study.study.name, runs=[document_of(record)])
        if compared is not None:
            study_document.comparison, study_document.choice = compared.comparison, compared.choice
        typer.echo(study_document.model_dump_json(indent=1))
    else:
        print_summary(record, Console(), details=shown.details)
        if compared is not None and compared.comparison is not None:
            typer.echo(f"compared {record.folder.file(COMPARISON_PAGE)}")
    if no_choice is not None:
        raise no_choice
    return status(record, problem)
