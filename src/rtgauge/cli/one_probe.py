# SPDX-License-Identifier: MIT
"""One probe without a plan: a run of one step whose record is thrown away."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from rtgauge.cli.display import make_display
from rtgauge.errors import EXIT_INTERRUPTED, MeasureError
from rtgauge.exporters.samples_csv import check_samples_path, export_samples
from rtgauge.plan.plan import Overrides, make_plan
from rtgauge.record.model import RunDocument
from rtgauge.record.reader import Record
from rtgauge.report.calibrations import print_calibrations
from rtgauge.report.terminal import print_summary
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.planned_steps import RunOptions
from rtgauge.runner.run import start_run
from rtgauge.tire.state_file import STATE_FILE, export_state
from rtgauge.verdict.decision import exit_status, judge_run
from rtgauge.verdict.requirement import parse_requirement


def one_probe(
    name: str,
    written: dict[str, Any],
    *,
    load: str,
    target: str,
    samples: Path | None,
    require: str | None,
    as_json: bool,
    needed: dict[str, Any] | None = None,
    state: Path | None = None,
) -> int:
    """Measure, print, and give the exit status.

    `written` are the parameters as a plan has them, `needed` those without which there is no step; `state` is where the state of a tire goes.
    """
    requirement = parse_requirement(require) if require is not None else None
    if samples is not None:
        check_samples_path(samples)
    if state is not None:
        check_samples_path(state, "--state")
    step = {"probe": name, "load": load, **(needed or {})}
    said = Overrides(parameters=written, require=require, targets=[target])
    plan = make_plan({"name": f"probe-{name}", "step": [step]}, f"probe {name}", said)
    display = make_display()
    # Raw samples may be large: they are written where the user has room for them.
    with tempfile.TemporaryDirectory(prefix=".rtgauge-", dir=next((path.parent for path in (samples, state) if path is not None), None)) as folder:
        with Interrupt(display.stopping) as interrupt, display:
            path, run, _ = start_run(plan, RunOptions(Path(folder), ["rtgauge", "probe", name], kept=False), display, interrupt)
        record = Record.open(path)
        if run.left_out:
            raise MeasureError(f"{run.left_out[0].reason}; {run.left_out[0].remedy}")
        if requirement is not None:
            record.run.verdicts = judge_run(requirement, record)
        _print(record, name, as_json=as_json)
        if samples is not None and record.steps:
            for file in export_samples(record.samples(record.steps[0]), samples):
                display.say(f"samples {file}")
        if state is not None and record.steps:
            export_state(record.folder(record.steps[0]) / STATE_FILE, state)
            display.say(f"state {state}")
    if run.state == "interrupted":
        return EXIT_INTERRUPTED
    return exit_status(record.run.verdicts, record.steps)


def _print(record: Record, name: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(RunDocument(run=record.run, steps=record.steps, systems=record.systems, record=None).model_dump_json(indent=1))
    elif name == "calibrate" and record.steps:
        print_calibrations(record.steps[0].calibrations, Console())
    else:
        print_summary(record, Console(), kept=False)
