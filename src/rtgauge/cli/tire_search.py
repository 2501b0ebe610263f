# SPDX-License-Identifier: MIT
"""`rtgauge probe tire --search`: the largest tire that holds hard real time, for each number of threads."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from rtgauge.cli.console import Console
from rtgauge.cli.options import wait_s
from rtgauge.cli.progress_display import make_display
from rtgauge.errors import EXIT_INTERRUPTED, InputError
from rtgauge.plan.plan import Overrides
from rtgauge.record.facts import Facts
from rtgauge.record.model import Run
from rtgauge.record.reader import Record
from rtgauge.report.terminal import print_summary
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.run import RunOptions, start_run
from rtgauge.study import registry
from rtgauge.tire.analysis.aims import TIRE_SEARCH
from rtgauge.tire.analysis.results import TireResults
from rtgauge.tire.page.chapter import results_of
from rtgauge.verdict.worst import exit_status

DECIDED = ("nodes", "steps", "warm-up", "without", "free-running", "samples", "state")
"""Parameters that the search sets itself."""


class SearchDocument(BaseModel):
    """The one document that `--json` prints."""

    run: Run
    results: list[TireResults]
    systems: dict[str, Facts]


def tire_search(
    parameters: dict[str, Any],
    *,
    load: str,
    target: str,
    repeats: int | None,
    as_json: bool,
    details: bool,
    wait: str = "0",
) -> int:
    """Search, print, and return the exit status.

    `parameters`: as in a plan; `wait`: for a machine that another run holds.
    """
    for name in DECIDED:
        if name in parameters:
            raise InputError(f"--{name} cannot be combined with --search, which sets it itself; leave it out")
    overrides = Overrides(parameters=parameters, loads=[load], repeats=repeats, targets=[target])
    study = registry.adaptive_study(TIRE_SEARCH, overrides)
    plan = study.plan()
    display = make_display(later_s=study.later_s)
    with tempfile.TemporaryDirectory(prefix=".rtgauge-") as folder:
        with Interrupt(display.stopping) as interrupt, display:
            options = RunOptions(
                Path(folder), ["rtgauge", "probe", "tire", "--search"], kept=False, wait_s=wait_s(wait)
            )
            path, run, _ = start_run(plan, options, display, interrupt, study)
        record = Record.open(path)
        if as_json:
            typer.echo(
                SearchDocument(run=run, results=results_of(record), systems=record.systems).model_dump_json(
                    indent=1
                )
            )
        else:
            print_summary(record, Console(), kept=False, details=details)
    return EXIT_INTERRUPTED if run.state == "interrupted" else exit_status(record.run.verdicts, record.steps)
