# SPDX-License-Identifier: MIT
"""The one model of a table; terminal_table.py prints it, templates/macros.html.j2 puts it on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Self

from rtgauge.report.text import printable

if TYPE_CHECKING:
    from rtgauge.record.model import Mark

Kind = Literal["text", "number", "count", "maximum", "prose", "path", "value", "places", "nowrap"]
"""What a column holds; on the page this is also the CSS class of its cells."""
Tone = Literal["", "alarm", "doubt", "good", "quiet"]
"""How a cell stands out: "alarm" should not be as it is. On the page this is also a CSS class."""
NUMBERS = ("number", "count", "maximum")
"""Kinds whose cells are aligned right and never broken."""
PART = "  "
"""A line whose name starts with this is a part of the line above."""


class Cell(str):
    """A cell with more than its text. `marks`: what marks its line; `href`: where it leads on a page."""

    __slots__ = ("href", "marks", "tone")
    href: str
    tone: Tone
    marks: Sequence[Mark]

    def __new__(cls, text: str, tone: Tone = "", marks: Sequence[Mark] = (), href: str = "") -> Self:
        """`text`, not escaped."""
        cell = super().__new__(cls, text)
        cell.tone, cell.marks, cell.href = tone, marks, href
        return cell


def tone_of(cell: str) -> Tone:
    """How a cell stands out."""
    return cell.tone if isinstance(cell, Cell) else ""


def marks_of(cell: str) -> Sequence[Mark]:
    """What marks the line that this cell names."""
    return cell.marks if isinstance(cell, Cell) else ()


@dataclass(frozen=True)
class Column:
    """A column. `spare`: if not all columns have room, those with the highest number go first; 0 stays."""

    title: str = ""
    kind: Kind = "text"
    spare: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the cells are aligned right."""
        return self.kind in NUMBERS

    @property
    def is_whole(self) -> bool:
        """Whether the cells are never broken."""
        return self.is_number or self.kind == "nowrap"


def texts(*titles: str) -> list[Column]:
    """Columns of text."""
    return [Column(title) for title in titles]


def numbers(*titles: str) -> list[Column]:
    """Columns of numbers; largest values have a kind of their own."""
    return [Column(title, "maximum" if title in {"max", "maximum"} else "number") for title in titles]


@dataclass(frozen=True)
class Table:
    """A table as text. The first column names the line."""

    title: str
    columns: Sequence[Column]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list[str])
    """What a reader has to know, a line each."""
    folded: bool = False
    """For the expert: the page folds it, the terminal shows it if details are wanted."""

    @property
    def sole(self) -> tuple[str, str] | None:
        """What the only number of the table is, and the number; None for a larger table."""
        if len(self.rows) != 1 or len(self.columns) != 2 or not any(one.title for one in self.columns):
            return None
        return ", ".join(part for part in (self.rows[0][0], self.columns[1].title) if part), self.rows[0][1]

    def only(self, wanted: Callable[[int], bool]) -> Table:
        """The table with the columns at the wanted places."""
        kept = [at for at in range(len(self.columns)) if wanted(at)]
        return replace(
            self,
            columns=[self.columns[at] for at in kept],
            rows=[[row[at] for at in kept] for row in self.rows],
        )

    def without_empty(self) -> Table:
        """The table without the columns in which no line has anything."""
        return self.only(lambda at: any(row[at] for row in self.rows))

    def width(self, at: int) -> int:
        """Characters of the widest cell of a column, its title included."""
        cells = [row[at] for row in self.rows]
        return max(
            len(self.columns[at].title), *(len(printable(cell)) + bool(marks_of(cell)) for cell in cells), 0
        )

    @property
    def natural_width(self) -> int:
        """Characters of a line in a terminal if nothing is broken."""
        return sum(self.width(at) + 2 for at in range(len(self.columns))) - 2


def pairs(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """A table of names and their values."""
    return Table(title, texts("", ""), [list(row) for row in rows])
