# SPDX-License-Identifier: MIT
"""Reads the table (in us) that Xenomai's latency and EVL's latmus print: RTT (period, priority), RTD (the
figures of each second), and at the end RTS (the total).

An RTD line sums up the samples of one second, whose number is 1 s divided by the period. Its last two figures
are the extremes so far. If lines are missing, the RTS line gives the total; without one, the last line gives
the extremes. HSD lines are histograms (-h) of unsigned values. Their last cell also counts all larger values.
latency begins with `==` lines, which also give the period and the task. Xenomai 2.5 and earlier do not count
switches to Linux, so their RTD lines lack that figure.

A file can hold several tables. A table begins after an RTS line, or where the time, the period, the task or a
figure that covers the time so far contradicts the lines before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from rtgauge.errors import InputError
from rtgauge.record.marks import MarkKind, Severity
from rtgauge.record.model import Mark
from rtgauge.units import NS_PER_S
from rtgauge_ext.importers.foreign_file import clock_ns, damaged
from rtgauge_ext.importers.marks import ImportMarkKind
from rtgauge_ext.importers.measurement import (
    ImportedSeries,
    Measurement,
    Second,
    check_runs,
    last_bin_mark,
    overruns_mark,
)

_US = r"\s*(-?[0-9]{1,9}(?:\.[0-9]{1,6})?)\s*"
_INT = r"\s*([0-9]{1,15})\s*"
_RTT = re.compile(
    r"RTT\|\s*([0-9]{2,5}:[0-9]{2}:[0-9]{2})\s*\(([^,]{1,60}),\s*([0-9]{1,9}) us period(?:,\s*priority "
    r"([0-9]{1,3}))?(?:,\s*CPU([0-9]{1,5})(-noisol)?)?\)"
)
_PERIOD = re.compile(r"== Sampling period: ([0-9]{1,9}) us")
_MODE = re.compile(r"== Test mode: (.{1,60})")
_RTD = re.compile(rf"RTD\|{_US}\|{_US}\|{_US}\|{_INT}\|(?:{_INT}\|)?{_US}\|{_US}")
_RTS = re.compile(rf"RTS\|{_US}\|{_US}\|{_US}\|{_INT}\|(?:{_INT}\|)?\s*([0-9]+):([0-9]{{2}}):([0-9]{{2}})/")
_HSD = re.compile(rf"HSD\|\s*(min|avg|max)\|\s*([0-9]{{1,9}})\s*-\s*([0-9]{{1,9}})\s*\|{_INT}")
_HSS = re.compile(rf"HSS\|\s*(min|avg|max)\|{_INT}\|{_US}\|{_US}")
MAX_SECONDS = 10**6
USER = {"space": "user"}
IN_THREAD = {"space": "kernel", "context": "thread"}
IN_HANDLER = {"space": "kernel", "context": "irq"}
UNKNOWN_SPACE: dict[str, str] = {}


class Whole(NamedTuple):
    """The RTS line, which sums up the whole measurement."""

    minimum_ns: int
    average_ns: Fraction
    maximum_ns: int


@dataclass
class LatencyTable:
    """The parsed table. `histogram`: cell (us) -> samples, of the series "avg", which has every sample."""

    space: dict[str, str] = field(default_factory=lambda: dict(USER))
    """Parameters, as `space_of` returns them."""
    period_us: int | None = None
    priority: int | None = None
    cpu: int | None = None
    seconds: list[Second] = field(default_factory=list[Second])
    extremes: tuple[int, int] | None = None
    """Minimum and maximum (ns) since the start, from the last RTD line."""
    overruns: int = 0
    switches: int = 0
    histogram: dict[int, int] = field(default_factory=dict[int, int])
    whole: Whole | None = None
    duration_ns: int | None = None
    samples: int | None = None
    heading: tuple[str, ...] = ()
    """The task, the period, the priority and the CPU of the last RTT line."""
    elapsed_ns: int = 0
    """The time in the last RTT line."""
    xenomai_2: bool = False
    """Whether the lines lack the figure that Xenomai 3 added."""
    evl: bool = False
    """Whether latmus printed the line, which then has the CPU or latmus's words for the task."""

    @property
    def tool(self) -> tuple[str, str]:
        """The name of the tool in a record, and the name of its program."""
        return ("evl latmus", "latmus") if self.evl else ("xenomai latency", "latency")


