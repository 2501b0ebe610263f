# SPDX-License-Identifier: MIT
"""Tabulates what changed on a target during a step, with the largest change first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from rtgauge.record.model import Changes, Growth, NumberChange, Step, TableLine, TextChange
from rtgauge.report.table import Column, Table
from rtgauge.report.text import NONE, quantity, value, words
from rtgauge.units import format_count

SHOWN = 12
"""The most changes of a kind that are listed. The rest is counted."""
PLACES = 8
"""The most CPUs that are named for one change."""


@dataclass(frozen=True)
class _Counted:
    """A counter: its name, its total gain, its gain in each place, and a size to sort by, if known."""

    name: str
    total: str
    places: str
    size: float | None


def _number(number: float | str | None) -> str:
    if number is None:
        return "unknown"
    return format_count(number) if isinstance(number, int) else value(number)


def _places(per_cpu: Mapping[str, int | None]) -> str:
    pairs = list(per_cpu.items())
    named = [f"{'CPU ' + key if key.isdigit() else key}: {_number(number)}" for key, number in pairs[:PLACES]]
    return ", ".join([*named, "…"] if len(pairs) > PLACES else named)


def _counted(key: str, name: str, item: TableLine | NumberChange | TextChange | int | str | None) -> _Counted:
    """Make a counter from an entry of the kind `key`."""
    if isinstance(item, TableLine):
        size = None if item.total is None else abs(item.total)
        return _Counted(f"{name} {item.name}".strip(), _number(item.total), _places(item.per_cpu), size)
    if isinstance(item, NumberChange | TextChange):
        before, after = quantity(key, item.before)[1], quantity(key, item.after)[1]
        differs = abs(item.after - item.before) if isinstance(item, NumberChange) else before != after
        return _Counted(name, f"{before} → {after}" if before != after else before, "", float(differs))
    return _Counted(name, _number(item), "", abs(item) if isinstance(item, int) else None)


def _cpu_times(times: Mapping[str, Growth]) -> list[_Counted]:
    """Return a line per kind of CPU time, in ms, from CPU -> kind -> ns."""
    rows: list[_Counted] = []
    for kind in dict.fromkeys(kind for of in times.values() for kind in of):
        ns = {cpu: of.get(kind) for cpu, of in times.items()}
        known = [number for number in ns.values() if number is not None]
        total = sum(known) if len(known) == len(ns) else None
        ms = {cpu: None if number is None else number // 10**6 for cpu, number in ns.items() if number != 0}
        text = f"{_number(total // 10**6)} ms" if total is not None else "unknown"
        rows.append(_Counted(kind, text, _places(ms), total))
    return rows


def change_tables(step: Step) -> list[Table]:
    """Return a table for each kind of change. The last table has the single changes."""
    tables: list[Table] = []
    alone: list[_Counted] = []
    for kind in Changes.model_fields:
        entry = getattr(step.changes, kind)
        if kind == "cpu_time_ns" and entry:
            tables.append(_table("CPU time", _cpu_times(entry)))
        elif isinstance(entry, dict) and entry:
            parts = cast("dict[str, TableLine | NumberChange | int | str | None]", entry)
            title = quantity(kind, 0)[0] if kind.endswith("_khz") else words(kind)
            shown = words if kind == "counters" else str
            tables.append(_table(title, [_counted(kind, shown(name), part) for name, part in parts.items()]))
        elif isinstance(entry, TextChange | str):
            alone.append(_counted(kind, words(kind), entry))
    if alone:
        tables.append(_table("Other", alone))
    return tables


def _table(title: str, entries: list[_Counted]) -> Table:
    by_size = sorted(entries, key=lambda entry: float("-inf") if entry.size is None else -entry.size)
    moved = [entry for entry in by_size if entry.size != 0]
    rest: list[str] = []
    if len(moved) > SHOWN:
        rest.append(f"{len(moved) - SHOWN} smaller changes are in step.json")
    if len(moved) < len(entries):
        unmoved = (f"{entry.name} {entry.total}" for entry in entries if entry.size == 0)
        still = [text.removesuffix(" 0").removesuffix(" 0 ms") for text in unmoved]
        rest.append(f"unchanged: {', '.join(still[:SHOWN])}{', …' if len(still) > SHOWN else ''}")
    rows = [[entry.name, entry.total, entry.places] for entry in moved[:SHOWN]]
    columns = [Column(), Column("", "number"), Column("", "places")]
    return Table(title, columns, rows, ["; ".join(rest)] if rest else [] if entries else [NONE])
