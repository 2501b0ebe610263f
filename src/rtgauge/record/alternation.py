# SPDX-License-Identifier: MIT
"""The two sides of a record that measured them alternately, in pairs of runs.

Drift of the machine, and aftereffects of one run on the next, then affect both sides alike. A run of a side
measures every step of the plan once. All its steps have the same `repeat`: 1 and 2 are the first pair, and
odd numbers belong to the first side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.strict_model import Model

if TYPE_CHECKING:
    from rtgauge.record.model import Run

KEY = "alternate"
"""The key in the plan of run.json that holds the two sides."""
BLOCK = 6
"""In a block of this many consecutive pairs, each side comes first equally often."""
DEFAULT_PAIRS = 2 * BLOCK
"""The most pairs of a gate, or of a test of a tuning, if the user says nothing."""
MOST_PAIRS = 33 * BLOCK
"""The most pairs that the user can ask for."""
PAIRS_PER_EXTRA = 3
"""One extra pair may be measured for this many, to replace a pair that does not count."""


class Alternation(Model):
    """The two sides of a record, as the user wrote them, the baseline first."""

    sides: tuple[str, str]
    boot_between: bool = False
    """Whether the guest is booted before each run."""
    pause_between_ns: int = 0
    """The pause (ns) before each run except the first."""

    @property
    def names(self) -> tuple[str, str]:
        """Return a distinct name for each side, even if both are the same."""
        first, second = self.sides
        return (f"{first} (A)", f"{second} (B)") if first == second else self.sides


def side_of(repeat: int) -> int:
    """Return the side (0 or 1) that the run with this number belongs to."""
    return (repeat - 1) % 2


def pair_of(repeat: int) -> int:
    """Return the pair that the run with this number belongs to, counted from 1."""
    return (repeat + 1) // 2


def alternation_of(run: Run) -> Alternation | None:
    """Return the sides of a record, or None if it did not alternate. Raises RecordError for damaged sides."""
    from rtgauge.record.model import kept_in_plan  # imported here, because every command imports this module

    return kept_in_plan(run, KEY, Alternation, "which sides it alternates")


def most_measured(max_pairs: int) -> int:
    """Return how many pairs may be measured so that `max_pairs` count."""
    return max_pairs + max_pairs // PAIRS_PER_EXTRA
