# SPDX-License-Identifier: MIT
"""Prints a record's summary and the list of records in the terminal. Its imports are light."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from rtgauge.record.model import Severity, VerdictWord
from rtgauge.record.reader import PAGE, RECORDS, Record
from rtgauge.report.brief_terminal import left_out_texts, mark_text, print_brief, unfinished
from rtgauge.report.conclusion import conclude, cross_check_lines, repeat_lines
from rtgauge.report.fact_rows import hosts, system_lines
from rtgauge.report.marks import gathered_marks
from rtgauge.report.method import cokernel_lines
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.record_view import RecordView, example_requirement
from rtgauge.report.table import Column, Table, texts
from rtgauge.report.tables import FILLED_WORDS, detail_table, is_filled
from rtgauge.report.terminal_table import rich_table
from rtgauge.report.text import day_and_time, printable, us

LIST_WIDTH = 120
STYLE = {
    VerdictWord.HOLDS: "bold green",
    VerdictWord.MARGINAL: "bold yellow",
    VerdictWord.FAILS: "bold red",
    VerdictWord.CANNOT_TELL: "bold yellow",
}
MARK_STYLE = {Severity.NOTE: "", Severity.DOUBTFUL: "yellow", Severity.INVALID: "bold red"}


def print_conclusion(record: Record, console: Console) -> None:
    """Print the conclusion in one sentence, then its requirement and the next step."""
    _print_conclusion(RecordView(record), console)


def _print_conclusion(view: RecordView, console: Console) -> None:
    conclusion = conclude(view)
    text = printable(conclusion.text)
    if conclusion.word is None:
        console.print(Text(text, style="bold"))
        if conclusion.doubts:
            console.print(Text(printable("; ".join(conclusion.doubts)), style="yellow"))
        return
    console.print(
        Text.assemble((conclusion.word.value.upper(), STYLE[conclusion.word]), "  ", (text, "bold"))
    )
    console.print(Text(f"required  {printable(conclusion.requirement or '')}"))
    if conclusion.exposure is not None:
        console.print(Text(f"exposure  {conclusion.exposure}"))
    console.print(Text(f"next      {printable(conclusion.next or '')}"))


def _ends(view: RecordView, console: Console, *, kept: bool, details: bool) -> list[Text]:
    """Return the last lines: how to get a verdict, how to see everything, and the record's path."""
    lines: list[Text] = []
    record = view.record
    example = example_requirement(record.steps)
    if not record.run.verdicts and example is not None and view.singly is view:
        asked = Text(f'No requirement was given; add one with: --require "{example}"', style="dim")
        lines += asked.wrap(console, console.width)
    if not kept:
        return (
            lines
            if details
            else [*lines, Text("Show every CPU, thread and mark with --details.", style="dim")]
        )
    if not details:
        lines.append(Text(f"details rtgauge show {shlex.quote(_known_as(record))} --details", style="dim"))
    lines.append(Text(f"record  {record.path}"))
    return [*lines, Text(f"page    {record.folder.file(PAGE)}")] if record.folder.has(PAGE) else lines


def print_summary(record: Record, console: Console, *, kept: bool = True, details: bool = False) -> None:
    """Print the conclusion, the system, the results, marks, items left out, and the record's path if it is
    kept.

    By default there is a row per load, in at most MOST_LINES lines after the conclusion. `details` adds all
    CPUs, threads, parts and marks.
    """
    view = RecordView(record)
    _print_conclusion(view, console)
    console.print()
    ends = _ends(view, console, kept=kept, details=details)
    if not details:
        print_brief(view, console, ends)
        return
    for line in [*system_lines(record), *cokernel_lines(view)]:
        console.print(Text(printable(line), style="dim"))
    tables = [detail_table(view.singly, quantity) for quantity in view.singly.quantities]
    for table in tables:
        console.print()
        console.print(rich_table(table, console.width))
    if any(map(is_filled, tables)):
        console.print(Text(FILLED_WORDS, style="dim"))
    for line in [*repeat_lines(view.singly), *cross_check_lines(view.singly)]:
        console.print(Text(printable(line)))
    for line in step_lines(view.steps, view.labels):
        console.print(Text(printable(line), style="dim"))
    console.print()
    for presenter, steps in presenters(view.steps):
        presenter.print_tables(view, steps, console)
    for mark in gathered_marks(view):
        console.print(Text.assemble("* ", mark_text(mark, MARK_STYLE[mark.severity])))
    for text in left_out_texts(view):
        console.print(Text(text))
    for line in unfinished(view):
        console.print(line)
    for line in ends:
        console.print(line, soft_wrap=True)


def print_list(records: Iterable[Record], console: Console) -> None:
    """Print a line per record (two in a narrow terminal): name, date, host, state, loads, largest latency
    (us).
    """
    rows = [_list_row(record) for record in records]
    if not rows:
        console.print("No record is here.")
        return
    if console.width < LIST_WIDTH:
        for record, *rest, largest in rows:
            console.print(Text(printable(record), style="bold"), soft_wrap=True)
            console.print(Text(printable(f"  {' · '.join(rest)} · max {largest} us")))
        return
    whole = {title: Column(title, "nowrap") for title in ("record", "date", "state")}
    columns = [whole["record"], whole["date"], *texts("host"), whole["state"], *texts("loads")]
    console.print(rich_table(Table("", [*columns, Column("max (us)", "number")], rows), console.width))


def _known_as(record: Record) -> str:
    """Return the name by which all commands find a record."""
    return record.path.name if record.path.parent == RECORDS else str(record.path)


def _list_row(record: Record) -> list[str]:
    loads = ", ".join(dict.fromkeys(step.key.load for step in RecordView(record).steps)) or "–"
    maxima = [step.total.max_ns for step in record.steps if step.total and step.total.max_ns is not None]
    largest = us(max(maxima, default=None))
    return [
        _known_as(record),
        day_and_time(record.run.created),
        ", ".join(hosts(record)),
        record.run.state,
        loads,
        largest,
    ]
