# SPDX-License-Identifier: MIT
"""Parses and formats durations, CPU lists and CPU masks: 100us, 1.5ms, 0-3,6, ff,0000000f."""

from __future__ import annotations

import math
import re
from fractions import Fraction

NS_PER_S = 10**9
NS_PER_UNIT = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": NS_PER_S,
    "min": 60 * NS_PER_S,
    "m": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
    "d": 86400 * NS_PER_S,
}
ROUNDED_TO_1000 = 999.5
"""From this value on, three digits are not enough."""
MAX_NS = 2**63 - 1
MAX_CPU = 8191
MAX_MASK_DIGITS = 4096


def parse_duration_ns(text: str) -> int:
    """Parse a duration with a unit into whole ns: `"100us"` -> 100000.

    Raises ValueError, with the cause and an example, for any other text.
    """
    match = re.fullmatch(r"([+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?)\s*([A-Za-zµμ]*)", text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a duration; give one such as 100us, 1ms, 10s or 1h")
    number, unit = match.groups()
    if unit == "":
        raise ValueError(f"'{text}' has no unit; give {number}us, {number}ms or {number}s, for example")
    if unit not in NS_PER_UNIT:
        raise ValueError(f"'{text}' has the unknown unit '{unit}'; give ns, us, ms, s, min, h or d")
    value = Fraction(number) * NS_PER_UNIT[unit]  # exact for any number of digits
    if value.denominator != 1:
        raise ValueError(f"'{text}' is not a whole number of nanoseconds")
    if abs(value) > MAX_NS:
        raise ValueError(f"'{text}' is longer than 292 years")
    return int(value)


def format_duration(ns: float) -> str:
    """Format a duration in the largest unit in which it is exact: 1000000 -> `"1ms"`."""
    whole = int(ns)
    if whole == 0:
        return "0s"
    for unit in ("h", "min", "s", "ms", "us"):
        if whole % NS_PER_UNIT[unit] == 0:
            return f"{whole // NS_PER_UNIT[unit]}{unit}"
    return f"{whole}ns"


def format_bound(ns: int) -> str:
    """Format a duration for a sentence, in the largest unit in which it is exact: 1000000 -> `"1 ms"`."""
    text = format_duration(ns)
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{digits} {text[len(digits) :]}"


def format_percentage(share: float) -> str:
    """Format a share as it was given, such as a confidence: 0.999 -> `"99.9 %"`."""
    return f"{share * 100:.12g} %"


def format_span(seconds: float) -> str:
    """Format how long people have to wait, at least a second: 7512 -> `"2 h 5 min"`."""
    whole = max(1, round(seconds))
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def parse_percent(text: str) -> float:
    """Parse a percentage above 0 and up to 1000 %: `"10%"` -> 0.1.

    Raises ValueError, with an example, for any other text.
    """
    match = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,6})?)\s*%", text.strip())
    share = float(match[1]) / 100 if match is not None else 0.0
    if not 0 < share <= 10:
        raise ValueError(f"'{text}' is not a change in percent; give one such as 10%")
    return share


def format_time(ns: float | None) -> str:
    """Format a measured time with three significant digits in ns, us, ms or s; None -> `"-"`."""
    if ns is None:
        return "-"
    if abs(ns) < ROUNDED_TO_1000:
        return f"{ns:.0f} ns"
    unit, value = next(
        (unit, ns / divisor)
        for unit, divisor in (("us", 1e3), ("ms", 1e6), ("s", 1e9))
        if unit == "s" or abs(ns / divisor) < ROUNDED_TO_1000
    )
    digits = next(
        digits for digits in (2, 1, 0) if not digits or abs(round(value, digits)) < 10 ** (3 - digits)
    )
    return f"{value:.{digits}f} {unit}"


