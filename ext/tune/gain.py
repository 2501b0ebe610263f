# SPDX-License-Identifier: MIT
"""Writes gains for people."""

from __future__ import annotations

from rtgauge.units import LEAST_FACTOR, format_change, format_factor

LOWER, HIGHER = " times lower", " times higher"


def format_gain(gain: float) -> str:
    """Format a gain; 0.5 means that the value without the settings was 1.5 times as large. 0.123 is
    "+12.3 %", and from a factor of 2 on, 136.9 is "138 times lower", and -0.8 "5.0 times higher".
    """
    factor = 1 + gain
    if factor >= LEAST_FACTOR:
        return f"{format_factor(factor)}{LOWER}"
    if 0 < factor <= 1 / LEAST_FACTOR:
        return f"{format_factor(1 / factor)}{HIGHER}"
    return format_change(gain)


def format_gains(low: float, high: float) -> str:
    """Format an interval of gains: "+5.0 % to +12.3 %", "2.4 to 3.1 times lower"."""
    first, last = format_gain(low), format_gain(high)
    for unit in (LOWER, HIGHER):
        if first.endswith(unit) and last.endswith(unit):
            first = first.removesuffix(unit)
    return f"{first} to {last}"
