# SPDX-License-Identifier: MIT
"""What the terminal shows of a record: the summary after a run, and the list of records.

Nothing heavy is imported here.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rtgauge.record.finder import RECORDS
from rtgauge.record.model import Severity, VerdictWord
from rtgauge.record.reader import PAGE
from rtgauge.report.brief_terminal import print_brief
from rtgauge.report.conclusion import conclude, cross_check_lines, repeat_lines
from rtgauge.report.conditions import is_folded, ordered_steps, step_labels
from rtgauge.report.fact_rows import hosts, system_lines
from rtgauge.report.marks import gathered_marks
from rtgauge.report.method import cokernel_lines
from rtgauge.report.presenter import presenters, step_lines
from rtgauge.report.quantity import example_requirement, has_distribution, quantities, quantity_of
from rtgauge.report.tables import FIGURES, Row, load_rows, series_name, series_rows
from rtgauge.report.text import printable, us
from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from rtgauge.record.model import SeriesSummary, Step
    from rtgauge.record.reader import Record

WIDE = ("min", "mean", "p50", "p99", "p99.9", "p99.99", "max")
MIDDLE = ("min", "mean", "p99", "p99.9", "max")
LIST_WIDTH = 120
LEAST_NAME = 8
ENOUGH_NAME = 24
"""A longer name may take several lines for the sake of more columns."""
NARROW = ("mean", "p99.9", "max")
STYLE = {
    VerdictWord.HOLDS: "bold green",
    VerdictWord.MARGINAL: "bold yellow",
    VerdictWord.FAILS: "bold red",
    VerdictWord.CANNOT_TELL: "bold yellow",
}
NO_ROW = Row("", "", "", dict.fromkeys(FIGURES.values(), ""))
"""Of a line that is a heading."""
MARK_STYLE = {Severity.NOTE: "", Severity.DOUBTFUL: "yellow", Severity.INVALID: "bold red"}


def _needed(lines: Sequence[Sequence[Text]], headings: tuple[str, ...], gap: int) -> int:
    """The width of all columns of numbers: a number is never cut."""
    columns = [[heading, *(cells[at].plain for cells in lines)] for at, heading in enumerate(headings)]
    return sum(max(map(len, column)) + gap for column in columns)


def _cell(row: Row, heading: str) -> Text:
    if heading == "count":
        return Text(row.count)
    if heading == "missed":
        return Text(row.missed, style="red" if row.missed not in {"0", "?", ""} else "")
    return Text(row.cells[heading])


def _only(series: SeriesSummary) -> str:
    """The CPU of the one series of a step; its other labels are the step's parameters."""
    cpu = series.labels.get("cpu")
    return series_name(series) if cpu is None else f"CPU {cpu}"


def _lines(record: Record, quantity: str) -> list[tuple[Text, Row]]:
    """Name and row of every line of the table of one quantity."""
    lines: list[tuple[Text, Row]] = []
    names = step_labels(record)
    totals: dict[str, list[Row]] = {}
    name = ""
    for row in load_rows(record).get(quantity, []):
        name = name if row.filled else row.name
        totals.setdefault(name, []).append(row)
    for step in ordered_steps(record):
        if step.tasks or quantity_of(step) != quantity:
            continue
        for row in totals.get(names[step.id], []):
            only = f", {_only(step.series[0])}" if len(step.series) == 1 else ""
            label = (
                Text("  filled in", style="dim")
                if row.filled
                else Text(printable(row.name + only) + ("*" if step.marks else ""), style="bold")
            )
            lines.append((label, row))
        if not has_distribution(step):
            lines.append(
                (Text(printable(names[step.id]) + ("*" if step.marks else ""), style="bold"), NO_ROW)
            )
        if len(step.series) > 1 or step.total is None:
            for row in series_rows(step):
                label = Text(
                    "    filled in" if row.filled else f"  {printable(row.name)}",
                    style="dim" if row.filled else "",
                )
                lines.append((label, row))
    return lines


def _table(record: Record, quantity: str, width: int) -> Table:
    """The widest set of columns that fits; where a line is too long for the terminal, its name goes on
    below.
    """
    lines = _lines(record, quantity)
    gap = 2 if width >= 76 else 1
    label_width = max((len(name.plain) for name, _ in lines), default=LEAST_NAME)
    counts = ("count", "missed") if any(row.missed for _, row in lines) else ("count",)
    for figures in (WIDE, MIDDLE, NARROW):
        headings = (*counts, *figures)
        room = width - _needed(
            [[_cell(row, heading) for heading in headings] for _, row in lines], headings, gap
        )
        if room >= min(label_width, ENOUGH_NAME):
            break
    shown = max(LEAST_NAME, min(label_width, room))
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    table.add_column(f"{quantity}, us", overflow="fold", width=shown)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in lines:
        table.add_row(name, *(_cell(row, heading) for heading in headings))
    return table


