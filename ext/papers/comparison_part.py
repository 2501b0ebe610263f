# SPDX-License-Identifier: MIT
"""What the papers add to a comparison: the selection of Delgado and Choi, and estimates of rare latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.sides import Side
from rtgauge.extension import Document
from rtgauge.report.compare.extension_parts import ComparisonPart
from rtgauge.report.table import Table
from rtgauge_ext.papers.extreme_value import TailEstimate
from rtgauge_ext.papers.selection import (
    ChiSquarePair,
    Selection,
    folded_selection,
    selection_grid,
    selections_of,
    tested_pair,
)
from rtgauge_ext.papers.tail_estimate import tail_estimate, tail_grid


class PapersComparison(ComparisonPart):
    """The tests of all pairs, the selection of each baseline, and the tail of each side."""

    extension: ClassVar[str] = "papers"
    pairs: list[ChiSquarePair]
    selections: list[Selection]
    tails: list[TailEstimate]

    def tables(self, result: Comparison) -> list[Table]:
        """Return the tables of the tails, if they were estimated, and of the selection."""
        tails = [tail_grid(self.tails, result.quantity, result.alpha)] if self.tails else []
        return [*tails, selection_grid(self.pairs, self.selections, result.alpha)]

    def notes(self) -> list[str]:
        """Return a line for the selection."""
        return folded_selection(self.pairs, self.selections)


def papers_comparison(
    sides: Sequence[Side],
    pairs: Sequence[tuple[Side, Side]],
    alpha: float,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    tails: bool = True,
) -> PapersComparison:
    """Compare the sides. `pairs`: (side, its baseline). Calls `progress("tails", done, total)`."""
    tested = [tested_pair(side, baseline, alpha=alpha) for side, baseline in pairs]
    estimates: list[TailEstimate] = []
    for i, side in enumerate(sides if tails else []):
        if progress is not None:
            progress("tails", i, len(sides))
        estimates.append(tail_estimate(side, confidence=1 - alpha))
    return PapersComparison(
        pairs=tested,
        selections=selections_of(tested, {side.label: side.filled for side in sides}),
        tails=estimates,
    )


DOCUMENT = Document("what the papers add to a comparison, under extensions", (PapersComparison,))
