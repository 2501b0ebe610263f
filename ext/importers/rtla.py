# SPDX-License-Identifier: MIT
"""Reads the output of rtla: timerlat hist and top, osnoise hist and top, hwnoise (kernel documentation,
tools/rtla).

A histogram has a column for each CPU and context (IRQ, Thr, Usr) or for each CPU. Rows without samples are
left out. Lines `over:`, `count:`, `min:`, `avg:`, `max:` follow, and in newer versions an `ALL:` block. The
width of the bins is not printed but inferred from the rows. The output of top has a row for each CPU and is
printed repeatedly; the last output of a run counts. If a threshold stopped rtla, its analysis follows as
text.

Mails often quote a table without its title; the names of the columns then show what it is. A file can hold
several tables. A table of top belongs to the run before it if its time and counts are not smaller, its minima
not larger and its maxima not smaller.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from rtgauge.errors import InputError
from rtgauge.record.model import Mark, Result
from rtgauge_ext.importers.foreign_file import clock_ns, damaged, lines
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, check_runs

_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,9})?"
_COLUMN = re.compile(r"(?:(IRQ|Thr|Usr)|CPU)-([0-9]{1,5})")
_ROW = re.compile(rf"\s*(?:([0-9]{{1,9}})|(over|count|min|avg|max):)((?:\s+(?:{_NUMBER}|-))+)\s*")
_UNIT = re.compile(r"Time unit is \w+ \((us|ns)\)|Timer Latency \((us|ns)\)|time is in (us|ns)")
_DURATION = re.compile(r"\b([0-9]{1,5}) ([0-9]{2}):([0-9]{2}):([0-9]{2})\b")
_TOP_ROW = re.compile(r"\s*([0-9]{1,5})\s+#([0-9]{1,18})\s+(.*)")
_STOPPED = re.compile(r"hit stop tracing")
_NS = {"us": 1000, "ns": 1}
_METRIC = {"IRQ": "irq-latency", "Thr": "latency", "Usr": "user-latency"}
"""Column of timerlat -> metric, with the names of wakeup in kernel space."""
MAX_COLUMNS = 20_000
MAX_TEXT = 20_000
TIMES = ("runtime", "noise", "max_noise", "max_single")
COUNTS = ("hardware", "nmi", "irq", "softirq", "thread")
NOISE = ("runtime", "noise", "available_percent", "max_noise", "max_single", *COUNTS)
"""The columns of osnoise top after the CPU and the number of periods."""


HARDWARE_NOISE = NOISE[:7]
"""The columns of hwnoise."""
_MEASURED = {"timerlat top": (1, 3, 5, 7, 9, 11), "osnoise top": (3, 4), "hwnoise": (3, 4)}
"""The cells of a row of top that cannot shrink during a run: minima and maxima, or maxima."""

Kind = Literal["timerlat hist", "timerlat top", "osnoise hist", "osnoise top", "hwnoise"]


@dataclass
class _Table:
    """The table so far. `columns`: context and CPU of each column. `top`: CPU -> cells after the count."""

    kind: Kind
    titled: bool = True
    """Whether the title has been read, after which the heading of the columns belongs to this table."""
    columns: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    histogram: dict[int, list[Fraction | None]] = field(default_factory=dict[int, "list[Fraction | None]"])
    totals: dict[str, list[Fraction | None]] = field(default_factory=dict[str, "list[Fraction | None]"])
    top: dict[int, tuple[int, list[str]]] = field(default_factory=dict[int, "tuple[int, list[str]]"])
    unit_ns: int | None = None
    duration_ns: int | None = None
    analysis: list[str] = field(default_factory=list[str])
    summed: bool = False
    """Whether the `ALL:` block has begun, which repeats the columns above."""


_TITLES: dict[Kind, re.Pattern[str]] = {
    "timerlat hist": re.compile(r"RTLA timerlat histogram"),
    "osnoise hist": re.compile(r"RTLA osnoise histogram"),
    "osnoise top": re.compile(r"Operating System Noise"),
    "hwnoise": re.compile(r"Hardware-related Noise"),
    "timerlat top": re.compile(r"^[^|\n]*Timer Latency[^|\n]*$", re.MULTILINE),
}
_HEADINGS: dict[Kind, re.Pattern[str]] = {
    "timerlat hist": re.compile(r"^Index(?:[ \t]++(?:IRQ|Thr|Usr)-[0-9]++)++", re.MULTILINE),
    "osnoise hist": re.compile(r"^Index(?:[ \t]++CPU-[0-9]++)++", re.MULTILINE),
    "osnoise top": re.compile(r"^[ \t]*+CPU Period[ \t]++Runtime[^\n]*[ \t]Thread[ \t]*+$", re.MULTILINE),
    "hwnoise": re.compile(r"^[ \t]*+CPU Period[ \t]++Runtime[^\n]*[ \t]NMI[ \t]*+$", re.MULTILINE),
    "timerlat top": re.compile(r"^[ \t]*+CPU COUNT[ \t]++\|", re.MULTILINE),
}


def _kind(patterns: dict[Kind, re.Pattern[str]], text: str) -> Kind | None:
    return next((kind for kind, pattern in patterns.items() if pattern.search(text)), None)


def _numbers(text: str) -> list[Fraction | None]:
    return [None if word == "-" else Fraction(word) for word in text.split()]


def _columns(line: str, source: str) -> list[tuple[str, int]]:
    names = line.split()[1:]
    columns = [(match[1] or "CPU", int(match[2])) for name in names if (match := _COLUMN.fullmatch(name))]
    if not 0 < len(columns) <= MAX_COLUMNS or len(set(columns)) < len(names):
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
    last = next(reversed(table.histogram), None)
    if last is not None and int(row[1]) <= last:
        raise damaged(source, f"rtla's row {row[1]} comes after row {last}")
    table.histogram[int(row[1])] = values


def _continues(table: _Table, earlier: _Table) -> bool:
    """Return whether this output of top can be a later one of the run of `earlier`."""
    if table.kind != earlier.kind or table.kind not in _MEASURED or earlier.analysis:
        return False
    if table.duration_ns is not None and table.duration_ns < (earlier.duration_ns or 0):
        return False
    same_time = table.duration_ns == earlier.duration_ns
    return all(
        _row_continues(table.kind, table.top[cpu], earlier.top[cpu], same_time=same_time)
        for cpu in table.top.keys() & earlier.top.keys()
    )


def _row_continues(
    kind: Kind, row: tuple[int, list[str]], earlier: tuple[int, list[str]], *, same_time: bool
) -> bool:
    """Return whether a CPU's row of top can be a later one of the run of `earlier`."""
    if row[0] < earlier[0]:
        return False
    for at in _MEASURED[kind]:
        before, after = (
            Fraction(cells[at]) if at < len(cells) and re.fullmatch(_NUMBER, cells[at]) else None
            for cells in (earlier[1], row[1])
        )
        if before is None or after is None or before == after:
            continue
        is_minimum = kind == "timerlat top" and at % 4 == 1
        if (after > before) == is_minimum or (same_time and row[0] == earlier[0]):
            return False
    return True


