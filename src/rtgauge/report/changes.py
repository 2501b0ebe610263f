# SPDX-License-Identifier: MIT
"""Tabulates the changes on a target during a step, the largest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from rtgauge.record.model import Step
from rtgauge.report.table import Column, Table
from rtgauge.report.text import NONE, quantity, value, words
from rtgauge.units import format_count

SHOWN = 12
"""The maximum number of changes of a kind to list; the rest is counted."""
PLACES = 8
"""The maximum number of CPUs to name for one change."""


@dataclass(frozen=True)
class _Counted:
    """A counter: its name, its total gain, the gains by place, and a size to sort by (None if unknown)."""

    name: str
    total: str
    places: str
    size: float | None


def _number(number: object) -> str:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return "unknown" if number is None else value(number)
    return format_count(number) if isinstance(number, int) else value(number)


def _places(per_cpu: object) -> str:
    if not isinstance(per_cpu, Mapping):
        return ""
    pairs = list(cast("Mapping[str, object]", per_cpu).items())
    named = [f"{'CPU ' + key if key.isdigit() else key}: {_number(number)}" for key, number in pairs[:PLACES]]
    return ", ".join([*named, "…"] if len(pairs) > PLACES else named)


def _size(number: object) -> float | None:
    return abs(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def _counted(key: str, name: str, item: object) -> _Counted:
    """Convert an entry: a number, a line with its total, a pair of before and after, or anything else."""
    if not isinstance(item, Mapping):
        number = _number(item) if isinstance(item, int) else quantity(key, item)[1]
        return _Counted(name, number, "", _size(item))
    entry = cast("Mapping[str, object]", item)
    if "total" in entry:
        full = f"{name} {entry.get('name') or ''}".strip()
        return _Counted(full, _number(entry["total"]), _places(entry.get("per_cpu")), _size(entry["total"]))
    if set(entry) == {"before", "after"}:
        return _before_after(key, name, entry)
    return _Counted(name, "", value(entry), None)


def _before_after(key: str, name: str, entry: Mapping[str, object]) -> _Counted:
    before, after = quantity(key, entry["before"])[1], quantity(key, entry["after"])[1]
    numbers = [number for number in entry.values() if isinstance(number, (int, float))]
    size = max(numbers) - min(numbers) if len(numbers) == 2 else float(before != after)
    return _Counted(name, f"{before} → {after}" if before != after else before, "", size)


def _cpu_times(times: Mapping[str, object]) -> list[_Counted]:
    """Convert CPU -> kind -> ns to a line per kind, in ms."""
    by_cpu = {cpu: of for cpu, item in times.items() if (of := _mapping(item)) is not None}
    rows: list[_Counted] = []
    for kind in dict.fromkeys(kind for of in by_cpu.values() for kind in of):
        ns = {cpu: number if isinstance(number := of.get(kind), int) else None for cpu, of in by_cpu.items()}
        known = [number for number in ns.values() if number is not None]
        total = sum(known) if len(known) == len(ns) else None
        ms = {cpu: None if number is None else number // 10**6 for cpu, number in ns.items() if number != 0}
        text = f"{_number(total // 10**6)} ms" if total is not None else "unknown"
        rows.append(_Counted(kind, text, _places(ms), _size(total)))
    return rows


def _mapping(item: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", item) if isinstance(item, Mapping) else None


def change_tables(step: Step) -> list[Table]:
    """Return a table for each kind of change; single changes are in the last one."""
    tables: list[Table] = []
    alone: list[_Counted] = []
    for kind, item in cast("Mapping[str, object]", step.changes).items():
        entry = _mapping(item)
        if entry is None or set(entry) == {"before", "after"}:
            alone.append(_counted(kind, words(kind), item))
        elif kind == "cpu_time_ns":
            tables.append(_table("CPU time", _cpu_times(entry)))
        elif entry:
            title = quantity(kind, 0)[0] if kind.endswith("_khz") else words(kind)
            shown = words if kind == "counters" else str
            tables.append(_table(title, [_counted(kind, shown(name), part) for name, part in entry.items()]))
    if alone:
        tables.append(_table("Other", alone))
    return tables


def _table(title: str, entries: list[_Counted]) -> Table:
    by_size = sorted(entries, key=lambda entry: float("-inf") if entry.size is None else -entry.size)
    moved = [entry for entry in by_size if entry.size != 0]
    rest: list[str] = []
    if len(moved) > SHOWN:
        rest.append(f"{len(moved) - SHOWN} smaller ones are in step.json")
    if len(moved) < len(entries):
        unmoved = (f"{entry.name} {entry.total}" for entry in entries if entry.size == 0)
        still = [text.removesuffix(" 0").removesuffix(" 0 ms") for text in unmoved]
        rest.append(f"unchanged: {', '.join(still[:SHOWN])}{', …' if len(still) > SHOWN else ''}")
    rows = [[entry.name, entry.total, entry.places] for entry in moved[:SHOWN]]
    columns = [Column(), Column("", "number"), Column("", "places")]
    return Table(title, columns, rows, ["; ".join(rest)] if rest else [] if entries else [NONE])