EVL_CONTEXTS = {"irq", "sirq", "kernel", "user", "oob-gpio", "inband-gpio"}


def _ns(text: str) -> int:
    return round(Fraction(text) * 1000)


def space_of(words: str) -> dict[str, str]:
    """Return the parameters `space` and `context` that a tool's words mean; empty if the words are unknown.

    In kernel space, the context is a thread or the timer's handler.

    latency: "periodic user-mode task", "in-kernel periodic task", "in-kernel timer handler". latmus: "user",
    "kernel", "irq".
    """
    kinds = (("user", USER), ("irq", IN_HANDLER), ("handler", IN_HANDLER), ("kernel", IN_THREAD))
    return dict(next((space for part, space in kinds if part in words.lower()), UNKNOWN_SPACE))


def _begins_next(table: LatencyTable, text: str) -> bool:
    """Return whether this line begins another table."""
    if table.whole is not None:
        return text.startswith(("RTT|", "RTD|", "RTS|", "HSD|", "== "))
    if not table.seconds:
        return False
    if match := _RTT.match(text):
        later = clock_ns(*match[1].split(":")) > table.elapsed_ns
        return not later or bool(table.heading and match.groups("")[1:] != table.heading)
    if (match := _RTD.match(text)) and table.extremes is not None:
        low, high = table.extremes
        return _ns(match[6]) > low or _ns(match[7]) < high or int(match[4]) < table.overruns
    return _PERIOD.match(text) is not None or text.startswith("== latmus")


def read_tables(numbered: Iterable[tuple[int, str]], source: str) -> list[LatencyTable]:
    """Parse the lines of the tables in a file. Raises InputError if they are damaged."""
    tables = [LatencyTable()]
    for number, line in numbered:
        text = line.strip()
        if _begins_next(tables[-1], text):
            tables.append(LatencyTable())
            check_runs(len(tables), source)
        _take(tables[-1], number, text, source)
    return tables


