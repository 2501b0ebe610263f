# SPDX-License-Identifier: MIT
"""The one model of a table. terminal_table.py prints it; the macro `table` in templates/macros.html.j2 puts
it on a page.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rtgauge.record.model import Mark

Kind = Literal["text", "number", "count", "maximum", "prose", "path", "value", "places"]
"""What a column holds; on the page this is also the CSS class of its cells."""
NUMBERS = ("number", "count", "maximum")
"""Kinds whose cells are aligned right and never broken."""
PART = "  "
"""A line whose name starts with this is a part of the line above."""


class Cell(str):
    """A cell with more than its text. `alarm`: the value should not be as it is; `marks`: what marks its
    line.
    """

    __slots__ = ("alarm", "marks")
    alarm: bool
    marks: Sequence[Mark]

    def __new__(cls, text: str, *, alarm: bool = False, marks: Sequence[Mark] = ()) -> Self:
        """`text`, not escaped."""
        cell = super().__new__(cls, text)
        cell.alarm, cell.marks = alarm, marks
        return cell


@dataclass(frozen=True)
class Column:
    """A column. `spare`: if not all columns have room, those with the highest number go first; 0 stays."""

    title: str = ""
    kind: Kind = "text"
    spare: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the cells are aligned right and never broken."""
        return self.kind in NUMBERS


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
        if len(self.rows) != 1 or len(self.columns) != 2:
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
        return max(len(self.columns[at].title), *(len(row[at]) for row in self.rows), 0)

    @property
    def natural_width(self) -> int:
        """Characters of a line in a terminal if nothing is broken."""
        return sum(self.width(at) + 2 for at in range(len(self.columns))) - 2
