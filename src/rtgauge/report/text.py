# SPDX-License-Identifier: MIT
"""Formats numbers and names for people, as plain strings. The code that prints them must escape them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rtgauge.escape import one_line
from rtgauge.record.model import Distribution
from rtgauge.record.quantiles import LEAST_BEYOND, times_longer
from rtgauge.units import format_count, format_duration

NONE = "–"

_UPPER = ("cpu", "os", "smt", "irq", "id", "numa", "bios", "tsc", "rt", "dma")
_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))


def us(ns: float | None, *, lower_bound: bool = False, digits: int = 1) -> str:
    """Return a time in us: "1,234.5"; `≥` marks a lower bound, a dash stands for None. `digits`: decimals."""
    if ns is None:
        return NONE
    return f"{'≥' if lower_bound else ''}{ns / 1_000:,.{digits}f}"


LONGER_WORDS = (
    f"Nx longer: {LEAST_BEYOND} samples lie above this quantile only in a measurement N times as long"
)
"""Explains the cell of a quantile that too few samples exceed."""


def figure_cell(figures: Distribution, field: str, *, digits: int = 1) -> str:
    """Return a figure in us; `≥` marks a lower bound. For a quantile that too few samples exceed, return how
    much longer the measurement must be: "5x longer".
    """
    times = times_longer(field, figures.count)
    if times is not None:
        return f"{format_count(times)}x longer"
    value = cast("float | None", getattr(figures, field))
    return us(value, lower_bound=field in figures.lower_bounds, digits=digits)


def day_and_time(instant: str) -> str:
    """Return the day and minute of an ISO 8601 instant: "2026-01-31T23:59:58Z" -> "2026-01-31 23:59"."""
    return instant[:16].replace("T", " ")


def whole(number: int | None) -> str:
    """Return a count: "1,234"; a dash stands for None."""
    return NONE if number is None else format_count(number)


def printable(text: str) -> str:
    """Return text from a record or a machine on one line."""
    return one_line(text)


def words(key: str) -> str:
    """Return a key of a dictionary as words: "cpu_model" -> "CPU model"."""
    upper = {name: name.upper() for name in _UPPER} | {"cpus": "CPUs"}
    text = " ".join(upper.get(part, part) for part in key.replace("-", "_").split("_") if part)
    return text[:1].upper() + text[1:]


def value(item: object) -> str:
    """Return a fact's or parameter's value on one line; None becomes "unknown", an empty text "none"."""
    if item is None:
        return "unknown"
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, float):
        return f"{item:.4g}" if abs(item) < 10_000 else f"{item:,.0f}"
    if isinstance(item, Mapping):
        return (
            ", ".join(f"{key}: {value(part)}" for key, part in cast("Mapping[object, object]", item).items())
            or "none"
        )
    if isinstance(item, (list, tuple)):
        return ", ".join(value(part) for part in cast("list[object]", item)) or "none"
    return str(item) or "none"


def _scaled(number: float, unit: str) -> str:
    for scale, prefix in _SCALES:
        if abs(number) >= scale:
            return f"{number / scale:.4g} {prefix}{unit}"
    return f"{number:.4g} {unit}"


def quantity(key: str, item: object) -> tuple[str, str]:
    """Return (name, value) with the unit from the key's name: "cpu_share", 0.98 -> ("CPU share", "98 %")."""
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        return words(key), value(item)
    parts = key.split("_")
    if parts[-1] == "ns":
        return words("_".join(parts[:-1])), format_duration(item) if isinstance(
            item, int
        ) else f"{item:.4g} ns"
    if key.endswith("bits_per_second"):
        return words(key.removesuffix("bits_per_second") + "rate"), _scaled(item, "bit/s")
    if "bytes" in parts:
        return words("_".join(part for part in parts if part != "bytes")), _scaled(item, "B")
    if "share" in parts:
        return words(key), f"{item * 100:.4g} %"
    if parts[-1] in {"s", "ms", "us"}:
        return words("_".join(parts[:-1])), f"{value(item)} {parts[-1]}"
    if parts[-1] == "khz":
        return words("_".join(parts[:-1])), _scaled(item * 1_000, "Hz")
    return words(key), value(item)


def capital(text: str) -> str:
    """Return the text with its first letter in upper case: "gap" -> "Gap"."""
    return text[:1].upper() + text[1:]