def _take(table: LatencyTable, number: int, text: str, source: str) -> None:
    """Parse a line."""
    if match := _RTT.match(text):
        table.space, table.period_us = space_of(match[2]), int(match[3]) or None
        table.evl = table.evl or match[5] is not None or match[2].strip() in EVL_CONTEXTS
        table.priority = int(match[4]) if match[4] else None
        table.cpu = int(match[5]) if match[5] else None
        table.heading, table.elapsed_ns = match.groups("")[1:], clock_ns(*match[1].split(":"))
    elif match := _PERIOD.match(text):
        table.period_us = int(match[1]) or None
    elif match := _MODE.match(text):
        table.space = space_of(match[1])
    elif text.startswith("== latmus"):
        table.evl = True
    elif match := _RTD.match(text):
        low, average, high = _ns(match[1]), Fraction(match[2]) * 1000, _ns(match[3])
        if low > high:
            raise damaged(
                source,
                f"in line {number} the minimum ({match[1]}) is larger than the maximum ({match[3]})",
            )
        if table.period_us is None:
            raise damaged(source, f"an RTT line is missing before line {number}")
        if len(table.seconds) >= MAX_SECONDS:
            raise InputError(f"{source} has more than {MAX_SECONDS} lines of figures")
        count = max(10**6 // table.period_us, 1)
        second = Second(count=count, minimum_ns=low, maximum_ns=high, average_ns=average)
        table.seconds.append(second)
        # Both counters are cumulative.
        table.overruns, table.switches = int(match[4]), int(match[5] or 0)
        table.xenomai_2 = match[5] is None
        table.extremes = _ns(match[6]), _ns(match[7])
    elif match := _HSD.match(text):
        if match[1] == "avg":
            table.histogram[int(match[2])] = int(match[4])
    elif match := _HSS.match(text):
        if match[1] == "avg":
            table.samples = int(match[2])
    elif match := _RTS.match(text):
        table.whole = Whole(_ns(match[1]), Fraction(match[2]) * 1000, _ns(match[3]))
        table.overruns, table.switches = int(match[4]), int(match[5] or 0)
        table.xenomai_2 = table.xenomai_2 or match[5] is None
        table.duration_ns = clock_ns(match[6], match[7], match[8])
    elif text.startswith(("RTD|", "RTS|", "HSD|")):
        raise damaged(source, f"line {number}: '{text[:60]}'")


class Extremes(NamedTuple):
    """The minimum and maximum, with a mark if they are doubtful."""

    low_ns: int
    high_ns: int
    marks: list[Mark]


def with_unfinished_second(
    low_ns: int, high_ns: int, histogram: Mapping[int, int], width_ns: int, program: str
) -> Extremes:
    """Return the extremes of a histogram (start of a cell in ns -> samples), whose tool prints extremes only
    for whole seconds.

    The histogram includes the last, unfinished second. For a value beyond the printed extremes, `low_ns` and
    `high_ns`, only the start of its cell is known. `width_ns`: the width of a cell. `program`: the tool's
    name in the mark.
    """
    first, last = min(histogram, default=low_ns), max(histogram, default=high_ns)
    # The histogram has no signs.
    low_is_least, farthest_ns = low_ns < 0 or first + width_ns > low_ns, max(high_ns, -low_ns)
    if low_is_least and last <= farthest_ns:
        return Extremes(low_ns, high_ns, [])
    whole = f"the extremes and average that {program} prints cover only whole seconds"
    also = f"but its histogram includes the unfinished last second, and ranges from {first} to {last} ns"
    mark = ImportMarkKind.EXTREMES_OF_WHOLE_SECONDS.mark(f"{whole}, {also}, in bins of {width_ns} ns")
    return Extremes(low_ns if low_is_least else first, high_ns if last <= farthest_ns else last, [mark])


class TableSeries(NamedTuple):
    """The series of a table, with marks for any doubts."""

    series: ImportedSeries
    resolution_ns: int
    marks: list[Mark]


def table_series(table: LatencyTable, source: str) -> TableSeries:
    """Make the series of a table. Raises InputError if there are no figures."""
    tool = table.tool[1]
    labels: dict[str, str | int] = {"thread": 0} if table.cpu is None else {"cpu": table.cpu}
    interval = None if table.period_us is None else table.period_us * 1000
    marks: list[Mark] = []
    if table.overruns:
        marks.append(overruns_mark(tool, table.overruns))
    if table.switches:
        detail = f"{tool} reports {table.switches} switches to Linux, during which the task was not real-time"
        marks.append(MarkKind.MODE_SWITCHES.mark(detail))
    if not table.seconds and table.whole is None:
        raise InputError(f"{source} has no line with figures (RTD, RTS)")
    lows = [second.minimum_ns for second in table.seconds]
    highs = [second.maximum_ns for second in table.seconds]
    if table.whole is not None:
        lows.append(table.whole.minimum_ns)
        highs.append(table.whole.maximum_ns)
    if table.extremes is not None:
        lows.append(table.extremes[0])
        highs.append(table.extremes[1])
    low, high = min(lows), max(highs)
    if low > high:
        raise damaged(source, f"its minimum, {low} ns, is larger than its maximum, {high} ns")
    if table.histogram:
        histogram = dict(sorted(table.histogram.items()))
        count = sum(histogram.values())
        if table.samples is not None and table.samples != count:
            raise damaged(source, f"its histogram has {count} samples, but its summary says {table.samples}")
        detail = "rtgauge assumes bins of 1 us, because the text does not give their width (-B)"
        marks.append(ImportMarkKind.BINS_ASSUMED.mark(detail))
        last, overflow = max(histogram), 0
        if max(high, -low) >= (last + 1) * 1000:
            overflow = histogram.pop(last)
            clipped = f"{tool}'s last bin also counts every larger latency"
            marks.append(last_bin_mark(clipped, overflow, f"{last} us"))
        if low < 0:
            detail = (
                f"{tool}'s histogram drops the sign of latencies, and some activations were early (down to "
                f"{low} ns)"
            )
            marks.append(ImportMarkKind.SIGN_LOST.mark(detail))
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
            average_ns=None if table.whole is None else table.whole.average_ns,
            finer_average=True,
            interval_ns=interval,
            absolute=low < 0,
        )
        return TableSeries(series, 1000, marks)
    if low < 0:
        detail = (
            f"some activations were up to {-low} ns early, because {tool} sets its timer early by a constant"
        )
        marks.append(MarkKind.EARLY.mark(detail))
    count, seconds = _count(table, source), table.seconds
    missing = _missing(table, low, high)
    if missing is not None:
        marks.append(missing)
        seconds = []
    series = ImportedSeries(
        labels=labels,
        count=count,
        overflow=count,
        minimum_ns=low,
        maximum_ns=high,
        average_ns=table.whole.average_ns if table.whole is not None and not seconds else None,
        interval_ns=interval,
        seconds=seconds,
    )
    return TableSeries(series, 1, marks)


