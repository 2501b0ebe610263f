# SPDX-License-Identifier: MIT
"""Reads the files for gnuplot (-g) of EVL's latmus and Xenomai's latency.

latmus describes the measurement in `#` lines, followed by cells of 1 us and their counts. The last cell ends
in `+` if the maximum lies above it. Newer versions add one to each count except the last, so that gnuplot can
draw the counts on a logarithmic scale.

Each line of latency's file has a value in us (the middle of a cell) and its count plus one. The first and the
last line are edges of the histogram, not samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark
from rtgauge_ext.importers.foreign_file import clock_ns, damaged, lines
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.latency_table import extremes, overruns_mark, space_of
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, last_bin_mark

_NAME = re.compile(r"[A-Za-z][A-Za-z /().-]{0,40}")
_EVL_CELL = re.compile(r"([0-9]{1,9})(\+?)[ \t]+([0-9]{1,15})")
_US = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,6})?")


def _figure(heading: dict[str, str], name: str, source: str) -> Fraction:
    match = _US.match(heading.get(name, ""))
    if match is None:
        raise damaged(source, f"the line '# {name}:' is missing or has no figure")
    return Fraction(match[0])


def _whole(text: str | None) -> int | None:
    match = re.match(r"[0-9]{1,15}", text or "")
    return int(match[0]) if match else None


def parse_latmus(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse a -g file. Raises InputError if it is foreign or damaged."""
    heading: dict[str, str] = {}
    cells: dict[int, int] = {}
    open_ended = restricted = False
    kernel: list[str] = []
    for number, line in numbered:
        text = line.strip()
        if text.startswith("#"):
            restricted = restricted or "C-state restricted" in text
            if text.startswith("# Linux version "):
                kernel = text.split()[3:4]
            name, colon, value = text[1:].partition(":")
            if colon and name.strip() == "test started on" and cells:
                raise damaged(source, f"line {number} begins a second run; keep only one run in the file")
            if colon and _NAME.fullmatch(name.strip()):
                heading.setdefault(name.strip(), value.strip()[:400])
        elif match := _EVL_CELL.fullmatch(text):
            if open_ended or (cells and int(match[1]) <= next(reversed(cells))):
                raise damaged(source, f"line {number} comes after a larger bin or after the last one")
            cells[int(match[1])] = int(match[3])
            open_ended = match[2] == "+"
        elif text:
            raise damaged(source, f"line {number}: '{text[:40]}'")
    names = (f"{name} latency" for name in ("min", "avg", "max"))
    low, average, high = (_figure(heading, name, source) * 1000 for name in names)
    count, binned = _whole(heading.get("sample count")), sum(cells.values())
    marks: list[Mark] = []
    if len(cells) > 1 and count == binned - (len(cells) - 1) and all([*cells.values()][:-1]):
        last_cell = next(reversed(cells))
        cells = {cell: samples - (cell != last_cell) for cell, samples in cells.items()}
        detail = "latmus -g writes each count except the last too high by 1; rtgauge subtracts 1"
        marks.append(ImportMarkKind.COUNTS_PLUS_ONE.mark(detail))
        binned = count
    if count is None or count != binned:
        raise InputError(
            f"{source} is damaged or cut short: its bins have {binned} samples, but 'sample count' says "
            f"{count}"
        )
    overflow, limit = 0, None
    if open_ended:
        limit, overflow = cells.popitem()
        clipped = "the last bin of latmus also counts every larger latency"
        marks.append(last_bin_mark(clipped, overflow, f"{limit} us"))
    if low < 0:
        marks.append(MarkKind.EARLY.mark(f"some activations were up to {-int(low)} ns early"))
    if overruns := _whole(heading.get("OVERRUNS")):
        marks.append(overruns_mark("latmus", overruns))
    if switches := _whole(heading.get("IN-BAND SWITCHES")):
        detail = f"latmus reports {switches} switches to Linux, during which the task was not real-time"
        marks.append(MarkKind.MODE_SWITCHES.mark(detail))
    period = _whole(heading.get("sampling period"))
    cpu = re.match(r"CPU([0-9]{1,5})", heading.get("thread affinity", ""))
    series = ImportedSeries(
        labels={"cpu": int(cpu[1])} if cpu else {"thread": 0},
        histogram={cell * 1000: samples for cell, samples in cells.items() if samples},
        count=count,
        overflow=overflow,
        limit_ns=None if limit is None else limit * 1000,
        minimum_ns=int(low),
        maximum_ns=int(high),
        average_ns=average,
        finer_average=True,
        interval_ns=period * 1000 if period else None,
        absolute=low < 0,
    )
    parameters: dict[str, Any] = {**space_of(heading.get("context", "user"))}
    if (priority := _whole(heading.get("thread priority"))) is not None:
        parameters["priority"] = priority
    if restricted:
        parameters["c_states"] = "restricted"
    clock = re.match(r"([0-9]+):([0-9]{2}):([0-9]{2})", heading.get("duration (hhmmss)", ""))
    return Measurement(
        tool="evl latmus",
        source=source,
        series=[series],
        resolution_ns=1000,
        version=heading.get("libevl version"),
        parameters=parameters,
        marks=marks,
        system={"release": kernel[0]} if kernel else {},
        counts_missed="OVERRUNS" not in heading,
        duration_ns=None if clock is None else clock_ns(*clock.groups()) or None,
    )


