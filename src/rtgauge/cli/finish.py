# SPDX-License-Identifier: MIT
"""What every measuring command does at its end: verdict, page, summary, exit status."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer
from rich.console import Console

from rtgauge.errors import EXIT_INTERRUPTED, InputError, MeasureError
from rtgauge.record.model import Run, RunDocument
from rtgauge.record.reader import Record
from rtgauge.record.writer import RecordWriter
from rtgauge.report.terminal import print_summary
from rtgauge.verdict.decision import exit_status, judge_run
from rtgauge.verdict.requirement import parse_requirement


def _draw(record: Record, page: Path) -> InputError | None:
    """Draw the page; the numbers are told also where that fails."""
    from rtgauge.report.page import render

    try:
        render(record, page)
    except InputError as error:
        return error
    return None


def finish(path: Path, run: Run, *, as_json: bool) -> int:
    """Judge, draw the page, print the summary (or the JSON) of the record at `path`. Gives the exit status."""
    record = Record.open(path)
    if run.requirement is not None:
        record.run.verdicts = judge_run(parse_requirement(run.requirement), record)
        RecordWriter(path, run.id).write_run(record.run)
    problem = _draw(record, path / "report.html") if record.steps else None
    if as_json:
        document = RunDocument(run=record.run, steps=record.steps, systems=record.systems, record=str(path))
        typer.echo(document.model_dump_json(indent=1))
    else:
        print_summary(record, Console())
    if problem is not None:
        raise MeasureError(f"{problem}; the numbers are kept, draw them with: rtgauge report {shlex.quote(str(path))} -o FILE.html")
    if run.state == "interrupted":
        typer.echo(f"Stopped before its end. Go on with: rtgauge run --resume {shlex.quote(str(path))}", err=True)
        return EXIT_INTERRUPTED
    return exit_status(record.run.verdicts, record.steps)
