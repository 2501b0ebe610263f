# SPDX-License-Identifier: MIT
"""A probe that measures the cost of an operation (Garre et al. 2014, sec. 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rtgauge.probe.descriptor import Probe, Shown
from rtgauge.probe.simple_probe import C, SimpleProbe


@dataclass(frozen=True, kw_only=True)
class CostColumn:
    """An operation's column in the tables of Garre et al. 2014, and how often it went as intended."""

    name: str
    """What every name of the operation begins with. The tables list operations in the order of the probes."""
    result: str
    """The name of the result that holds the counts."""
    met: str
    """The key in that result for the operations that went as intended."""
    tries: tuple[str, ...]
    """The keys in that result whose values add up to all operations."""
    met_name: str
    """What happened in the operations that went as intended, such as `slept until woken`."""
    note: str
    """What readers must know about these counts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Microbenchmark(SimpleProbe[C]):
    """A probe of an operation."""

    shown: Shown = field(default_factory=lambda: Shown(tabulated=True))
    cost: CostColumn


def cost_of(probe: Probe[Any]) -> CostColumn | None:
    """Return the column of a probe in the tables; None if it does not measure the cost of an operation."""
    return probe.cost if isinstance(probe, Microbenchmark) else None