def _end(tables: list[_Table], source: str) -> None:
    """Merge the last table into the one before, if both are of one run. A CPU's row that is missing in the
    later one is taken from the earlier one.
    """
    check_runs(len(tables), source)
    if len(tables) > 1 and _continues(tables[-1], tables[-2]):
        table, earlier = tables.pop(), tables.pop()
        table.top = earlier.top | table.top
        table.duration_ns = table.duration_ns or earlier.duration_ns
        tables.append(table)


def _begins(table: _Table | None, line: str) -> _Table | None:
    """Return the table that this line begins; None if it begins none."""
    if (kind := _kind(_TITLES, line)) is not None:
        return _Table(kind)
    kind = _kind(_HEADINGS, line)
    if kind is None or (table is not None and table.titled and not table.columns and not table.top):
        return None
    return _Table(kind, titled=False)


def _read_tables(numbered: Iterable[tuple[int, str]], source: str) -> list[_Table]:
    tables: list[_Table] = []
    for _, line in numbered:
        begun = _begins(tables[-1] if tables else None, line)
        if begun is not None:
            _end(tables, source)
            tables.append(begun)
        if not tables:
            continue
        table = tables[-1]
        if unit := _UNIT.search(line):
            table.unit_ns = _NS[next(word for word in unit.groups() if word)]
        if table.duration_ns is None and (duration := _DURATION.search(line)):
            table.duration_ns = clock_ns(*duration.groups())
        if table.analysis or _STOPPED.search(line):
            if sum(map(len, table.analysis)) < MAX_TEXT:
                table.analysis.append(line.rstrip().expandtabs()[:200])
        elif line.startswith("Index"):
            table.columns = _columns(line, source)
        elif line.lstrip().startswith("ALL"):
            table.summed = True
        elif not table.kind.endswith("hist"):
            if row := _TOP_ROW.fullmatch(line):
                table.top[int(row[1])] = (int(row[2]), row[3].replace("|", " ").split())
        elif table.columns:
            _take_row(table, line, source)
    if not tables:
        raise InputError(f"{source} is not output of rtla timerlat, osnoise or hwnoise")
    _end(tables, source)
    return tables