_HEAD = re.compile(
    r"#\s*([0-9]+):([0-9]{2}):([0-9]{2}) \(([^,]{1,60}), ([0-9]{1,9}) us period(?:, priority ([0-9]{1,3}))?"
)
_FIGURES = re.compile(
    r"#\s*(-?[0-9]{1,9}\.[0-9]{1,6})\|\s*(-?[0-9]{1,9}\.[0-9]{1,6})\|\s*(-?[0-9]{1,9}\.[0-9]{1,6})\|\s*([0-9]{1,15})\|"
)
_CELL = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ([0-9]{1,15})")


def parse_latency(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse a -g file. Raises InputError if it is foreign or damaged."""
    cells: list[tuple[Fraction, int]] = []
    head: re.Match[str] | None = None
    figures: re.Match[str] | None = None
    for number, line in numbered:
        text = line.strip()
        if match := _CELL.fullmatch(text):
            cells.append((Fraction(match[1]), int(match[2])))
        elif match := _HEAD.match(text):
            if head is not None:
                raise damaged(source, f"line {number} begins a second run; keep only one run in the file")
            head = match
        elif match := _FIGURES.match(text):
            figures = match
        elif text and not text.startswith("#"):
            raise damaged(source, f"line {number}: '{text[:40]}'")
    values = [value for value, _ in cells]
    if len(cells) < 3 or values != sorted(set(values)) or cells[0][1] != 1 or cells[-1][1] != 1:
        edges = "its first and last lines must be the edges of the histogram, with count 1"
        raise InputError(f"{source} is not a file from latency -g: {edges}")
    width = cells[-1][0] - cells[-2][0]
    width_ns = round(width * 2000)
    if width_ns <= 0 or any(count < 1 for _, count in cells):
        raise damaged(source, "its bins are not in the form that latency -g writes")
    histogram = {round(value * 1000) - width_ns // 2: count - 1 for value, count in cells[1:-1] if count > 1}
    low = high = average = None
    marks = [
        ImportMarkKind.COUNTS_PLUS_ONE.mark(
            "Xenomai's latency -g writes each count too high by 1; rtgauge subtracts 1"
        )
    ]
    overflow, limit = 0, None
    if figures:
        low, high = (round(Fraction(figures[number]) * 1000) for number in (1, 3))
        average = Fraction(figures[2]) * 1000
        last = max(histogram, default=0)
        if histogram and max(high, -low) >= last + width_ns:
            overflow, limit = histogram.pop(last), last
            clipped = "the last bin of Xenomai's latency also counts every larger latency"
            marks.append(last_bin_mark(clipped, overflow, f"{last} ns"))
        low, high = extremes("Xenomai's latency", histogram, (low, high), width_ns, marks)
        if overruns := int(figures[4]):
            marks.append(overruns_mark("Xenomai's latency", overruns))
    period = int(head[5]) * 1000 if head else None
    series = ImportedSeries(
        labels={"thread": 0},
        histogram=histogram,
        count=sum(histogram.values()) + overflow,
        overflow=overflow,
        limit_ns=limit,
        minimum_ns=min(histogram, default=None) if low is None else low,
        maximum_ns=max(histogram, default=None) if high is None else high,
        average_ns=average,
        finer_average=average is not None,
        interval_ns=period,
        absolute=low is None or low < 0,
    )
    parameters: dict[str, str | int] = {}
    if head is not None:
        parameters |= space_of(head[4])
        if head[6]:
            parameters["priority"] = int(head[6])
    return Measurement(
        tool="xenomai latency",
        source=source,
        series=[series],
        resolution_ns=width_ns,
        parameters=parameters,
        marks=marks,
        duration_ns=None if head is None else clock_ns(head[1], head[2], head[3]) or None,
        counts_missed=figures is not None and int(figures[4]) == 0,
    )


LATMUS_GNUPLOT = Importer(
    "latmus-gnuplot",
    "latmus -g",
    lambda head: "# libevl version" in head or ("# sampling period:" in head and "# sample count:" in head),
    lambda path, _hints: [parse_latmus(lines(path), str(path))],
)
XENOMAI_GNUPLOT = Importer(
    "xenomai-gnuplot",
    "latency -g",
    lambda head: _HEAD.search(head) is not None and "libevl" not in head,
    lambda path, _hints: [parse_latency(lines(path), str(path))],
)