def format_count(number: int) -> str:
    """Format a count: 1234567 -> `"1,234,567"`."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """Format a number with its noun: 1, "mark" -> "1 mark"; 2000 -> "2,000 marks"."""
    return f"{format_count(number)} {noun}" if number == 1 else f"{format_count(number)} {noun}s"


LEAST_FACTOR = 2
"""From this factor on, a change is given as a factor."""


def format_change(change: float) -> str:
    """Return a relative change with its sign: 0.123 is "+12.3 %", and 17.07 "18 times"."""
    return f"{change * 100:+.1f} %" if change < LEAST_FACTOR - 1 else f"{format_factor(1 + change)} times"


def format_changes(low: float, high: float) -> str:
    """Return an interval of changes: "+5.0 % to +12.3 %", "5.0 to 68 times"."""
    if low >= LEAST_FACTOR - 1:
        return f"{format_factor(1 + low)} to {format_change(high)}"
    return f"{format_change(low)} to {format_change(high)}"


def format_size(change: float) -> str:
    """Return a change in words: "18 times as large", "12.3 % larger"."""
    if change >= LEAST_FACTOR - 1:
        return f"{format_factor(1 + change)} times as large"
    return f"{format_share(abs(change))} {'larger' if change >= 0 else 'smaller'}" if change else "the same"


def format_factor(factor: float) -> str:
    """Return a factor with two digits or all digits before the point: 2.43 is "2.4", and 1234.5 "1,234"."""
    return f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"


def format_multiple(factor: float) -> str:
    """Return a factor with three digits, or all digits before the point: 7.854 is "7.85", 4920.3 "4,920"."""
    return f"{factor:.3g}" if factor < 999.5 else f"{factor:,.0f}"


def round_up(value: float, digits: int = 3) -> float:
    """Round a positive number up to this many significant digits, as an upper bound."""
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return math.ceil(value / unit - 1e-9) * unit


def format_share(share: float, *, up: bool = False) -> str:
    """Format a probability for people with three digits: `1 in 33,400`, `2.3 %`. Only certainty is `100 %`.
    `up`: round it up, as an upper bound.
    """
    if share <= 0:
        return "0"
    if share < 1 and share * 100 >= ROUNDED_TO_1000 / 10 and not up:
        decimals = max(2, -math.floor(math.log10(100 * (1 - share))))
        return f"{math.floor(share * 100 * 10**decimals) / 10**decimals:.{decimals}f} %"
    if share < 0.001:
        inverse_share = 1 / share
        return f"1 in {math.floor(inverse_share) if up else round(inverse_share):,}"
    return f"{round_up(share * 100) if up else share * 100:.3g} %"


def parse_cpu_list(text: str) -> list[int]:
    """Parse a CPU list: `"0-3,6"` -> [0, 1, 2, 3, 6], sorted and distinct.

    Raises ValueError for any other text.
    """
    cpus: set[int] = set()
    for part in text.strip().split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:-([0-9]{1,6}))?\s*", part)
        if match is None:
            raise ValueError(f"'{text}' is not a CPU list; give one such as 0-3,6")
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first:
            raise ValueError(f"'{part.strip()}' in the CPU list runs backwards; give {last}-{first}")
        if last > MAX_CPU:
            raise ValueError(f"CPU {last} is beyond {MAX_CPU}, the largest CPU number of Linux")
        cpus.update(range(first, last + 1))
    return sorted(cpus)


def format_cpu_list(cpus: list[int]) -> str:
    """Format a CPU list: [0, 1, 2, 3, 6] -> `"0-3,6"`."""
    parts: list[str] = []
    ordered = sorted(set(cpus))
    start = 0
    for i in range(1, len(ordered) + 1):
        if i == len(ordered) or ordered[i] != ordered[i - 1] + 1:
            parts.append(str(ordered[start]) if i - start == 1 else f"{ordered[start]}-{ordered[i - 1]}")
            start = i
    return ",".join(parts)


def name_cpus(cpus: list[int]) -> str:
    """Name CPUs in a sentence: "CPU 1" or "CPUs 0-3,6"."""
    return f"{'CPU' if len(set(cpus)) == 1 else 'CPUs'} {format_cpu_list(cpus)}"


def parse_cpu_mask(text: str) -> list[int]:
    """Parse a mask as the kernel prints it: `"ff,0000000f"` -> [0, 1, 2, 3, 32, ... 39]. Raises ValueError
    for any other text.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{8})*", text) or len(text) > MAX_MASK_DIGITS:
        raise ValueError(f"'{text[:40]}' is not a CPU mask; give one such as ff,0000000f")
    bits = int(text.replace(",", ""), 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def format_cpu_mask(cpus: list[int]) -> str:
    """Format a CPU mask as the kernel accepts it: [0, 1, 33] -> `"2,00000003"`."""
    digits = f"{sum(1 << cpu for cpu in set(cpus)):x}"
    parts = [digits[max(0, end - 8) : end] for end in range(len(digits), 0, -8)]
    return ",".join(reversed(parts))