def print_conclusion(record: Record, console: Console) -> None:
    """One sentence, and below it what it is about and what to do next."""
    conclusion = conclude(record)
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
    console.print(Text(f"next      {printable(conclusion.next or '')}"))


def _marks(record: Record) -> Iterable[Text]:
    """Each mark once, the severest first."""
    for mark in gathered_marks(record):
        where = f" {mark.where}" if mark.where else ""
        yield Text.assemble(
            (mark.severity.value, MARK_STYLE[mark.severity]),
            f": {printable(mark.name)}{printable(where)}: {printable(mark.detail)}",
        )


def _singly(record: Record) -> Record:
    """The record with the steps that are shown one by one."""
    return (
        replace(record, steps=kept)
        if len(kept := [step for step in record.steps if not is_folded(step, record)]) < len(record.steps)
        else record
    )


def _ends(record: Record, console: Console, *, kept: bool, details: bool) -> list[Text]:
    """The last lines: how to ask for a verdict, how to see all, and where the record is."""
    lines: list[Text] = []
    example = example_requirement(record.steps)
    if not record.run.verdicts and example is not None and _singly(record) is record:
        lines += Text(f'No requirement was given; add one: --require "{example}"', style="dim").wrap(
            console, console.width
        )
    if not kept:
        return lines if details else [*lines, Text("Every CPU, thread and mark: --details", style="dim")]
    if not details:
        lines.append(Text(f"details rtgauge show {shlex.quote(_known_as(record))} --details", style="dim"))
    lines.append(Text(f"record  {record.path}"))
    return [*lines, Text(f"page    {record.folder.file(PAGE)}")] if record.folder.has(PAGE) else lines


def print_summary(record: Record, console: Console, *, kept: bool = True, details: bool = False) -> None:
    """The conclusion, the system, what was measured, marks, what was left out, and where the record is (if it
    is kept).

    By default a row a load, in at most MOST_LINES lines after the conclusion; with `details` all CPUs,
    threads, parts and marks.
    """
    print_conclusion(record, console)
    console.print()
    ends = _ends(record, console, kept=kept, details=details)
    if not details:
        print_brief(record, console, ends)
        return
    for line in [*system_lines(record), *cokernel_lines(record)]:
        console.print(Text(printable(line), style="dim"))
    single = _singly(record)
    for quantity in quantities(single.steps):
        console.print()
        console.print(_table(single, quantity, console.width))
    if any(row.filled for rows in load_rows(single).values() for row in rows):
        console.print(
            Text(
                "filled in: each missed activation is counted with the latency that it would have had",
                style="dim",
            )
        )
    for line in [*repeat_lines(single), *cross_check_lines(single)]:
        console.print(Text(printable(line)))
    for line in step_lines(ordered_steps(record), step_labels(record)):
        console.print(Text(printable(line), style="dim"))
    console.print()
    for presenter, steps in presenters(ordered_steps(record)):
        presenter.print_tables(record, steps, console)
    for mark in _marks(record):
        console.print(Text.assemble("* ", mark))
    for item in record.run.left_out:
        console.print(
            Text(
                printable(
                    f"left out: {item.what}: {item.reason}" + (f"; {item.remedy}" if item.remedy else "")
                )
            )
        )
    if record.run.state != "complete":
        finished, planned = len(record.run.steps), plural(len(record.run.planned), "planned step")
        console.print(
            Text(f"This run is {record.run.state}: {finished} of {planned} finished.", style="yellow")
        )
    for line in ends:
        console.print(line, soft_wrap=True)


def _largest(steps: Iterable[Step]) -> str:
    return us(
        max(
            (step.total.max_ns for step in steps if step.total is not None and step.total.max_ns is not None),
            default=None,
        )
    )


def print_list(records: Iterable[Record], console: Console) -> None:
    """A line a record, or two where the terminal is narrow: what every command takes for it, date, host,
    state, loads, and the largest latency (us).
    """
    rows = [_list_row(record) for record in records]
    if not rows:
        console.print("No record is here.")
        return
    if console.width < LIST_WIDTH:
        for record, *rest, largest in rows:
            console.print(Text(record, style="bold"), soft_wrap=True)
            console.print(Text(f"  {' · '.join(rest)} · max {largest} us"))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("record", no_wrap=True)
    table.add_column("date", no_wrap=True)
    table.add_column("host", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("loads", overflow="fold")
    table.add_column("max (us)", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _known_as(record: Record) -> str:
    """What every command takes for a record."""
    return record.path.name if record.path.parent == RECORDS else str(record.path)


def _list_row(record: Record) -> tuple[str, ...]:
    loads = ", ".join(dict.fromkeys(step.key.load for step in ordered_steps(record))) or "–"
    date = record.run.created.replace("T", " ")[:16]
    return tuple(
        printable(cell)
        for cell in (
            _known_as(record),
            date,
            ", ".join(hosts(record)),
            record.run.state,
            loads,
            _largest(record.steps),
        )
    )
