# SPDX-License-Identifier: MIT
"""`rtgauge run STUDY`: a paper's whole experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from rtgauge.cli.display import make_display
from rtgauge.cli.finish import finish
from rtgauge.errors import InputError
from rtgauge.report.compare.chapters import chapter_of
from rtgauge.report.compare.page import render
from rtgauge.report.compare.tables import grids
from rtgauge.report.compare.terminal import print_grids
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.run import RunOptions, start_run
from rtgauge.study import delgado2020
from rtgauge.verdict.requirement import parse_requirement

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.plan.plan import Overrides, Plan
    from rtgauge.record.model import Run
    from rtgauge.study.delgado2020 import Choice

COMPARISON_PAGE = "compare.html"


def run_study(overrides: Overrides, options: RunOptions, *, as_json: bool) -> int:
    """Measure, print tables and selection, and give the exit status: the gravest of the records'."""
    if as_json:
        raise InputError("a study leaves two records: leave --json out, and print them with rtgauge show --json and rtgauge compare --json")
    if overrides.require is not None:
        parse_requirement(overrides.require)

    def measure(plan: Plan) -> tuple[Path, Run]:
        display = make_display()
        with Interrupt(display.stopping) as interrupt, display:
            path, run, _ = start_run(plan, options, display, interrupt)
        return path, run

    def tell(choice: Choice) -> None:
        typer.echo(f"chosen: {choice.deployment}: {choice.reason}", err=True)

    found = delgado2020.run_study(measure, overrides, tell)
    statuses = [finish(path, run, as_json=False) for path, run in found.records]
    if found.comparison is not None:
        page = found.records[0][0] / COMPARISON_PAGE
        render([chapter_of(found.comparison, found.sides, found.pairs)], [side.record for side in found.sides], page)
        print_grids(grids(found.comparison), Console())
        typer.echo(f"page     {page}")
    if found.choice is not None:
        typer.echo(f"chosen   {found.choice.deployment}: {found.choice.reason}")
    return max(statuses)
