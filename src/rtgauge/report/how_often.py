# SPDX-License-Identifier: MIT
"""How often a task can run, which an extension calculates from measured latencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from rtgauge.extension import load, registered
from rtgauge.record.reader import Record
from rtgauge.report.figures.vega import Figure
from rtgauge.report.table import Table


@dataclass(frozen=True)
class HowOften:
    """What is shown of it; empty for records without a step that is compared with a period."""

    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    sentences: Sequence[str] = field(default=())
    """The results, without full stops."""


@dataclass(frozen=True)
class Frequencies:
    """Calculates how often a task can run."""

    calculate: Callable[[Sequence[Record], object | None], HowOften]
    """Takes records, and the extension's own options or None. Raises RecordError for a damaged record."""
    searches: Callable[[Record], list[str]]
    """Returns a sentence for each search over the period in a record."""


def frequencies() -> Frequencies | None:
    """Return what calculates it; None if no extension does. Raises InputError if it cannot be used."""
    name = next(iter(registered("frequencies")), None)
    return None if name is None else cast("Frequencies", load("frequencies", name, Frequencies))


def how_often(records: Sequence[Record], options: object | None = None) -> HowOften:
    """Return how often a task can run. Raises RecordError for a damaged record."""
    timing = frequencies()
    return HowOften() if timing is None else timing.calculate(records, options)
