# SPDX-License-Identifier: MIT
"""The options of the calculation how often a task can run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from rtgauge.errors import InputError

HALF = Fraction(1, 2)
"""The fraction of a period that the paper allows for lateness."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class FrequencyOptions:
    """`fraction`: the share of a period that a lateness may take. `confidence`: the confidence of one-sided
    bounds.
    """

    fraction: Fraction = HALF
    confidence: float = CONFIDENCE


def check_fraction(text: str) -> Fraction:
    """Parse a fraction of a period: `"0.5"`, `"1/2"` or `"50%"`. Raises InputError if it is not in (0, 1]."""
    try:
        value = Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f"--fraction {text[:40]}: give a fraction of the period, such as 0.5, 1/3 or 25%"
        ) from None
    if not 0 < value <= 1:
        raise InputError(f"--fraction {text[:40]}: give a number above 0 and at most 1 (the whole period)")
    return value