def _missing(table: LatencyTable, low: int, high: int) -> Mark | None:
    """Return a mark if the lines of some seconds are missing."""
    if not table.seconds:
        return None
    expected_seconds = None if table.duration_ns is None else table.duration_ns // NS_PER_S
    # The last second may be unfinished.
    all_there = expected_seconds is None or len(table.seconds) >= expected_seconds - 1
    lows = [second.minimum_ns for second in table.seconds]
    highs = [second.maximum_ns for second in table.seconds]
    if all_there and (min(lows), max(highs)) == (low, high):
        return None
    number = (
        f"{len(table.seconds)}" if expected_seconds is None else f"{len(table.seconds)} of {expected_seconds}"
    )
    lines = f"the file has {number} lines, each for one second"
    if table.whole is not None:
        whole = "the figures are from the last line (RTS), which covers every second"
        detail = f"{lines}; {whole}, and rtgauge computes the number of samples from the time in that line"
        return ImportMarkKind.SECONDS_MISSING.mark(detail, severity=Severity.NOTE)
    beyond = f"{lines}, but no RTS line, and these lines do not contain the overall extremes"
    return ImportMarkKind.SECONDS_MISSING.mark(
        f"{beyond}; the mean and count of the other seconds are unknown"
    )


def _count(table: LatencyTable, source: str) -> int:
    """Return the total number of samples. Raises InputError if it is unknown."""
    if not table.seconds and table.samples:  # -q -s
        return table.samples
    of_lines = sum(second.count for second in table.seconds)
    only = f"{source} has only the last line (RTS) of {table.tool[1]}"
    if table.period_us is None:
        raise InputError(
            f"{only}; give the period with --interval, so that rtgauge can compute the number of samples"
        )
    of_time = (table.duration_ns or 0) // (table.period_us * 1000)
    if not of_lines and not of_time:
        raise InputError(f"{only}, which covers less than a second, so the number of samples is unknown")
    if table.duration_ns is None or len(table.seconds) >= table.duration_ns // NS_PER_S - 1 > 0:
        return of_lines
    return max(of_lines, of_time)


def parse_screen(
    numbered: Iterable[tuple[int, str]], source: str, interval_ns: int | None = None
) -> list[Measurement]:
    """Parse the screen output of latency or latmus, with a measurement for each run.

    `interval_ns`: the period, if the text lacks it. Raises InputError for foreign or damaged text.
    """
    return [_measurement(table, source, interval_ns) for table in read_tables(numbered, source)]


def _measurement(table: LatencyTable, source: str, interval_ns: int | None) -> Measurement:
    tool_known = table.evl or table.period_us
    if table.period_us is None and interval_ns is not None:
        table.period_us = max(interval_ns // 1000, 1)
    series, resolution, marks = table_series(table, source)
    if not tool_known:
        assumed = (
            "Xenomai's latency and EVL's latmus print the same line; rtgauge assumes that this one is from "
            "latency"
        )
        marks.append(ImportMarkKind.TOOL_ASSUMED.mark(assumed))
    return Measurement(
        tool=table.tool[0],
        source=source,
        version="2" if table.xenomai_2 else None,
        series=[series],
        resolution_ns=resolution,
        parameters={**table.space, **({} if table.priority is None else {"priority": table.priority})},
        marks=marks,
        duration_ns=table.duration_ns or len(table.seconds) * NS_PER_S or None,
        counts_missed=table.overruns == 0,
    )
