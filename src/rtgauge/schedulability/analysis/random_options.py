# SPDX-License-Identifier: MIT
"""The ranges of random task sets as they are written: 0.5:1.0:0.05 and 10ms:1s."""

from __future__ import annotations

import re
from decimal import Decimal

from rtgauge.errors import InputError
from rtgauge.schedulability.analysis.sensitivity import PARTS
from rtgauge.units import format_duration, parse_duration_ns

STEP = "0.05"
MAX_POINTS = 1_000


def parse_utilisations(text: str) -> list[float]:
    """`"0.5:1.0"` -> [0.5, 0.55, ... 1.0]; a third number is the step, one number alone is one utilisation. Raises InputError."""
    parts = text.split(":")
    if len(parts) > 3 or not all(re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", part.strip()) for part in parts):
        raise InputError(f"--utilisation {text}: write LOW:HIGH or LOW:HIGH:STEP, for example 0.5:1.0:0.05")
    low, high, step = Decimal(parts[0]), Decimal(parts[1] if len(parts) > 1 else parts[0]), Decimal(parts[2] if len(parts) > 2 else STEP)
    if not 0 < low <= high <= 1:
        raise InputError(f"--utilisation {text}: a CPU has a utilisation of more than 0 and at most 1, and LOW comes first")
    if step <= 0 or (high - low) / step >= MAX_POINTS:
        raise InputError(f"--utilisation {text}: the step must give at most {MAX_POINTS} points")
    return [float(low + i * step) for i in range(int((high - low) / step) + 1)]


def parse_periods(text: str, tasks: int) -> tuple[int, int]:
    """`"10ms:1s"` -> (10000000, 1000000000). `tasks`: of each set; more of them allow shorter periods only. Raises InputError."""
    low, sign, high = text.partition(":")
    try:
        shortest_ns, longest_ns = parse_duration_ns(low), parse_duration_ns(high if sign else low)
    except ValueError as error:
        raise InputError(f"--periods {text}: {error}") from None
    largest_ns = (2**63 - 1) // (4 * PARTS * tasks)
    if not 1_000 <= shortest_ns <= longest_ns <= largest_ns:
        raise InputError(f"--periods {text}: write LOW:HIGH, at least 1us and for {tasks} tasks at most {format_duration(largest_ns // 10**9 * 10**9)}")
    return shortest_ns, longest_ns
