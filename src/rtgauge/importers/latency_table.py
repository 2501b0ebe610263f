# SPDX-License-Identifier: MIT
"""The table that Xenomai's latency and EVL's latmus print: a line a second, RTT (period, priority), RTD (figures), RTS (the whole); us.

Each RTD line has the samples of one second: 1 s divided by the period. HSD lines are histograms (-h), of values without their sign; everything above its
last cell is counted in that one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.importers.measurement import ImportedSeries, Measurement, Second, doubt, note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rtgauge.record.model import Mark

_US = r"\s*(-?[0-9]{1,9}(?:\.[0-9]{1,6})?)\s*"
_INT = r"\s*([0-9]{1,15})\s*"
_RTT = re.compile(r"RTT\|\s*([0-9:]+)\s*\(([^,]{1,60}),\s*([0-9]{1,9}) us period(?:,\s*priority ([0-9]{1,3}))?(?:,\s*CPU([0-9]{1,5})(-noisol)?)?\)")
_RTD = re.compile(rf"RTD\|{_US}\|{_US}\|{_US}\|{_INT}\|{_INT}\|{_US}\|{_US}")
_RTS = re.compile(rf"RTS\|{_US}\|{_US}\|{_US}\|{_INT}\|(?:{_INT}\|)?\s*([0-9]+):([0-9]{{2}}):([0-9]{{2}})/")
_HSD = re.compile(rf"HSD\|\s*(min|avg|max)\|\s*([0-9]{{1,9}})\s*-\s*([0-9]{{1,9}})\s*\|{_INT}")
_HSS = re.compile(rf"HSS\|\s*(min|avg|max)\|{_INT}\|{_US}\|{_US}")
MAX_SECONDS = 10**6
USER = {"space": "user"}
IN_THREAD = {"space": "kernel", "context": "thread"}
IN_HANDLER = {"space": "kernel", "context": "irq"}
NOT_TOLD: dict[str, str] = {}


@dataclass
class LatencyTable:
    """What was read. `histogram`: cell (us) -> samples, of the series "avg", which has every sample."""

    space: dict[str, str] = field(default_factory=lambda: dict(USER))
    """As of `space_of`."""
    period_us: int | None = None
    priority: int | None = None
    cpu: int | None = None
    seconds: list[Second] = field(default_factory=list[Second])
    overruns: int = 0
    switches: int = 0
    histogram: dict[int, int] = field(default_factory=dict[int, int])
    whole: tuple[int, Fraction, int] | None = None
    """Minimum, average, maximum (ns) of RTS."""
    duration_ns: int | None = None
    samples: int | None = None


def _ns(text: str) -> int:
    return round(Fraction(text) * 1000)


def space_of(words: str) -> dict[str, str]:
    """The parameters space and context (of kernel space: a thread, or the timer's handler) from a tool's words; none where it has others.

    latency: "periodic user-mode task", "in-kernel periodic task", "in-kernel timer handler". latmus: "user", "kernel", "irq".
    """
    kinds = (("user", USER), ("irq", IN_HANDLER), ("handler", IN_HANDLER), ("kernel", IN_THREAD))
    return dict(next((space for part, space in kinds if part in words.lower()), NOT_TOLD))


def read_table(numbered: Iterable[tuple[int, str]], source: str) -> LatencyTable:
    """The table in these lines. Raises InputError for a damaged one."""
    table = LatencyTable()
    for number, line in numbered:
        text = line.strip()
        if match := _RTT.match(text):
            table.space, table.period_us = space_of(match[2]), int(match[3]) or None
            table.priority = int(match[4]) if match[4] else None
            table.cpu = int(match[5]) if match[5] else None
        elif match := _RTD.match(text):
            low, average, high = _ns(match[1]), Fraction(match[2]) * 1000, _ns(match[3])
            if low > high or table.period_us is None:
                raise InputError(
                    f"{source} is damaged: line {number}: " + ("no line RTT before it" if low <= high else f"minimum {match[1]}, maximum {match[3]}")
                )
            if len(table.seconds) >= MAX_SECONDS:
                raise InputError(f"{source} has more than {MAX_SECONDS} lines of figures")
            table.seconds.append(Second(count=max(10**6 // table.period_us, 1), minimum_ns=low, maximum_ns=high, average_ns=average))
            # Both go on counting from line to line.
            table.overruns, table.switches = int(match[4]), int(match[5])
        elif match := _HSD.match(text):
            if match[1] == "avg":
                table.histogram[int(match[2])] = int(match[4])
        elif match := _HSS.match(text):
            if match[1] == "avg":
                table.samples = int(match[2])
        elif match := _RTS.match(text):
            table.whole = (_ns(match[1]), Fraction(match[2]) * 1000, _ns(match[3]))
            table.overruns = int(match[4])
            table.duration_ns = ((int(match[6]) * 60 + int(match[7])) * 60 + int(match[8])) * 10**9
        elif text.startswith(("RTD|", "RTS|", "HSD|")):
            raise InputError(f"{source} is damaged: line {number}: '{text[:60]}'")
    return table


def with_unfinished_second(low_ns: int, high_ns: int, histogram: Mapping[int, int], width_ns: int, program: str) -> tuple[int, int, list[Mark]]:
    """The extremes (ns) of a histogram (beginning of a cell in ns -> samples) whose tool tells those of whole seconds only.

    The histogram has the last, unfinished second too: where a cell lies beyond the extremes, its beginning is all that is known.
    """
    first, last = min(histogram, default=low_ns), max(histogram, default=high_ns)
    if first + width_ns > low_ns and last <= high_ns:
        return low_ns, high_ns, []
    text = f"{program}'s extremes are of whole seconds, its histogram has the unfinished one too: it ranges from {first} to {last} ns, cells of {width_ns} ns"
    return (low_ns if first + width_ns > low_ns else first), max(high_ns, last), [note("extremes-of-whole-seconds", text)]


def table_series(table: LatencyTable, source: str, tool: str) -> tuple[ImportedSeries, int, list[Mark]]:
    """The series, its resolution (ns) and the marks. Raises InputError where there are no figures."""
    labels: dict[str, str | int] = {"thread": 0} if table.cpu is None else {"cpu": table.cpu}
    interval = None if table.period_us is None else table.period_us * 1000
    marks: list[Mark] = []
    if table.overruns:
        marks.append(doubt("overruns", f"{tool} reports {table.overruns} overruns: activations that were missed; how late they would have been is not known"))
    if table.switches:
        marks.append(doubt("mode-switches", f"{tool} reports {table.switches} switches to Linux: in that time the task was not real-time"))
    if table.seconds:
        low, high = min(second.minimum_ns for second in table.seconds), max(second.maximum_ns for second in table.seconds)
    elif table.whole is not None:
        low, high = table.whole[0], table.whole[2]
    else:
        raise InputError(f"{source} has no line of figures (RTD, RTS)")
    if table.whole is not None:
        low, high = min(low, table.whole[0]), max(high, table.whole[2])
    if table.histogram:
        histogram = dict(sorted(table.histogram.items()))
        count = sum(histogram.values())
        if table.samples is not None and table.samples != count:
            raise InputError(f"{source} is damaged: its histogram has {count} samples, its summary says {table.samples}")
        marks.append(note("bins-assumed", "cells of 1 us: the text does not say how wide they are (-B)"))
        last, overflow = max(histogram), 0
        if high >= (last + 1) * 1000:
            overflow = histogram.pop(last)
            marks.append(note("last-bin-clipped", f"{tool}'s last cell has every larger latency too: its {overflow} samples count as {last} us or more"))
        if low < 0:
            marks.append(doubt("sign-lost", f"{tool}'s histogram has latencies without their sign, and some were early (down to {low} ns)"))
        in_ns = {cell * 1000: samples for cell, samples in histogram.items()}
        low, high, beyond = with_unfinished_second(low, high, in_ns, 1000, tool)
        marks += beyond
        series = ImportedSeries(
            labels=labels,
            histogram=in_ns,
            count=count,
            overflow=overflow,
            limit_ns=last * 1000 if overflow else None,
            minimum_ns=low,
            maximum_ns=high,
            interval_ns=interval,
            absolute=low < 0,
        )
        return series, 1000, marks
    if not table.seconds and table.samples:  # -q -s
        count = table.samples
        return ImportedSeries(labels=labels, count=count, overflow=count, minimum_ns=low, maximum_ns=high, interval_ns=interval), 1, marks
    if not table.seconds:
        raise InputError(f"{source} has only {tool}'s last line (RTS): how many samples it is of is not in it")
    if low < 0:
        marks.append(note("early", f"some activations were early, down to {low} ns: {tool} corrects its timer by a constant"))
    seconds = table.seconds
    if table.whole is not None and (min(s.minimum_ns for s in seconds) > low or max(s.maximum_ns for s in seconds) < high):
        marks.append(doubt("seconds-missing", f"the file does not have every second: the whole ranges from {low} to {high} ns"))
    count = sum(second.count for second in seconds)
    return ImportedSeries(labels=labels, count=count, overflow=count, minimum_ns=low, maximum_ns=high, interval_ns=interval, seconds=seconds), 1, marks


def parse_screen(numbered: Iterable[tuple[int, str]], source: str, tool: str, program: str) -> Measurement:
    """The measurement in what the tool's program prints on the screen. Raises InputError for a foreign or damaged one."""
    table = read_table(numbered, source)
    series, resolution, marks = table_series(table, source, program)
    return Measurement(
        tool=tool,
        source=source,
        series=[series],
        resolution_ns=resolution,
        parameters={**table.space, **({} if table.priority is None else {"priority": table.priority})},
        marks=marks,
        duration_ns=table.duration_ns or len(table.seconds) * 10**9 or None,
    )
