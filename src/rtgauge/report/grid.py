# SPDX-License-Identifier: MIT
"""A table as text: the page and the terminal print the same."""

from __future__ import annotations

from dataclasses import dataclass

MACHINES = "Machines and kernels"


@dataclass(frozen=True)
class Grid:
    """A table: its title, its columns (the first names the row), its rows, and what to know when reading
    it.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    folded: bool = False
    """For the expert: the page folds it, the terminal shows it where details are wanted."""


def natural_width(grid: Grid) -> int:
    """Characters of a line of the table in a terminal, where nothing in it goes on below."""
    lines = [grid.columns, *grid.rows]
    return sum(max(len(line[at]) for line in lines) + 2 for at in range(len(grid.columns))) - 2
