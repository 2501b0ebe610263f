# SPDX-License-Identifier: MIT
"""What the terminal shows of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rtgauge.report.grid import MACHINES
from rtgauge.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from rtgauge.report.grid import Grid

MOST_SETTINGS = 24
LONGEST = 100
LONGEST_WORD = 24
"""Longer words of a text are broken."""
NUMBERS = {
    "count",
    "missed",
    "average",
    "maximum",
    "minimum",
    "std",
    "chi-square",
    "DOF",
    "p",
    "side",
    "baseline",
    "difference",
    "shape",
    "activations",
    "deadline misses",
    "preemptions",
    "threads",
    "nodes",
    "step",
    "speed-up",
    "predicted",
    "holds",
    "deadlines",
    "missed at most",
}


TEXTS = {"kernel", "processor"}


def _is_numeric(grid: Grid, at: int) -> bool:
    """Whether a column has numbers: they are aligned and not broken."""
    column = grid.columns[at]
    by_title = (grid.title.endswith("(ns)") and column != "operation") or (
        grid.title == MACHINES and column not in TEXTS
    )
    return (
        column in NUMBERS or (at > 0 and by_title) or column.startswith(("critical", "Wasserstein", "Cramer"))
    )


def _table(grid: Grid) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(grid.columns)
    )
    for i, column in enumerate(grid.columns):
        numeric = _is_numeric(grid, i)
        style, justify = "bold" if i == 0 else "", "right" if numeric else "left"
        table.add_column(
            Text(printable(column)),
            justify=justify,
            no_wrap=numeric,
            style=style,
            overflow="fold",
            min_width=_least_column(grid, i),
        )
    for row in grid.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _least_column(grid: Grid, at: int) -> int:
    """The narrowest that a column can be: numbers are neither cut nor broken, nor are words."""
    cells = [line[at] for line in (grid.columns, *grid.rows)]
    if _is_numeric(grid, at):
        return max(map(len, cells))
    return min(LONGEST_WORD, max((len(word) for cell in cells for word in cell.split()), default=0))


def _least_width(grid: Grid) -> int:
    """The narrowest that the table can be."""
    return sum(_least_column(grid, i) + 2 for i in range(len(grid.columns)))


def _settings(grid: Grid) -> tuple[Grid, int]:
    """The grid with its first rows, long values cut, and how many rows were left away."""
    rows = [
        [name, value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"]
        for name, value in (row[:2] for row in grid.rows[:MOST_SETTINGS])
    ]
    return type(grid)(grid.title, grid.columns, rows, grid.notes), max(0, len(grid.rows) - MOST_SETTINGS)


def _line(grid: Grid) -> Text | None:
    """A table of one number as a line; None for a larger one."""
    if len(grid.rows) != 1 or len(grid.columns) != 2:
        return None
    (name, value), heading = grid.rows[0][:2], grid.columns[1]
    what = ", ".join(part for part in (grid.title, name, heading) if part)
    return Text.assemble((printable(what), "bold"), f": {printable(value)}")


def print_grids(tables: Sequence[Grid], console: Console) -> None:
    """Tables one after the other, each with its title and its notes."""
    for i, grid in enumerate(tables):
        shown, more = _settings(grid) if grid.title.startswith("Settings") else (grid, 0)
        if i:
            console.print()
        line = _line(shown)
        console.print(line or Text(printable(shown.title), style="bold underline"))
        if shown.rows and line is None:
            # A terminal that is too narrow for this breaks the lines itself.
            table, least = _table(shown), _least_width(shown)
            table.width = least if least > console.width else None
            console.print(table, crop=False)
        if more:
            console.print(Text(f"and {more} more: rtgauge compare --json shows all", style="dim"))
        for note in shown.notes:
            console.print(Text(printable(note), style="dim"))
