# SPDX-License-Identifier: MIT
"""The rows of the tables, as text: the page and the terminal print the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from rtgauge.report.conditions import ordered_steps, step_labels
from rtgauge.report.text import us, value, whole, words

if TYPE_CHECKING:
    from rtgauge.record.model import Distribution, Mark, SeriesSummary, Step
    from rtgauge.record.reader import Record

FIGURES = {
    "min_ns": "min",
    "mean_ns": "mean",
    "std_ns": "std",
    "p50_ns": "p50",
    "p95_ns": "p95",
    "p99_ns": "p99",
    "p99_9_ns": "p99.9",
    "p99_99_ns": "p99.99",
    "max_ns": "max",
}
"""Field of a Distribution -> heading."""

CHANGES_SHOWN = 12
"""So many of the largest changes over a step are shown; the rest is added up."""


def figure_cells(figures: Distribution, group: str = "") -> dict[str, str]:
    """Heading -> the figure in us with one decimal, `≥` before a lower bound."""
    return {heading: us(cast("float | None", getattr(figures, key)), lower_bound=key in figures.lower_bounds, group=group) for key, heading in FIGURES.items()}


@dataclass(frozen=True)
class Row:
    """One line of a table of latencies. `filled`: with the missed activations filled in."""

    name: str
    count: str
    missed: str
    cells: dict[str, str]
    filled: bool = False
    marks: list[Mark] = field(default_factory=list["Mark"])


def _rows(name: str, summary: SeriesSummary, marks: list[Mark], group: str) -> list[Row]:
    plain = Row(name, whole(summary.count, group=group), whole(summary.missed, group=group), figure_cells(summary, group), marks=marks)
    if not summary.missed:
        return [plain]
    return [plain, Row("missed filled in", whole(summary.filled.count, group=group), "", figure_cells(summary.filled, group), filled=True)]


def load_rows(record: Record, group: str = "") -> list[Row]:
    """All CPUs together, a line a step, idle first; one more line where activations were missed."""
    names = step_labels(record)
    return [row for step in ordered_steps(record) if step.total is not None for row in _rows(names[step.id], step.total, step.marks, group)]


def series_name(summary: SeriesSummary) -> str:
    """A series as people call it: "CPU 0", or its labels."""
    cpu = summary.labels.get("cpu")
    others = [f"{words(key)} {part}" for key, part in summary.labels.items() if key != "cpu"]
    return " ".join(([f"CPU {cpu}"] if cpu is not None else []) + others) or summary.metric


def series_rows(step: Step, group: str = "") -> list[Row]:
    """A line a series of one step."""
    return [
        row
        for s in step.series
        for row in _rows(series_name(s), s, [mark for mark in step.marks if mark.series is not None and mark.series == s.series], group)
    ]


@dataclass(frozen=True)
class Late:
    """One of the largest latencies: where, how late, and how long after its step began it was due."""

    cpu: str
    late: str
    into: str


def outlier_rows(step: Step, most: int = 5, group: str = "") -> list[Late]:
    """The largest latencies of a step, at most `most`, largest first."""
    found: list[Late] = []
    for outlier in sorted(step.outliers, key=lambda o: -o.value_ns)[:most]:
        into = "unknown" if step.start_ns is None else f"{(outlier.time_ns - step.start_ns) / 1e9:.3f} s"
        found.append(Late("–" if outlier.cpu is None else str(outlier.cpu), us(outlier.value_ns, group=group), into))
    return found


@dataclass(frozen=True)
class Change:
    """What one counter gained over a step, and where where that is known."""

    name: str
    total: str
    places: str


@dataclass(frozen=True)
class Changes:
    """The changes of one kind over one step, largest first; `rest` says what was not listed."""

    title: str
    rows: list[Change]
    rest: str


def _leaves(item: object) -> list[tuple[str, float]]:
    """The numbers in a nested value with their keys."""
    if isinstance(item, bool) or item is None:
        return []
    if isinstance(item, (int, float)):
        return [("", item)]
    if isinstance(item, Mapping):
        pairs = [(str(key), part) for key, part in cast("Mapping[object, object]", item).items()]
    elif isinstance(item, Sequence) and not isinstance(item, str):
        pairs = [(str(i), part) for i, part in enumerate(cast("Sequence[object]", item))]
    else:
        return []
    return [(f"{key} {inner}".strip(), number) for key, part in pairs for inner, number in _leaves(part)]


def _change(name: str, item: object, group: str) -> tuple[float, Change] | None:
    leaves = _leaves(item)
    if not leaves:
        return None
    total = sum(number for _, number in leaves)
    several = [(key, number) for key, number in leaves if number] if len(leaves) > 1 else []
    places = ", ".join(f"{'CPU ' + key if key.isdigit() else key} {_number(number, group)}" for key, number in several[:8]) + (
        ", …" if len(several) > 8 else ""
    )
    note = "" if not isinstance(item, Mapping) else str(cast("Mapping[str, object]", item).get("name") or "")
    return total, Change(f"{name} {note}".strip(), _number(total, group), places)


def _number(number: float, group: str) -> str:
    return whole(int(number), group=group) if float(number).is_integer() else f"{number:,.3f}".replace(",", group)


def change_tables(step: Step, group: str = "") -> list[Changes]:
    """What changed over the step on its target, a table a kind; single counters stand together in one table."""
    single: dict[str, object] = {}
    found: list[Changes] = []
    for kind, item in step.changes.items():
        if isinstance(item, Mapping):
            table = _changes(words(kind), cast("Mapping[str, object]", item), group)
            if table is not None:
                found.append(table)
        else:
            single[words(kind)] = item
    counters = _changes("Counters", single, group)
    texts = [Change(name, value(item), "") for name, item in single.items() if not _leaves(item)]
    if texts:
        counters = Changes("Counters", [*(counters.rows if counters else []), *texts], counters.rest if counters else "")
    return [*found, *([counters] if counters else [])]


def _changes(title: str, items: Mapping[str, object], group: str) -> Changes | None:
    every = [change for name, item in items.items() if (change := _change(str(name), item, group)) is not None]
    moved = sorted((change for change in every if change[0]), key=lambda change: -abs(change[0]))
    if not every:
        return None
    hidden = moved[CHANGES_SHOWN:]
    rest = [f"{len(hidden)} smaller ones, together {_number(sum(total for total, _ in hidden), group)}"] if hidden else []
    if len(moved) < len(every):
        rest.append(f"{len(every) - len(moved)} did not change")
    return Changes(title, [change for _, change in moved[:CHANGES_SHOWN]], "; ".join(rest))
