# SPDX-License-Identifier: MIT
"""Prints a record's summary and the list of records in the terminal. Its imports are light."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from rich.console import Console
from rich.text import Text

from rtgauge.probe import calibrate
from rtgauge.record.model import Severity, VerdictWord
from rtgauge.record.reader import PAGE, Record
from rtgauge.record.records_folder import RECORDS
from rtgauge.report import method
from rtgauge.report.brief_terminal import left_out_texts, mark_text, print_brief, unfinished
from rtgauge.report.fact_rows import hosts, system_lines
from rtgauge.report.gathered_marks import gathered_marks, sighting_table
from rtgauge.report.hardware_table import hardware_tables
from rtgauge.report.labelled_lines import LABEL, print_labelled, prose_width
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.record_conclusion import conclude, cross_check_lines, repeat_lines
from rtgauge.report.record_view import RecordView, example_requirement
from rtgauge.report.step_tables import FILLED_WORDS, detail_table, is_filled, thread_table
from rtgauge.report.table import Column, Table, pairs, ranked, texts
from rtgauge.report.terminal_table import print_tables, print_text, rich_table
from rtgauge.report.text import day_and_time, printable, us

STATE_AND_LARGEST = 22
"""How many characters the state and the largest latency of a listed record need."""
STYLE = {
    VerdictWord.HOLDS: "bold green",
    VerdictWord.MARGINAL: "bold yellow",
    VerdictWord.FAILS: "bold red",
    VerdictWord.CANNOT_TELL: "bold yellow",
}
MARK_STYLE = {Severity.NOTE: "", Severity.DOUBTFUL: "yellow", Severity.INVALID: "bold red"}


def print_conclusion(record: Record, console: Console) -> None:
    """Print the answer in one sentence, then the cause and the next step."""
    _print_conclusion(RecordView(record), console)


def _print_conclusion(
    view: RecordView, console: Console, *, kept: bool = True, details: bool = False
) -> None:
    """Print the answer, the cause and the way out. `details` adds the requirement and the exposure."""
    conclusion = conclude(view)
    if conclusion.word is None:
        for line in Text(printable(conclusion.text), style="bold").wrap(console, prose_width(console)):
            console.print(line)
        if conclusion.cause is not None:
            print_labelled("cause", conclusion.cause, console)
        if view.record.run.state != "complete":
            resume = f"rtgauge resume {quote(_known_as(view.record))}"
            print_labelled("next", resume if kept else "give --save to be able to resume", console)
        elif (following := _next(view)) is not None:
            print_labelled("next", following, console)
        return
    word = conclusion.word.value.upper()
    width = max(LABEL, len(word) + 2)
    print_labelled(
        word, conclusion.text, console, width=width, style="bold", label_style=STYLE[conclusion.word]
    )
    if conclusion.cause is not None:
        print_labelled("cause", conclusion.cause, console, width=width)
    print_labelled("next", conclusion.next or "", console, width=width)
    if details:
        width = max(width, len("required") + 2)
        print_labelled("required", conclusion.requirement or "", console, width=width)
        if conclusion.exposure is not None:
            print_labelled("measured", conclusion.exposure, console, width=width)


def _next(view: RecordView) -> str | None:
    """Return what to do after a run without a requirement: mend what made all of it invalid, or give one."""
    invalid = [
        next((mark for mark in step.marks if mark.severity is Severity.INVALID), None)
        for step in view.record.steps
    ]
    if (first := next(iter(invalid), None)) is not None and None not in invalid:
        return first.remedy or None
    example = example_requirement(view.record.steps) if view.singly is view else None
    return None if example is None else f'for a verdict, add --require "{example}"'


def _ends(view: RecordView, *, kept: bool) -> list[Text]:
    """Return the last line: the page, or else the record."""
    record = view.record
    if not kept:
        return []
    page = record.folder.has(PAGE)
    where = str(record.folder.file(PAGE)) if page else str(record.path)
    return [Text.assemble((("page" if page else "record").ljust(LABEL), "bold"), where)]


def print_summary(record: Record, console: Console, *, kept: bool = True, details: bool = False) -> None:
    """Print the answer, the results, marks, items left out, and the page's path if the record is kept.

    By default there is a row per load or thread, in at most MOST_LINES lines after the answer. `details` adds
    the machine and all CPUs, threads, parts and marks.
    """
    view = RecordView(record)
    _print_conclusion(view, console, kept=kept, details=details)
    console.print()
    ends = _ends(view, kept=kept)
    if not details:
        print_brief(view, console, ends)
        return
    for line in [*system_lines(record), *method.cokernel_lines(view)]:
        print_text(console, line, style="dim")
    tables = [detail_table(view.singly, quantity) for quantity in view.singly.quantities]
    for table in tables:
        console.print()
        console.print(rich_table(table, console.width))
    if any(map(is_filled, tables)):
        print_text(console, FILLED_WORDS, style="dim")
    for line in [*repeat_lines(view.singly), *cross_check_lines(view.singly)]:
        print_text(console, line)
    for line in step_lines(view.steps, view.labels):
        print_text(console, line, style="dim")
    console.print()
    for presenter, steps in presenters(view.steps):
        presenter.print_tables(view, steps, console)
    _print_measuring(view, console)
    for mark in gathered_marks(view):
        print_text(console, Text.assemble("* ", mark_text(mark, MARK_STYLE[mark.severity])))
    for text in left_out_texts(view):
        print_labelled("missing", text, console)
    for line in unfinished(view):
        console.print(line)
    for line in ends:
        console.print(line, soft_wrap=True)


def _print_measuring(view: RecordView, console: Console) -> None:
    """Print what is known about the measuring itself: warm-up, losses, threads and clocks, and each mark in
    each step if its details differ.
    """
    few = view.representatives
    calibrated = any(step.key.probe == calibrate.PROBE.name for step in few.steps)
    calibrations = [] if calibrated else method.calibrations(few)  # its presenter prints them
    clock = pairs("The clock", method.clock_rows(few))
    tables = [thread_table(view.unfolded), clock, method.clock_table(calibrations)]
    tables += [table for step in few.steps for table in hardware_tables(step, few.labels[step.id], few.steps)]
    sightings = sighting_table(gathered_marks(view))
    print_tables([table for table in (*tables, sightings) if table is not None and table.rows], console)
    console.print()


def print_list(records: Iterable[Record], console: Console) -> None:
    """Print a table of the records, or two lines per record if their paths are long: name, date, host, state,
    loads, largest latency (us).
    """
    rows = [_list_row(record) for record in records]
    if not rows:
        console.print("There are no records here.")
        return
    if max(len(printable(row[0])) for row in rows) > console.width - STATE_AND_LARGEST:
        for record, *rest, largest in rows:
            console.print(Text(printable(record), style="bold"), soft_wrap=True)
            console.print(Text(printable(f"  {' · '.join(rest)} · max {largest} us")))
        return
    whole = {title: Column(title, "nowrap") for title in ("record", "date", "state")}
    columns = [whole["record"], whole["date"], *texts("host"), whole["state"], *texts("loads")]
    columns = ranked([*columns, Column("max (us)", "number")], "date", "host", "loads", "state")
    print_tables([Table("", columns, rows)], console)


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
