# SPDX-License-Identifier: MIT
"""Defines how many pairs of runs a decision may take."""

from __future__ import annotations

BLOCK = 6
"""In a block of this many consecutive pairs, each side comes first equally often."""
DEFAULT_PAIRS = 2 * BLOCK
"""The most pairs of a gate, or of a test of a tuning, if the user says nothing."""
MOST_PAIRS = 33 * BLOCK
"""The most pairs that the user can ask for."""
PAIRS_PER_EXTRA = 3
"""One extra pair may be measured for this many, to replace a pair that does not count."""


def most_measured(max_pairs: int) -> int:
    """Return how many pairs may be measured so that `max_pairs` count."""
    return max_pairs + max_pairs // PAIRS_PER_EXTRA
