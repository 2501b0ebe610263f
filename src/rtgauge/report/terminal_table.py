# SPDX-License-Identifier: MIT
"""Tables in the terminal, by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich.table
from rich.text import Text

from rtgauge.report.table import PART, Cell
from rtgauge.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from rtgauge.report.table import Column, Table

WIDE = 76
"""A narrower terminal has one blank between columns, not two."""
LONGEST_WORD = 24
"""Longer words of a text are broken."""
LEAST_NAME, ENOUGH_NAME = 8, 24
"""Columns a name has at least, and those it has before others columns go for lack of room."""


def _least(table: Table, at: int) -> int:
    """The narrowest that a column can be: numbers are neither cut nor broken, nor are words."""
    if table.columns[at].is_number:
        return table.width(at)
    cells = [table.columns[at].title, *(row[at] for row in table.rows)]
    return min(LONGEST_WORD, max((len(word) for cell in cells for word in cell.split()), default=0))


def _fitted(table: Table, width: int, gap: int) -> Table:
    """The table with as many columns as have room."""

    def needed(shown: Table) -> int:
        others = sum(_least(shown, at) + gap for at in range(1, len(shown.columns)))
        return min(shown.width(0), ENOUGH_NAME) + others

    for spare in sorted({column.spare for column in table.columns} - {0}, reverse=True):
        if needed(table) <= width:
            break
        columns = table.columns
        table = table.only(lambda at, columns=columns, spare=spare: columns[at].spare < spare)
    return table


def _text(cell: str, column: Column, *, name: bool) -> Text:
    style = "red" if isinstance(cell, Cell) and cell.alarm else "bold" if column.kind == "maximum" else ""
    if name:
        style = "" if cell.startswith(PART) else "bold"
    return Text(
        printable(cell) + ("*" if name and isinstance(cell, Cell) and cell.marks else ""), style=style
    )


def rich_table(table: Table, width: int, *, one_line: bool = False) -> rich.table.Table:
    """The table in at most `width` columns, if its numbers have room. `one_line`: long names are cut."""
    gap = 2 if width >= WIDE else 1
    table = _fitted(table, width, gap)
    titles = [column.title for column in table.columns]
    made = rich.table.Table(
        box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim", show_header=any(titles)
    )
    least = [_least(table, at) for at in range(len(titles))]
    for at, column in enumerate(table.columns):
        made.add_column(
            Text(printable(column.title)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number or one_line,
            overflow="ellipsis" if one_line and not at else "fold",
            min_width=min(LEAST_NAME, least[at]) if one_line and not at else least[at],
        )
    for row in table.rows:
        made.add_row(
            *(
                _text(cell, column, name=not at)
                for at, (cell, column) in enumerate(zip(row, table.columns, strict=True))
            )
        )
    # A terminal that is too narrow for this breaks the lines itself.
    narrowest = sum(least) + gap * (len(least) - 1)
    made.width = narrowest if narrowest > width and not one_line else None
    return made


def print_tables(tables: Iterable[Table], console: Console) -> None:
    """Tables one after the other, each with its title and its notes; a table of one number is a line."""
    for at, table in enumerate(tables):
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
            console.print(Text(printable(note), style="dim"))
