# SPDX-License-Identifier: MIT
"""Reads the output of EVL's latmus: the screen, and the file for gnuplot (-g).

A -g file describes the measurement in `#` lines, followed by cells of 1 us and their counts. The last cell
ends in `+` if the maximum lies above it. Newer versions add one to each count except the last, so that
gnuplot can draw the counts on a logarithmic scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark
from rtgauge_ext.importers.foreign_file import clock_ns, damaged, lines
from rtgauge_ext.importers.latency_table import EVL_CONTEXTS, parse_screen, space_of
from rtgauge_ext.importers.marks import ImportMarkKind
from rtgauge_ext.importers.measurement import (
    Hints,
    ImportedSeries,
    Importer,
    Measurement,
    last_bin_mark,
    overruns_mark,
)

_NAME = re.compile(r"[A-Za-z][A-Za-z /().-]{0,40}")
_CELL = re.compile(r"([0-9]{1,9})(\+?)[ \t]+([0-9]{1,15})")
_US = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,6})?")


def _figure(heading: dict[str, str], name: str, source: str) -> Fraction:
    match = _US.match(heading.get(name, ""))
    if match is None:
        raise damaged(source, f"the line '# {name}:' is missing or has no figure")
    return Fraction(match[0])


def _whole(text: str | None) -> int | None:
    match = re.match(r"[0-9]{1,15}", text or "")
    return int(match[0]) if match else None


def parse_gnuplot(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
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
        elif match := _CELL.fullmatch(text):
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
        marks.append(ImportMarkKind.IN_BAND_SWITCHES.mark(detail))
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


_CONTEXTS = "|".join(sorted(EVL_CONTEXTS))
_SCREEN = re.compile(rf"^RTT\|[^\n(]{{0,40}}\((?:(?:{_CONTEXTS}),|[^\n)]{{0,120}}, CPU[0-9])", re.MULTILINE)
_ROW = re.compile(r"^(RTD|RTT|RTS)\|", re.MULTILINE)


def _read(path: Path, hints: Hints) -> list[Measurement]:
    measurements = parse_screen(lines(path), str(path), hints.interval_ns)
    return [replace(measurement, tool="evl latmus") for measurement in measurements]


LATMUS = Importer(
    "latmus",
    "the screen",
    lambda head: bool(_SCREEN.search(head) or ("latmus" in head and _ROW.search(head))),
    _read,
)
LATMUS_GNUPLOT = Importer.of_lines(
    "latmus-gnuplot",
    "latmus -g",
    lambda head: "# libevl version" in head or ("# sampling period:" in head and "# sample count:" in head),
    parse_gnuplot,
)
