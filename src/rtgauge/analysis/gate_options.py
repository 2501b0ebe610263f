# SPDX-License-Identifier: MIT
"""Defines the options of a gate, which are kept in its record."""

from __future__ import annotations

import re

from pydantic import Field

from rtgauge.record.model import Run, kept_in_plan
from rtgauge.record.quantiles import NAMES
from rtgauge.record.strict_model import Model

KEY = "gate"
"""The key of the options in the plan of run.json."""


class GateOptions(Model):
    """The options of a gate: what it decides on, and its limits."""

    series: str | None = None
    """Series by which the gate decides; None: the series whose load has the largest values in the first
    pairs.
    """
    quantile: str = Field(default="p99.9", pattern=rf"^({'|'.join(map(re.escape, NAMES))})$")
    larger_than: float = Field(default=0.1, gt=0)
    """The smallest change that matters; 0.1 is 10 %."""
    max_pairs: int
    require: str | None = None
    """A requirement with a bound; if set, the gate decides by how often a side exceeds this bound."""
    extended_from: tuple[int, ...] = ()
    """Values of max_pairs before `rtgauge resume` raised it."""
    rare: float | None = None
    """Share of boots; the gate passes only after enough pairs to find a state of the machine that occurs in
    this share of boots.
    """
    kernels: tuple[str | None, str | None] = (None, None)
    """Text that the kernel release must contain, for each side."""
    allowed_marks: list[str] = Field(default_factory=list[str])
    """Marks that make a run doubtful, but do not exclude it from this gate."""


def options_of(run: Run) -> GateOptions | None:
    """Return the options of the record's gate; None if it has none. Raises RecordError for a wrong plan."""
    return kept_in_plan(run, KEY, GateOptions, "what its gate decides")
