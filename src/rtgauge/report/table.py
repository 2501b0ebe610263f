# SPDX-License-Identifier: MIT
"""Defines the only model of a table. terminal_table.py prints it; templates/macros.html.j2 renders it on a
page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from rtgauge.record.model import Mark
from rtgauge.report.text import printable

Kind = Literal["text", "number", "count", "maximum", "prose", "path", "value", "places", "nowrap"]
"""The content of a column. On the page it is also the CSS class of the cells."""
Tone = Literal["", "alarm", "doubt", "good", "quiet"]
"""How a cell stands out: "alarm" means that something is wrong. On the page it is also a CSS class."""
NUMBERS = ("number", "count", "maximum")
"""Kinds of column whose cells are right-aligned and never broken."""
PART = "  "
"""The prefix of a row's name if the row is part of the row above."""


SPARK = (90, 18)
"""The width and height of a spark line in px."""


class Cell(str):
    """A cell with more than text. `marks`: the marks on its row. `href`: the link on a page. `spark`: the
    points of a small line before the text on a page, as SVG has them, in a box of SPARK.
    """

    __slots__ = ("href", "marks", "spark", "tone")
    href: str
    spark: str
    tone: Tone
    marks: Sequence[Mark]

    def __new__(
        cls, text: str, tone: Tone = "", marks: Sequence[Mark] = (), href: str = "", spark: str = ""
    ) -> Self:
        """Make a cell of unescaped `text`."""
        cell = super().__new__(cls, text)
        cell.tone, cell.marks, cell.href, cell.spark = tone, marks, href, spark
        return cell


def tone_of(cell: str) -> Tone:
    """Return how a cell stands out."""
    return cell.tone if isinstance(cell, Cell) else ""


def marks_of(cell: str) -> Sequence[Mark]:
    """Return the marks on the row that this cell begins."""
    return cell.marks if isinstance(cell, Cell) else ()


@dataclass(frozen=True)
class Column:
    """A column. If not all columns fit, the ones with the highest `drop_rank` are dropped first; columns with
    0 stay.
    """

    title: str = ""
    kind: Kind = "text"
    drop_rank: int = 0

    @property
    def is_number(self) -> bool:
        """Whether cells are right-aligned."""
        return self.kind in NUMBERS

    @property
    def is_whole(self) -> bool:
        """Whether cells are never broken."""
        return self.is_number or self.kind == "nowrap"


def texts(*titles: str) -> list[Column]:
    """Return columns of text."""
    return [Column(title) for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Return columns of numbers. Maxima have a kind of their own."""
    return [Column(title, "maximum" if title in {"max", "maximum"} else "number") for title in titles]


def ranked(columns: Iterable[Column], *titles: str) -> list[Column]:
    """Return the columns with ranks: of `titles`, the first is the first to be left out if not all fit."""
    ranks = {title: len(titles) - at for at, title in enumerate(titles)}
    return [replace(column, drop_rank=ranks.get(column.title, column.drop_rank)) for column in columns]


@dataclass(frozen=True)
class Table:
    """A table as text. The first column names the row."""

    title: str
    columns: Sequence[Column]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list[str])
    """Notes for the reader, one per line."""
    folded: bool = False
    """For experts: the page folds it, and the terminal shows it only with details."""

    @property
    def sole(self) -> tuple[str, str] | None:
        """(name, number) if the table has only one number; None for a larger table."""
        if len(self.rows) != 1 or len(self.columns) != 2 or not any(column.title for column in self.columns):
            return None
        return ", ".join(part for part in (self.rows[0][0], self.columns[1].title) if part), self.rows[0][1]

    def only(self, is_kept: Callable[[int], bool]) -> Table:
        """Return the table with only the columns for whose place, counted from 0, `wanted` returns true."""
        kept = [at for at in range(len(self.columns)) if is_kept(at)]
        rows = [[row[at] for at in kept] for row in self.rows]
        return replace(self, columns=[self.columns[at] for at in kept], rows=rows)

    def without_empty(self) -> Table:
        """Return the table without its empty columns."""
        return self.only(lambda at: any(row[at] for row in self.rows))

    def width(self, at: int) -> int:
        """Return the width of a column's widest cell in characters, including the title."""
        cells = [row[at] for row in self.rows]
        return max(
            len(self.columns[at].title), *(len(printable(cell)) + bool(marks_of(cell)) for cell in cells), 0
        )

    @property
    def natural_width(self) -> int:
        """The width of the table in characters if no cell is broken."""
        return sum(self.width(at) + 2 for at in range(len(self.columns))) - 2


def applying(*notes: tuple[object, str]) -> list[str]:
    """Return the notes whose condition, the first item of each pair, holds."""
    return [note for applies, note in notes if applies]


def pairs(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and values."""
    return Table(title, texts("", ""), [list(row) for row in rows])
