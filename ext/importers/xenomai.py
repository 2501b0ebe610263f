# SPDX-License-Identifier: MIT
"""Reads the output of Xenomai's latency: the screen, the histogram (-h), and the file for gnuplot (-g).

Each line of a -g file has a value in us (the middle of a cell) and its count plus one, so that gnuplot can
draw the counts on a logarithmic scale. The first and the last line are edges of the histogram, not samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from rtgauge.errors import InputError
from rtgauge.record.model import Result
from rtgauge.units import NS_PER_S
from rtgauge_ext.importers.foreign_file import clock_ns, damaged, lines
from rtgauge_ext.importers.latency_table import parse_screen, space_of, with_unfinished_second
from rtgauge_ext.importers.marks import ImportMarkKind
from rtgauge_ext.importers.measurement import (
    ImportedSeries,
    Importer,
    Measurement,
    last_bin_mark,
    overruns_mark,
)

_HEAD = re.compile(
    r"#\s*([0-9]+):([0-9]{2}):([0-9]{2}) \(([^,]{1,60}), ([0-9]{1,9}) us period(?:, priority ([0-9]{1,3}))?"
)
_FIGURES = re.compile(
    r"#\s*(-?[0-9]{1,9}\.[0-9]{1,6})\|\s*(-?[0-9]{1,9}\.[0-9]{1,6})\|\s*(-?[0-9]{1,9}\.[0-9]{1,6})\|\s*([0-9]{1,15})\|"
)
_CELL = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ([0-9]{1,15})")


def parse_gnuplot(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
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
        low, high, beyond = with_unfinished_second(low, high, histogram, width_ns, "Xenomai's latency")
        marks += beyond
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


_ROW = re.compile(r"^(RTD|RTT|RTS|HSD)\|", re.MULTILINE)
XENOMAI = Importer(
    "xenomai",
    "latency: what the screen shows, with the histogram (-h)",
    lambda head: _ROW.search(head) is not None and "latmus" not in head,
    lambda path, hints: parse_screen(lines(path), str(path), hints.interval_ns),
    by_shape=True,
)
XENOMAI_GNUPLOT = Importer.of_lines(
    "xenomai-gnuplot",
    "latency -g",
    lambda head: _HEAD.search(head) is not None and "libevl" not in head,
    parse_gnuplot,
)


_THREADS = re.compile(r"== Threads: (.+)")
_LINE = re.compile(r"RTD\|\s*([0-9]{1,5})\|\s*([0-9]{1,12})\|\s*([0-9]{1,15})")


def parse_switchtest(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Make a result `switchtest` for each CPU: its `threads`, `seconds`, `switches`, and an upper bound on
    the mean time of a switch (`at_most_ns`).

    Raises InputError if the output is damaged or has no figures.
    """
    threads = 0
    counts: dict[int, list[int]] = {}
    totals: dict[int, int] = {}
    for number, line in numbered:
        text = line.strip()
        if match := _THREADS.match(text):
            threads = len(match[1].split())
        elif match := _LINE.fullmatch(text):
            cpu = int(match[1])
            counts.setdefault(cpu, []).append(int(match[2]))
            totals[cpu] = int(match[3])
            if (sum_so_far := sum(counts[cpu])) != totals[cpu]:
                lines_have = f"but the lines up to it have {sum_so_far}"
                raise damaged(source, f"line {number} says {match[3]} switches, {lines_have}")
        elif text.startswith("RTD|"):
            raise damaged(source, f"line {number}: '{text[:60]}'")
    if not any(totals.values()):
        raise InputError(f"{source} has no figures from switchtest")
    results: list[Result] = []
    for cpu, switches in totals.items():
        seconds = len(counts[cpu])
        most = seconds * NS_PER_S // switches if switches else None
        values = {"threads": threads, "seconds": seconds, "switches": switches, "at_most_ns": most}
        results.append(Result(name="switchtest", labels={"cpu": cpu}, values={**values}))
    return Measurement(
        tool="xenomai switchtest", source=source, probe="switch", series=[], resolution_ns=1, results=results
    )
