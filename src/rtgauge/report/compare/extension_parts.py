# SPDX-License-Identifier: MIT
"""What extensions add to a comparison: parts of its document, and tables of operations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import ClassVar, cast

from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.comparison_scope import has_several_operations
from rtgauge.analysis.sides import Side
from rtgauge.extension import load, registered
from rtgauge.record.model import Model
from rtgauge.record.reader import Record
from rtgauge.report.table import Table


class ComparisonPart(Model):
    """A part of the document of a comparison, under `extensions`, with its tables."""

    extension: ClassVar[str]
    """The name of the extension."""

    @abstractmethod
    def tables(self, result: Comparison) -> list[Table]:
        """Return the tables. The folded ones come last, and only `--details` prints them."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Return a line for each folded table."""


PartMaker = Callable[
    [Sequence[Side], Sequence[tuple[Side, Side]], float, Callable[[str, int, int], None] | None],
    ComparisonPart,
]
"""Compares sides: the sides, the pairs (side, its baseline), the level of every test, and what shows the
progress, or None.
"""


def parts_of(result: Comparison) -> list[ComparisonPart]:
    """Return the parts that extensions added to a comparison."""
    return [part for part in result.extensions.values() if isinstance(part, ComparisonPart)]


def with_parts(result: Comparison, parts: Sequence[ComparisonPart]) -> Comparison:
    """Return the comparison with these parts added."""
    return result.model_copy(update={"extensions": {part.extension: part for part in parts}})


@dataclass(frozen=True)
class Operations:
    """What operations cost. `terminal_tables` returns the tables in a form that fits a width."""

    document: Model
    conclusion: str | None
    tables: Sequence[Table]
    terminal_tables: Callable[[int], Sequence[Table]]


def operations_of(records: Sequence[Record]) -> Operations | None:
    """Return what an extension makes of records with several operations; None for other records, or without
    such an extension. Raises RecordError for a damaged step.
    """
    name = next(iter(registered("operations")), None)
    if name is None or not has_several_operations(records):
        return None
    return cast("Callable[[Sequence[Record]], Operations]", load("operations", name, FunctionType))(records)
