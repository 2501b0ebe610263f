# SPDX-License-Identifier: MIT
"""Ends every measuring command: judges, writes the page, prints the summary, and returns the exit status."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import typer
from rich.text import Text

from rtgauge.cli.console import Console
from rtgauge.errors import EXIT_CANNOT_MEASURE, EXIT_INTERRUPTED, InputError, MeasureError, RtgaugeError
from rtgauge.record.model import STOPPED_EARLY, Run, RunDocument
from rtgauge.record.reader import PAGE, Record
from rtgauge.record.writer import RecordWriter
from rtgauge.report.labelled_lines import LABEL, print_labelled, prose_width
from rtgauge.report.record_view import RecordView
from rtgauge.report.table import Table
from rtgauge.report.terminal_summary import print_summary
from rtgauge.report.terminal_table import print_tables
from rtgauge.report.text import printable
from rtgauge.units import NS_PER_S, format_span
from rtgauge.verdict.exit_status import exit_status
from rtgauge.verdict.requirement import parse_requirement

if TYPE_CHECKING:
    from enum import StrEnum


class Answer(Protocol):
    """The document of a comparison, or of a command that decides."""

    @property
    def outcome(self) -> StrEnum | None:
        """The answer in a word."""
        ...

    @property
    def conclusion(self) -> str:
        """The answer in a sentence."""
        ...

    @property
    def next(self) -> str | None:
        """What to do next."""
        ...


def _draw(record: Record, writer: RecordWriter) -> RtgaugeError | None:
    """Write the page. If that fails, return the error, so that the summary is still printed."""
    from rtgauge.report.record_page import html  # the import is slow, and not every command needs it

    try:
        writer.write_page(PAGE, html(record))
    except (InputError, MeasureError) as error:
        return error
    return None


class Settled(NamedTuple):
    """A record, and the error if there is no page."""

    record: Record
    problem: RtgaugeError | None


def settle(path: Path, run: Run) -> Settled:
    """Judge the record at `path` and write its page."""
    writer = RecordWriter(path, run.id)
    record = writer.record()
    if run.requirement is not None:
        judged(record, run.requirement)
        writer.write_run(record.run)
    return Settled(record, _draw(record, writer) if record.steps else None)


def judged(record: Record, require: str | None, *, allow_left_out: bool = False) -> Record:
    """Judge the record by the requirement `require`, if there is one, and return the record.

    `allow_left_out`: judge even if something was left out, by `require` or else by the record's own
    requirement. Raises InputError if the requirement is invalid or missing.
    """
    if allow_left_out:
        record.run.allow_left_out = True
        require = require if require is not None else record.run.requirement
        if require is None:
            raise InputError(
                "--allow-left-out works only with a requirement, which this record lacks; give one with "
                "--require"
            )
    if require is not None:
        from rtgauge.explain.analysis.culprits import blame_of
        from rtgauge.verdict.run_verdict import judge_run

        requirement = parse_requirement(require)
        record.run.requirement = str(requirement)
        record.run.verdicts = judge_run(requirement, record, RecordView(record).labels, blame_of)
    return record


def check_requirement(require: str | None) -> None:
    """Raise InputError if the requirement is invalid."""
    if require is not None:
        parse_requirement(require)


def with_requirement(run: Run, require: str | None) -> Run:
    """Return the run with the requirement `require` for `finish` to judge, if there is one."""
    if require is None:
        return run
    return run.model_copy(update={"requirement": str(parse_requirement(require))})


def _cut_off(record: Record) -> list[str]:
    """Return a line for each step that was cut off."""
    return [
        f"{step.id} was cut off after {format_span((step.end_ns - step.start_ns) / NS_PER_S)}; rtgauge "
        "resume measures it again from the beginning."
        for step in record.steps
        if step.end_reason in STOPPED_EARLY and step.start_ns is not None and step.end_ns is not None
    ]


def status(record: Record, problem: RtgaugeError | None) -> int:
    """Return the exit status of a record. If it was interrupted, print how to resume it.

    `problem`: why the page could not be written; this is raised as a MeasureError.
    """
    if problem is not None:
        raise MeasureError(
            f"{problem}, but the record is complete; write the page with: rtgauge show "
            f"{shlex.quote(str(record.path))} --page FILE.html"
        )
    if record.run.state == "interrupted":
        typer.echo(f"Stopped early. Continue with: rtgauge resume {shlex.quote(str(record.path))}", err=True)
        for line in _cut_off(record):
            typer.echo(line, err=True)
        return EXIT_INTERRUPTED
    if not record.steps:  # everything was left out
        return EXIT_CANNOT_MEASURE
    return exit_status(record.run.verdicts, record.steps)


def finish(path: Path, run: Run, *, as_json: bool, details: bool = False) -> int:
    """Judge the record at `path`, write its page, print its summary or JSON, and return the exit status."""
    record, problem = settle(path, run)
    if as_json:
        typer.echo(document_of(record).model_dump_json(indent=1))
    else:
        print_summary(record, Console(), details=details)
    return status(record, problem)


def document_of(record: Record, *, kept: bool = True) -> RunDocument:
    """Return the document of `--json`, with the answer that the terminal prints first. `kept`: whether the
    record is kept.
    """
    from rtgauge.report.record_conclusion import conclude

    conclusion = conclude(RecordView(record))
    word = None if conclusion.word is None else conclusion.word.value
    return record.document(outcome=word, answer=conclusion.text, kept=kept)


def print_head(
    answer: Answer,
    style: str,
    console: Console,
    *,
    values: str | None = None,
    doubt: str | None = None,
) -> None:
    """Print the verdict's word and conclusion, the `values` behind it, what to do next, and the `doubt`."""
    word = "" if answer.outcome is None else answer.outcome.upper()
    width = max(LABEL, len(word) + 2)
    print_labelled(word, answer.conclusion, console, width=width, style="bold", label_style=f"bold {style}")
    if values is not None:
        print_labelled("", values, console, width=width)
    if answer.next is not None:
        print_labelled("next", answer.next, console, width=width)
    if doubt is not None:
        print_labelled("doubt", doubt, console, width=width, style="yellow")


def print_answer(
    answer: Answer,
    style: str,
    notes: Sequence[str],
    tables: Sequence[Table],
    what: str,
    path: str,
    *,
    values: str | None = None,
) -> None:
    """Print the answer of a gate or a tuning, its `values`, what to do next, the tables, their basis, and
    where `what` is (the page or the record).
    """
    console = Console()
    print_head(answer, style, console, values=values)
    if tables:
        console.print()
        print_tables(tables, console)
    if notes:
        console.print()
    for note in notes:
        for line in Text(printable(note)).wrap(console, prose_width(console)):
            console.print(line, soft_wrap=True)
    console.print()
    typer.echo(f"{what:<{LABEL}}{path}")
