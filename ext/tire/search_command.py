# SPDX-License-Identifier: MIT
"""`rtgauge probe tire --search` runs the study and keeps no record."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel, Field, SerializeAsAny

from rtgauge.cli.console import Console
from rtgauge.cli.progress import make_display
from rtgauge.cli.shared_options import wait_s
from rtgauge.errors import EXIT_INTERRUPTED, InputError
from rtgauge.plan.make_plan import Overrides
from rtgauge.record.facts import Facts
from rtgauge.record.model import Run
from rtgauge.record.reader import Record
from rtgauge.report.presenter import presenters
from rtgauge.report.record_conclusion import conclude
from rtgauge.report.record_view import RecordView
from rtgauge.report.terminal_summary import print_summary
from rtgauge.runner.context import Interrupt
from rtgauge.runner.measure_run import RunOptions, start_run
from rtgauge.study import study_registry
from rtgauge.verdict.exit_status import exit_status
from rtgauge_ext.tire.probe import TIRE_SEARCH


class SearchDocument(BaseModel):
    """The document that `--json` prints."""

    run: Run
    answer: str = Field(description="first line of the output on the terminal")
    results: list[SerializeAsAny[BaseModel]]
    systems: dict[str, Facts]


DECIDES = ("nodes", "steps", "warm-up", "without", "free-running", "samples", "state")
"""The parameters that the study sets itself."""


def run_search(parameters: dict[str, Any], given: Mapping[str, Any]) -> int:
    """Search, print the result, and return the exit status.

    `parameters`: as in a plan; `given`: the values of all options. Raises InputError for an option that does
    not fit.
    """
    if given.get("require") is not None:
        raise InputError(
            "--search finds the largest size that meets every deadline, so it cannot check a requirement; "
            "leave out --require"
        )
    if given["save"]:
        raise InputError(
            f"--search does not keep a record; leave out --save, or use: rtgauge run {TIRE_SEARCH}"
        )
    for name in DECIDES:
        if name in parameters:
            raise InputError(f"--search sets --{name} itself; leave out --{name}")
    overrides = Overrides(
        parameters=parameters, loads=[given["load"]], repeats=given["repeats"], targets=[given["target"]]
    )
    study = study_registry.adaptive_study(TIRE_SEARCH, overrides)
    plan = study.plan()
    display = make_display(later_s=study.later_s)
    with tempfile.TemporaryDirectory(prefix=".rtgauge-") as folder:
        with Interrupt(display.stopping) as interrupt, display:
            command = ["rtgauge", "probe", "tire", "--search"]
            options = RunOptions(Path(folder), command, kept=False, wait_s=wait_s(given["wait"]))
            path, run, _ = start_run(plan, options, display, interrupt, study)
        record = Record.open(path)
        if given["json"]:
            view = RecordView(record)
            results = [
                result for presenter, _ in presenters(record.steps) for result in presenter.results(view)
            ]
            typer.echo(
                SearchDocument(
                    run=run, answer=conclude(view).text, results=results, systems=record.systems
                ).model_dump_json(indent=1)
            )
        else:
            print_summary(record, Console(), kept=False, details=given["details"])
    return EXIT_INTERRUPTED if run.state == "interrupted" else exit_status(record.run.verdicts, record.steps)
