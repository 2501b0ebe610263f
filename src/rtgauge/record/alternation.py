# SPDX-License-Identifier: MIT
"""The two sides of a record that measured them alternately.

The machine's drift, and what one run leaves behind for the next, then affect both sides alike. A run of a
side measures every step of the plan once. All its steps have the same `repeat`: 1 and 2 are the first pair,
and odd numbers belong to the first side.
"""

from __future__ import annotations

from rtgauge.record.model import Run, kept_in_plan
from rtgauge.record.strict_model import Model

KEY = "alternate"
"""The key in the plan of run.json that holds the two sides."""
BLOCK = 6
"""In this many consecutive pairs each side comes first equally often."""


class Alternation(Model):
    """The two sides of a record, as the user wrote them, the baseline first."""

    sides: tuple[str, str]
    boot_between: bool = False
    """Whether the guest is booted before each run."""

    @property
    def names(self) -> tuple[str, str]:
        """Give each side a name of its own, even if both are the same."""
        first, second = self.sides
        return (f"{first} (A)", f"{second} (B)") if first == second else self.sides


def side_of(repeat: int) -> int:
    """Return the side of the run with this number: 0 or 1."""
    return (repeat - 1) % 2


def pair_of(repeat: int) -> int:
    """Return the pair of the run with this number, from 1."""
    return (repeat + 1) // 2


def alternation_of(run: Run) -> Alternation | None:
    """Return the sides of a record, or None if it did not alternate. Raises RecordError if they are
    damaged.
    """
    return kept_in_plan(run, KEY, Alternation, "which sides it alternates")