def _width(table: _Table) -> int:
    """Return the width of the bins, inferred from the rows; osnoise's extremes are also multiples of it."""
    extremes: list[Fraction | None] = []
    if table.kind == "osnoise hist":
        extremes = table.totals.get("min", []) + table.totals.get("max", [])
    return math.gcd(*table.histogram, *(int(value) for value in extremes if value is not None)) or 1


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
            samples = f"{context} of CPU {cpu} has {count} samples"
            raise damaged(source, f"{samples}, but its histogram has another number of samples")
    else:
        count, overflow = binned, 0
    low, high, average = figure("min"), figure("max"), figure("avg")
    if width > 1 and table.kind == "osnoise hist":
        # osnoise averages the edges of its bins and truncates to whole us, so the histogram is more precise.
        average = None
    return ImportedSeries(
        metric=_METRIC.get(context, "latency") if table.kind == "timerlat hist" else "gap",
        labels={"cpu": cpu},
        histogram=histogram,
        count=count,
        overflow=overflow,
        limit_ns=(max(table.histogram, default=0) + width) * unit_ns if overflow else None,
        minimum_ns=min(histogram, default=None) if low is None else int(low * unit_ns),
        maximum_ns=max(histogram, default=None) if high is None else int(high * unit_ns),
        average_ns=None if average is None else average * unit_ns,
    )


def _histogram(table: _Table, source: str) -> dict[str, Any]:
    if not table.columns:
        raise InputError(f"{source} is cut short: rtla's line with the names of the columns is missing")
    unit_ns, width = table.unit_ns or 1000, _width(table)
    marks: list[Mark] = []
    if width > 1:
        why = f"the file does not give the width, but all its rows begin with multiples of {width}"
        marks.append(ImportMarkKind.BINS_ASSUMED.mark(f"rtgauge assumes bins of {width}: {why}"))
    if not table.totals:
        marks.append(ImportMarkKind.NO_SUMMARY.mark())
    series = [_histogram_series(table, at, unit_ns, width, source) for at in range(len(table.columns))]
    return {"series": series, "resolution_ns": width * unit_ns, "marks": marks}


