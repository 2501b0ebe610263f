# SPDX-License-Identifier: MIT
"""The tables of operations, such as a task switch, that an extension adds to a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import cast

from rtgauge.analysis.comparison_scope import has_several_operations
from rtgauge.extension import load, registered
from rtgauge.record.model import Model
from rtgauge.record.reader import Record
from rtgauge.report.table import Table


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
