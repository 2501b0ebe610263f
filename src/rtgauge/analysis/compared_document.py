# SPDX-License-Identifier: MIT
"""What `rtgauge compare --json` prints: one comparison, a list of them, the microbenchmarks, or an object
with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import RootModel

from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.microbenchmarks import Microbenchmarks
from rtgauge.record.model import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel


class ComparisonList(RootModel[list[Comparison]]):
    """A comparison a probe, a task, or a quantity and who saw it; `title` tells them apart."""


class OperationsAndComparisons(Model):
    """The operations of microbenchmarks, and the comparisons of all else."""

    operations: Microbenchmarks
    comparisons: list[Comparison]


def compared_document(
    benchmarks: Microbenchmarks | None, comparisons: Sequence[Comparison], *, one: bool
) -> BaseModel:
    """The document to print. `one`: everything was compared in one go."""
    if benchmarks is None:
        return comparisons[0] if one else ComparisonList(list(comparisons))
    return (
        OperationsAndComparisons(operations=benchmarks, comparisons=list(comparisons))
        if comparisons
        else benchmarks
    )
