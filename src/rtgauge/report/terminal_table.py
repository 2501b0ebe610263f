# SPDX-License-Identifier: MIT
"""Prints tables in the terminal with rich."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import rich.table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rtgauge.report.labelled_lines import prose_width
from rtgauge.report.table import PART, Column, Table, marks_of, tone_of
from rtgauge.report.text import printable

WIDE = 76
"""A terminal narrower than this gets one space between columns instead of two."""
WIDEST_DRAWING = 160
LONGEST_UNWRAPPED = 24
"""A cell up to this width gets one line before other columns are dropped."""
STYLES = {"": "", "alarm": "red", "doubt": "yellow", "good": "green", "quiet": "dim"}


def _least(table: Table, at: int) -> int:
    """Return the minimum width of a column. Numbers are neither cut nor broken, and words are not broken."""
    if table.columns[at].is_whole:
        return table.width(at)
    cells = [table.columns[at].title, *(row[at] for row in table.rows)]
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def _desired_width(table: Table, at: int) -> int:
    """Return the width that a column gets before other columns are dropped."""
    return max(_least(table, at), min(table.width(at), LONGEST_UNWRAPPED))


def _gap(width: int) -> int:
    return 2 if width >= WIDE else 1


def fitted(table: Table, width: int) -> Table:
    """Return the table with as many columns as fit `width`."""
    gap = _gap(width)
    for drop_rank in sorted({column.drop_rank for column in table.columns} - {0}, reverse=True):
        desired_widths = [_desired_width(table, at) for at in range(len(table.columns))]
        if sum(desired_widths) + gap * (len(desired_widths) - 1) <= width:
            break
        columns = table.columns
        table = table.only(lambda at, columns=columns, drop_rank=drop_rank: columns[at].drop_rank < drop_rank)
    return table


def narrowed(whole: Table, width: int) -> Table:
    """Drop columns until the table fits: first the ones that `fitted` drops, then the last ones, but never a
    maximum. A note names the dropped columns. If not even two columns fit, return the whole table.
    """
    table = fitted(whole, width)
    gap, left_out = _gap(width), list[str]()
    while len(table.columns) > 2 and _least_width(table, gap) > width:
        last = max(
            (at for at, column in enumerate(table.columns) if at and column.kind != "maximum"), default=None
        )
        if last is None:
            break
        left_out.insert(0, table.columns[last].title)
        table = table.only(lambda at, last=last: at != last)
    if _least_width(table, gap) > width:
        return whole
    names = ", ".join(title for title in left_out if title)
    return replace(table, notes=[*table.notes, f"A wider terminal also shows: {names}."]) if names else table


def _least_width(table: Table, gap: int) -> int:
    """Return the smallest width in which no word and no number is broken."""
    least = [_least(table, at) for at in range(len(table.columns))]
    return sum(least) + gap * (len(least) - 1)


def _text(cell: str, column: Column, *, name: bool) -> Text:
    style = STYLES[tone_of(cell)] or ("bold" if column.kind == "maximum" else "")
    if name and not style:
        style = "" if cell.startswith(PART) else "bold"
    return Text(printable(cell) + ("*" if name and marks_of(cell) else ""), style=style)


def _upright(table: Table) -> Text:
    """Return each row as its name, followed by a line per column."""
    lines: list[Text] = []
    for row in table.rows:
        lines.append(_text(row[0], table.columns[0], name=True))
        for cell, column in zip(row[1:], table.columns[1:], strict=True):
            title = f"{printable(column.title)} " if column.title else ""
            lines.append(Text.assemble((f"  {title}", "dim"), _text(cell, column, name=False)))
    return Text("\n").join(lines)


def _widths(table: Table, width: int, gap: int) -> list[int]:
    """Return the width of each column: the widest are the first to be narrowed, none below its minimum.

    rich narrows columns below their minimum width, and then prints lines that are too long.
    """
    columns = range(len(table.columns))
    room = width - gap * (len(columns) - 1)
    least, whole = [_least(table, at) for at in columns], [table.width(at) for at in columns]
    level = max(whole, default=0)
    while level and sum(max(few, min(many, level)) for few, many in zip(least, whole, strict=True)) > room:
        level -= 1
    return [max(few, min(many, level)) for few, many in zip(least, whole, strict=True)]


def rich_table(table: Table, width: int) -> rich.table.Table | Text:
    """Return the table within `width` characters, or with a line per cell if its numbers do not fit side by
    side.
    """
    gap = _gap(width)
    whole, table = table, fitted(table, width)
    if _least_width(table, gap) > width:
        return _upright(whole)
    made = rich.table.Table(
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        header_style="dim",
        show_header=any(column.title for column in table.columns),
    )
    for column, column_width in zip(table.columns, _widths(table, width, gap), strict=True):
        made.add_column(
            Text(printable(column.title)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_whole,
            overflow="fold",
            width=column_width,
        )
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        made.add_row(*(_text(cell, column, name=not at) for at, (cell, column) in enumerate(cells)))
    return made


def drawing_width(console: Console) -> int:
    """Return the width for a drawing, which also has one in output that is not a terminal."""
    return min(console.width, WIDEST_DRAWING)


def print_text(console: Console, text: str | Text, indent: int = 0, style: str = "") -> None:
    """Print a text as wide as a sentence may be, with an indentation that its continued lines share."""
    shown = text if isinstance(text, Text) else Text(printable(text), style=style)
    console.print(Padding(shown, (0, 0, 0, indent), expand=False), width=prose_width(console))


def print_tables(tables: Iterable[Table], console: Console) -> None:
    """Print tables one after another, with titles and notes. A table with only one number becomes a line."""
    for at, whole in enumerate(tables):
        table = narrowed(whole, console.width)
        if at:
            console.print()
        if table.sole is not None:
            what, number = table.sole
            name = ", ".join(part for part in (table.title, what) if part)
            console.print(Text.assemble((printable(name), "bold"), f": {printable(number)}"))
        else:
            if table.title:
                console.print(Text(printable(table.title), style="bold underline"))
            if table.rows:
                console.print(rich_table(table, console.width), crop=False)
        for note in table.notes:
            for line in Text(printable(note), style="dim").wrap(console, prose_width(console)):
                console.print(line, soft_wrap=True)