def _timerlat_top(table: _Table, source: str) -> dict[str, Any]:
    unit_ns = table.unit_ns or 1000
    series: list[ImportedSeries] = []
    for cpu, (count, cells) in sorted(table.top.items()):
        if len(cells) not in {4, 8, 12} or not all(re.fullmatch(rf"{_NUMBER}|-", cell) for cell in cells):
            raise damaged(
                source, f"rtla's row of CPU {cpu} has an impossible number of figures ({len(cells)})"
            )
        for at, metric in enumerate(_METRIC.values()):
            figures = cells[4 * at + 1 : 4 * at + 4]
            if not figures or "-" in figures:
                continue
            low, average, high = (int(Fraction(figure) * unit_ns) for figure in figures)
            series.append(
                ImportedSeries(
                    metric=metric,
                    labels={"cpu": cpu},
                    count=count,
                    overflow=count,
                    minimum_ns=low,
                    maximum_ns=high,
                    average_ns=Fraction(average),
                )
            )
    return {"series": series, "resolution_ns": unit_ns, "marks": [ImportMarkKind.COUNT_OF_IRQ.mark()]}


def _osnoise_top(table: _Table, source: str) -> dict[str, Any]:
    unit = "us" if (table.unit_ns or 1000) == 1000 else "ns"
    names = HARDWARE_NOISE if table.kind == "hwnoise" else NOISE
    results: list[Result] = []
    series: list[ImportedSeries] = []
    for cpu, (periods, cells) in sorted(table.top.items()):
        if len(cells) != len(names) or not all(re.fullmatch(rf"{_NUMBER}|-", cell) for cell in cells):
            raise damaged(source, f"rtla's row of CPU {cpu} has {len(cells)} of {len(names)} figures")
        exact = {
            name: None if cell == "-" else Fraction(cell) for name, cell in zip(names, cells, strict=True)
        }
        whole = {name: None if figure is None else int(figure) for name, figure in exact.items()}
        available = exact["available_percent"]
        values: dict[str, bool | int | float | str | None] = {
            "periods": periods,
            **{f"{name}_{unit}": whole[name] for name in TIMES},
            "available_percent": None if available is None else float(available),
            **{name: whole[name] for name in COUNTS if name in whole},
        }
        results.append(Result(name=table.kind.split()[0], labels={"cpu": cpu}, values=values))
        series += _longest_gap(cpu, whole["max_single"], table.unit_ns or 1000)
    return {"series": series, "resolution_ns": table.unit_ns or 1000, "results": results}


def _longest_gap(cpu: int, longest: int | None, unit_ns: int) -> list[ImportedSeries]:
    """Return the series of a CPU of which only the longest gap is known; none if the tool gives no number."""
    if longest is None:
        return []
    longest_ns, count = longest * unit_ns, int(longest > 0)
    return [
        ImportedSeries(
            metric="gap",
            labels={"cpu": cpu, "samples": "the longest"},
            count=count,
            overflow=count,
            minimum_ns=longest_ns,
            maximum_ns=longest_ns,
        )
    ]


def parse_rtla(numbered: Iterable[tuple[int, str]], source: str) -> list[Measurement]:
    """Parse the lines of rtla's output, with a measurement for each run.

    `source` names it in errors. Raises InputError for foreign or damaged text.
    """
    return [_measurement(table, source) for table in _read_tables(numbered, source)]


def _measurement(table: _Table, source: str) -> Measurement:
    if not table.kind.endswith("hist") and not table.top:
        raise InputError(f"{source} is cut short: rtla's table has no row")
    of_noise = {"osnoise top": _osnoise_top, "hwnoise": _osnoise_top}
    reader = {"timerlat top": _timerlat_top, **of_noise}.get(table.kind, _histogram)
    fields = reader(table, source)
    is_timerlat = table.kind.startswith("timerlat")
    if table.analysis:
        explanation = Result(name="explanation", values={"text": "\n".join(table.analysis).strip()})
        fields["results"] = [*fields.get("results", []), explanation]
        mark = ImportMarkKind.STOPPED_AT_THRESHOLD.mark(
            "rtla stopped at its threshold; the step's results contain rtla's analysis of the last latency"
        )
        fields["marks"] = [*fields.get("marks", []), mark]
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


RTLA = Importer(
    "rtla",
    "timerlat hist, timerlat top, osnoise hist, osnoise top, hwnoise",
    lambda head: (_kind(_TITLES, head) or _kind(_HEADINGS, head)) is not None,
    lambda path, _hints: parse_rtla(lines(path), str(path)),
)
