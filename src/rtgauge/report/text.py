# SPDX-License-Identifier: MIT
"""Numbers and names as people read them; plain strings, escaped by whoever prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

NARROW_SPACE = "\u202f"
NONE = "–"


def us(ns: float | None, *, lower_bound: bool = False, group: str = "") -> str:
    """A time in us with one decimal; `group` separates thousands, `≥` stands before a lower bound, a dash for None."""
    if ns is None:
        return NONE
    digits = f"{ns / 1_000:,.1f}".replace(",", group)
    return f"≥{NARROW_SPACE if group else ''}{digits}" if lower_bound else digits


def whole(number: int | None, *, group: str = "") -> str:
    """A count, with `group` between thousands; a dash for None."""
    return NONE if number is None else f"{number:,}".replace(",", group)


def plural(number: int, noun: str) -> str:
    """1, "mark" -> "1 mark"; 2 -> "2 marks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def words(key: str) -> str:
    """A key of a dictionary as words: "cpu_model" -> "CPU model"."""
    upper = {
        "cpu": "CPU",
        "cpus": "CPUs",
        "os": "OS",
        "smt": "SMT",
        "irq": "IRQ",
        "id": "ID",
        "numa": "NUMA",
        "bios": "BIOS",
        "tsc": "TSC",
        "rt": "RT",
        "vm": "VM",
    }
    parts = [upper.get(part, part) for part in key.replace("-", "_").split("_") if part]
    text = " ".join(parts)
    return text[:1].upper() + text[1:]


def value(item: object) -> str:
    """Any value of a facts or parameters dictionary on one line."""
    if item is None or item == "":
        return "unknown"
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, float):
        return f"{item:.4g}" if abs(item) < 10_000 else f"{item:,.0f}".replace(",", NARROW_SPACE)
    if isinstance(item, Mapping):
        return ", ".join(f"{key}: {value(part)}" for key, part in cast("Mapping[object, object]", item).items()) or "none"
    if isinstance(item, (list, tuple)):
        return ", ".join(value(part) for part in cast("list[object]", item)) or "none"
    return str(item)


def parameter(key: str, item: object) -> str:
    """One value of a dictionary of parameters or reached figures; a key that ends in `_ns` names a duration."""
    if key.endswith("_ns") and isinstance(item, int) and not isinstance(item, bool):
        from rtgauge.units import format_duration

        return format_duration(item)
    return value(item)
