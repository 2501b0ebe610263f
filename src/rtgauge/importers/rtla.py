# SPDX-License-Identifier: MIT
"""Reads the output of rtla: timerlat hist and top, osnoise hist and top (kernel documentation, tools/rtla).

A histogram has a column for each CPU and context (IRQ, Thr, Usr) or for each CPU. Rows without samples are
left out. `over:`, `count:`, `min:`, `avg:`, `max:`, and in newer versions a block `ALL:`, follow. The width
of its bins is not printed; it is inferred from the rows. A top has a row for each CPU and is printed
repeatedly; the last one counts. If a threshold stopped it, the automatic analysis follows as text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

from rtgauge.errors import InputError
from rtgauge.importers.foreign_file import lines
from rtgauge.importers.measurement import Hints, ImportedSeries, Importer, Measurement
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Result

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_COLUMN = re.compile(r"(?:(IRQ|Thr|Usr)|CPU)-([0-9]{1,5})")
_ROW = re.compile(rf"\s*(?:([0-9]{{1,9}})|(over|count|min|avg|max):)((?:\s+(?:{_NUMBER}|-))+)\s*")
_UNIT = re.compile(r"Time unit is \w+ \((us|ns)\)|Timer Latency \((us|ns)\)|time is in (us|ns)")
_DURATION = re.compile(r"\b([0-9]{1,5}) ([0-9]{2}):([0-9]{2}):([0-9]{2})\b")
_TOP_ROW = re.compile(r"\s*([0-9]{1,5})\s+#([0-9]{1,18})\s+(.*)")
_STOPPED = re.compile(r"hit stop tracing")
_NS = {"us": 1000, "ns": 1}
_METRIC = {"IRQ": "irq-latency", "Thr": "latency", "Usr": "user-latency"}
"""Column of timerlat -> metric, named as for wakeup in kernel space."""
MAX_COLUMNS = 20_000
MAX_TEXT = 20_000
NOISE = (
    "runtime",
    "noise",
    "available_percent",
    "max_noise",
    "max_single",
    "hardware",
    "nmi",
    "irq",
    "softirq",
    "thread",
)
"""The columns of osnoise top after the CPU and the number of periods."""


Kind = Literal["timerlat hist", "timerlat top", "osnoise hist", "osnoise top"]


@dataclass
class _Table:
    """The table so far. `columns`: context and CPU of each; `top`: CPU -> the cells after its count."""

    kind: Kind
    columns: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    histogram: dict[int, list[Fraction | None]] = field(default_factory=dict[int, "list[Fraction | None]"])
    totals: dict[str, list[Fraction | None]] = field(default_factory=dict[str, "list[Fraction | None]"])
    top: dict[int, tuple[int, list[str]]] = field(default_factory=dict[int, "tuple[int, list[str]]"])
    unit_ns: int | None = None
    duration_ns: int | None = None
    analysis: list[str] = field(default_factory=list[str])
    summed: bool = False
    """Whether the block `ALL:` has begun, which repeats the columns above."""


_KINDS: dict[str, Kind] = {
    "RTLA timerlat histogram": "timerlat hist",
    "RTLA osnoise histogram": "osnoise hist",
    "Operating System Noise": "osnoise top",
    "Timer Latency": "timerlat top",
}


def _numbers(text: str) -> list[Fraction | None]:
    return [None if word == "-" else Fraction(word) for word in text.split()]


def _columns(line: str, source: str) -> list[tuple[str, int]]:
    names = line.split()[1:]
    columns = [(match[1] or "CPU", int(match[2])) for name in names if (match := _COLUMN.fullmatch(name))]
    if (
        not columns
        or len(columns) < len(names)
        or len(columns) > MAX_COLUMNS
        or len(set(columns)) < len(columns)
    ):
        raise InputError(f"{source}: rtla's heading '{line.strip()[:40]}' does not name the columns of CPUs")
    return columns


def _take_row(table: _Table, line: str, source: str) -> None:
    row = _ROW.fullmatch(line)
    if row is None or table.summed:
        return
    values = _numbers(row[3])
    if len(values) != len(table.columns):
        raise InputError(
            f"{source}: rtla's row '{line.strip()[:40]}' has {len(values)} of {len(table.columns)} columns"
        )
    if row[1] is None:
        table.totals[row[2]] = values
        return
    if table.histogram and int(row[1]) <= next(reversed(table.histogram)):
        raise InputError(
            f"{source} is damaged: rtla's row {row[1]} comes after row {next(reversed(table.histogram))}"
        )
    table.histogram[int(row[1])] = values


def _read_table(numbered: Iterable[tuple[int, str]], source: str) -> _Table:
    table: _Table | None = None
    for _, line in numbered:
        kind = next((kind for words, kind in _KINDS.items() if words in line), None)
        if table is None and kind is None:
            continue
        if kind is not None and not (table is not None and table.kind == "timerlat top" and "|" in line):
            if table is not None and table.histogram:
                raise InputError(f"{source} is damaged: a second table of rtla begins in it")
            table = _Table(cast("Kind", kind))
        assert table is not None  # noqa: S101 - for the type checker
        if unit := _UNIT.search(line):
            table.unit_ns = _NS[next(word for word in unit.groups() if word)]
        if table.duration_ns is None and (duration := _DURATION.search(line)):
            days, hours, minutes, seconds = (int(part) for part in duration.groups())
            table.duration_ns = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 10**9
        if table.analysis or _STOPPED.search(line):
            if sum(map(len, table.analysis)) < MAX_TEXT:
                table.analysis.append(line.rstrip()[:200])
        elif line.startswith("Index"):
            table.columns = _columns(line, source)
        elif line.lstrip().startswith("ALL"):
            table.summed = True
        elif table.kind.endswith("top"):
            if row := _TOP_ROW.fullmatch(line):
                table.top[int(row[1])] = (int(row[2]), row[3].replace("|", " ").split())
        elif table.columns:
            _take_row(table, line, source)
    if table is None:
        raise InputError(f"{source} is not an output of rtla timerlat or rtla osnoise")
    return table


def _width(table: _Table) -> int:
    """Return the width of the bins, inferred from the rows present; osnoise's extremes are also multiples of
    it.
    """
    extremes = [
        value
        for name in ("min", "max")
        for value in table.totals.get(name, [])
        if table.kind == "osnoise hist" and value is not None
    ]
    return math.gcd(*table.histogram, *(int(value) for value in extremes)) or 1


def _histogram_series(table: _Table, at: int, unit_ns: int, width: int, source: str) -> ImportedSeries:
    context, cpu = table.columns[at]
    histogram = {value * unit_ns: int(row[at] or 0) for value, row in table.histogram.items() if row[at]}
    binned = sum(histogram.values())

    def figure(name: str) -> Fraction | None:
        return table.totals[name][at] if name in table.totals else None

    if table.totals:
        if "count" not in table.totals:
            raise InputError(f"{source} is cut short: rtla's row 'count:' is missing")
        count = int(figure("count") or 0)
        overflow = count - binned
        if overflow < 0 or overflow != int(figure("over") or 0):
            raise InputError(
                f"{source} is damaged: {context} of CPU {cpu} has {count} samples, but its "
                "histogram has another sum"
            )
    else:
        count, overflow = binned, 0
    low, high, average = figure("min"), figure("max"), figure("avg")
    return ImportedSeries(
        metric=_METRIC.get(context, "latency") if table.kind == "timerlat hist" else "gap",
        labels={"cpu": cpu},
        histogram=histogram,
        count=count,
        overflow=overflow,
        limit_ns=(max(table.histogram, default=0) + width) * unit_ns if overflow else None,
        minimum_ns=min(histogram, default=None) if low is None else int(low * unit_ns) if count else None,
        maximum_ns=max(histogram, default=None) if high is None else int(high * unit_ns) if count else None,
        # osnoise averages its bins' edges and truncates to whole us: the histogram is more precise.
        average_ns=None
        if average is None or not count or (width > 1 and table.kind == "osnoise hist")
        else average * unit_ns,
    )


def _histogram(table: _Table, source: str) -> dict[str, Any]:
    if not table.columns:
        raise InputError(f"{source} is cut short: rtla's heading of columns is missing")
    unit_ns, width = table.unit_ns or 1000, _width(table)
    marks: list[Mark] = []
    if width > 1:
        detail = (
            f"bins of {width}assumed: the file does not say how wide they are, and its rows are "
            f"multiples of it"
        )
        marks.append(MarkKind.BINS_ASSUMED.mark(detail))
    if not table.totals:
        detail = (
            "rtla's rows count:, over:, max: are missing (--no-summary, or cut short): samples "
            "above the histogram are not in it"
        )
        marks.append(MarkKind.NO_SUMMARY.mark(detail))
    series = [_histogram_series(table, at, unit_ns, width, source) for at in range(len(table.columns))]
    return {"series": series, "resolution_ns": width * unit_ns, "marks": marks}


def _timerlat_top(table: _Table, source: str) -> dict[str, Any]:
    unit_ns = table.unit_ns or 1000
    series: list[ImportedSeries] = []
    for cpu, (count, cells) in sorted(table.top.items()):
        if len(cells) not in {4, 8, 12} or not all(re.fullmatch(rf"{_NUMBER}|-", cell) for cell in cells):
            raise InputError(f"{source} is damaged: rtla's row of CPU {cpu} has {len(cells)} figures")
        for context, figures in zip(
            ("IRQ", "Thr", "Usr"), (cells[at : at + 4] for at in range(0, len(cells), 4)), strict=False
        ):
            if "-" in figures[1:]:
                continue
            low, average, high = (int(Fraction(figure) * unit_ns) for figure in figures[1:])
            series.append(
                ImportedSeries(
                    metric=_METRIC[context],
                    labels={"cpu": cpu},
                    count=count,
                    overflow=count,
                    minimum_ns=low if count else None,
                    maximum_ns=high if count else None,
                    average_ns=Fraction(average) if count else None,
                )
            )
    mark = MarkKind.COUNT_OF_IRQ.mark(
        "rtla top prints one count per CPU, of its timer interrupts: threads have as many unless it lost some"
    )
    return {"series": series, "resolution_ns": unit_ns, "marks": [mark]}


def _osnoise_top(table: _Table, source: str) -> dict[str, Any]:
    unit = "us" if (table.unit_ns or 1000) == 1000 else "ns"
    results: list[Result] = []
    for cpu, (periods, cells) in sorted(table.top.items()):
        if len(cells) != len(NOISE) or not all(re.fullmatch(rf"{_NUMBER}|-", cell) for cell in cells):
            raise InputError(
                f"{source} is damaged: rtla's row of CPU {cpu} has {len(cells)} of {len(NOISE)} figures"
            )
        figures = dict(
            zip(NOISE, (None if cell == "-" else float(Fraction(cell)) for cell in cells), strict=True)
        )
        times = {
            f"{name}_{unit}": None if (value := figures[name]) is None else int(value)
            for name in ("runtime", "noise", "max_noise", "max_single")
        }
        counts = {name: None if (value := figures[name]) is None else int(value) for name in NOISE[5:]}
        results.append(
            Result(
                name="osnoise",
                labels={"cpu": cpu},
                values={
                    "periods": periods,
                    **times,
                    "available_percent": figures["available_percent"],
                    **counts,
                },
            )
        )
    return {"series": [], "resolution_ns": table.unit_ns or 1000, "results": results}


def parse_rtla(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse the lines of rtla's output.

    `source` names it in errors. Raises InputError for foreign or damaged text.
    """
    table = _read_table(numbered, source)
    if table.kind.endswith("top") and not table.top:
        raise InputError(f"{source} is cut short: rtla's table has no row")
    reader = {"timerlat top": _timerlat_top, "osnoise top": _osnoise_top}.get(table.kind, _histogram)
    fields = reader(table, source)
    is_timerlat = table.kind.startswith("timerlat")
    if table.analysis:
        explanation = Result(name="explanation", values={"text": "\n".join(table.analysis).strip()})
        fields["results"] = [*fields.get("results", []), explanation]
        fields["marks"] = [
            *fields.get("marks", []),
            MarkKind.STOPPED_AT_THRESHOLD.mark(
                "rtla stopped at its threshold; its own analysis of the last latency is in the step's results"
            ),
        ]
    return Measurement(
        tool=f"rtla {table.kind}",
        source=source,
        probe="wakeup" if is_timerlat else "noise",
        parameters={"space": "kernel"} if is_timerlat else {},
        unit_known=table.unit_ns is not None,
        average_is_cut=True,
        releases=is_timerlat,
        duration_ns=table.duration_ns,
        **fields,
    )


def _recognises(head: str) -> bool:
    return (
        "RTLA timerlat histogram" in head
        or "RTLA osnoise histogram" in head
        or "Operating System Noise" in head
        or "Timer Latency" in head
    )


def _read(path: Path, _hints: Hints) -> list[Measurement]:
    return [parse_rtla(lines(path), str(path))]


RTLA = Importer("rtla", "timerlat hist, timerlat top, osnoise hist, osnoise top", _recognises, _read)
