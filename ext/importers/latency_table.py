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
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge.record.marks import MarkKind, Severity
from rtgauge.record.model import Mark
from rtgauge.units import NS_PER_S, plural
from rtgauge_ext.importers.foreign_file import clock_ns, damaged, lines
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Hints, Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, Second, check_runs, last_bin_mark

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
EVL_CONTEXTS = {"irq", "sirq", "kernel", "user", "oob-gpio", "inband-gpio"}
SPACES = {
    "user": {"space": "user"},
    "irq": {"space": "kernel", "context": "irq"},
    "handler": {"space": "kernel", "context": "irq"},
    "kernel": {"space": "kernel", "context": "thread"},
}
"""A part of a tool's words for its task -> the parameters `space` and `context`. latency: "periodic user-mode
task", "in-kernel periodic task", "in-kernel timer handler". latmus: "user", "kernel", "irq".
"""
WIDTH_NS = 1000
"""The width of a histogram's cells."""


@dataclass
class LatencyTable:
    """The lines of one run.

    `histogram`: cell (us) -> samples, of the series "avg", which has every sample.
    """

    space: dict[str, str] = field(default_factory=lambda: SPACES["user"])
    """The parameters in SPACES; empty if the tool's words are unknown."""
    period_us: int | None = None
    priority: int | None = None
    cpu: int | None = None
    seconds: list[Second] = field(default_factory=list[Second])
    extremes: tuple[int, int] | None = None
    """Minimum and maximum (ns) since the start, from the last RTD line."""
    overruns: int = 0
    switches: int = 0
    histogram: dict[int, int] = field(default_factory=dict[int, int])
    whole: Second | None = None
    """The figures of the RTS line, which sums up the whole measurement. Its count is 0."""
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
    def program(self) -> str:
        """The name of the program that printed the table."""
        return "latmus" if self.evl else "latency"

    def begins_next(self, text: str) -> bool:
        """Return whether this line begins another table."""
        if self.whole is not None:
            return text.startswith(("RTT|", "RTD|", "RTS|", "HSD|", "== "))
        if not self.seconds:
            return False
        if match := _RTT.match(text):
            later = clock_ns(*match[1].split(":")) > self.elapsed_ns
            return not later or bool(self.heading and match.groups("")[1:] != self.heading)
        if (match := _RTD.match(text)) and self.extremes is not None:
            low, high = self.extremes
            return _ns(match[6]) > low or _ns(match[7]) < high or int(match[4]) < self.overruns
        return _PERIOD.match(text) is not None or text.startswith("== latmus")

    def take(self, number: int, text: str, source: str) -> None:
        """Parse a line. Raises InputError if it is damaged."""
        if match := _RTT.match(text):
            self.space, self.period_us = space_of(match[2]), int(match[3]) or None
            self.evl = self.evl or match[5] is not None or match[2].strip() in EVL_CONTEXTS
            self.priority = int(match[4]) if match[4] else None
            self.cpu = int(match[5]) if match[5] else None
            self.heading, self.elapsed_ns = match.groups("")[1:], clock_ns(*match[1].split(":"))
        elif match := _PERIOD.match(text):
            self.period_us = int(match[1]) or None
        elif match := _MODE.match(text):
            self.space = space_of(match[1])
        elif text.startswith("== latmus"):
            self.evl = True
        elif match := _RTD.match(text):
            self._take_second(match, number, source)
        elif (match := _HSD.match(text)) and match[1] == "avg":
            self.histogram[int(match[2])] = int(match[4])
        elif (match := _HSS.match(text)) and match[1] == "avg":
            self.samples = int(match[2])
        elif match := _RTS.match(text):
            self.whole = _figures(match, 0)
            self._take_counters(match)
            self.duration_ns = clock_ns(match[6], match[7], match[8])
        elif text.startswith(("RTD|", "RTS|", "HSD|")) and not _HSD.match(text):
            raise damaged(source, f"line {number}: '{text[:60]}'")

    def _take_second(self, match: re.Match[str], number: int, source: str) -> None:
        if self.period_us is None:
            raise damaged(source, f"an RTT line is missing before line {number}")
        second = _figures(match, max(10**6 // self.period_us, 1))
        if second.minimum_ns > second.maximum_ns:
            minimum, maximum = f"the minimum ({match[1]})", f"the maximum ({match[3]})"
            raise damaged(source, f"in line {number} {minimum} is larger than {maximum}")
        if len(self.seconds) >= MAX_SECONDS:
            raise InputError(f"{source} has more than {MAX_SECONDS} lines of figures")
        self.seconds.append(second)
        self._take_counters(match)
        self.extremes = _ns(match[6]), _ns(match[7])

    def _take_counters(self, match: re.Match[str]) -> None:
        """Both counters are cumulative."""
        self.overruns, self.switches = int(match[4]), int(match[5] or 0)
        self.xenomai_2 = match[5] is None


def _ns(text: str) -> int:
    return round(Fraction(text) * 1000)


def _figures(match: re.Match[str], count: int) -> Second:
    return Second(
        count=count,
        minimum_ns=_ns(match[1]),
        average_ns=Fraction(match[2]) * 1000,
        maximum_ns=_ns(match[3]),
    )


def space_of(words: str) -> dict[str, str]:
    """Return the parameters in SPACES for a tool's words for its task; empty if they are unknown."""
    for part, space in SPACES.items():
        if part in words.lower():
            return space
    return {}


def overruns_mark(program: str, overruns: int) -> Mark:
    """Make the mark of a program that counted missed activations."""
    how_late = "it is unknown how late they would have been"
    return ImportMarkKind.OVERRUNS.mark(
        f"{program} reports {plural(overruns, 'overrun')} (missed activations); {how_late}"
    )


def _series(table: LatencyTable, source: str, marks: list[Mark]) -> ImportedSeries:
    """Make the series of a table, and add a mark for each doubt. Raises InputError without figures."""
    if table.overruns:
        marks.append(overruns_mark(table.program, table.overruns))
    if table.switches:
        switches = f"{table.program} reports {table.switches} switches to Linux"
        marks.append(MarkKind.MODE_SWITCHES.mark(f"{switches}, during which the task was not real-time"))
    parts = [*table.seconds, *([] if table.whole is None else [table.whole])]
    if not parts:
        raise InputError(f"{source} has no line with figures (RTD, RTS)")
    so_far = [] if table.extremes is None else [table.extremes]
    low = min([*(part.minimum_ns for part in parts), *(least for least, _ in so_far)])
    high = max([*(part.maximum_ns for part in parts), *(largest for _, largest in so_far)])
    if low > high:
        raise damaged(source, f"its minimum, {low} ns, is larger than its maximum, {high} ns")
    with_figures = _with_histogram if table.histogram else _of_seconds
    return replace(
        with_figures(table, low, high, source, marks),
        labels={"thread": 0} if table.cpu is None else {"cpu": table.cpu},
        interval_ns=None if table.period_us is None else table.period_us * 1000,
    )


def _with_histogram(
    table: LatencyTable, low: int, high: int, source: str, marks: list[Mark]
) -> ImportedSeries:
    """Make the series of a histogram (-h)."""
    histogram = {cell * WIDTH_NS: samples for cell, samples in sorted(table.histogram.items())}
    count = sum(histogram.values())
    if table.samples is not None and table.samples != count:
        raise damaged(source, f"its histogram has {count} samples, but its summary says {table.samples}")
    detail = "rtgauge assumes bins of 1 us, because the text does not give their width (-B)"
    marks.append(ImportMarkKind.BINS_ASSUMED.mark(detail))
    last, overflow = max(histogram), 0
    if max(high, -low) >= last + WIDTH_NS:
        overflow = histogram.pop(last)
        clipped = f"{table.program}'s last bin also counts every larger latency"
        marks.append(last_bin_mark(clipped, overflow, f"{last // WIDTH_NS} us"))
    if low < 0:
        early = f"some activations were early (down to {low} ns)"
        signs = f"{table.program}'s histogram drops the sign of latencies, and {early}"
        marks.append(ImportMarkKind.SIGN_LOST.mark(signs))
    low, high = extremes(table.program, histogram, (low, high), WIDTH_NS, marks)
    return ImportedSeries(
        labels={},
        histogram=histogram,
        count=count,
        overflow=overflow,
        limit_ns=last if overflow else None,
        minimum_ns=low,
        maximum_ns=high,
        average_ns=None if table.whole is None else table.whole.average_ns,
        finer_average=True,
        absolute=low < 0,
    )


def extremes(
    program: str, histogram: Mapping[int, int], printed_ns: tuple[int, int], width_ns: int, marks: list[Mark]
) -> tuple[int, int]:
    """Return the minimum and maximum (ns) of a histogram (start of a cell in ns -> samples), whose tool
    prints extremes (`printed_ns`) only for whole seconds.

    The histogram includes the last, unfinished second. For a value beyond the printed extremes, only the
    start of its cell, which is `width_ns` wide, is known, and the extremes get a mark.
    """
    low, high = printed_ns
    first, last = min(histogram, default=low), max(histogram, default=high)
    # The histogram has no signs.
    low_is_least, high_is_largest = low < 0 or first + width_ns > low, last <= max(high, -low)
    if low_is_least and high_is_largest:
        return low, high
    whole = f"the extremes and average that {program} prints cover only whole seconds"
    also = f"but its histogram includes the unfinished last second, and ranges from {first} to {last} ns"
    in_bins = f"in bins of {width_ns} ns"
    marks.append(ImportMarkKind.EXTREMES_OF_WHOLE_SECONDS.mark(f"{whole}, {also}, {in_bins}"))
    return low if low_is_least else first, high if high_is_largest else last


def _of_seconds(table: LatencyTable, low: int, high: int, source: str, marks: list[Mark]) -> ImportedSeries:
    """Make the series of a table without a histogram."""
    if low < 0:
        why = f"because {table.program} sets its timer early by a constant"
        marks.append(MarkKind.EARLY.mark(f"some activations were up to {-low} ns early, {why}"))
    count, seconds = _count(table, source), table.seconds
    if (missing := _missing(table, low, high)) is not None:
        marks.append(missing)
        seconds = []
    return ImportedSeries(
        labels={},
        count=count,
        overflow=count,
        minimum_ns=low,
        maximum_ns=high,
        average_ns=table.whole.average_ns if table.whole is not None and not seconds else None,
        seconds=seconds,
    )


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
    only = f"{source} has only the last line (RTS) of {table.program}"
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
    tables = [LatencyTable()]
    for number, line in numbered:
        text = line.strip()
        if tables[-1].begins_next(text):
            tables.append(LatencyTable())
            check_runs(len(tables), source)
        tables[-1].take(number, text, source)
    return [_measurement(table, source, interval_ns) for table in tables]


def _measurement(table: LatencyTable, source: str, interval_ns: int | None) -> Measurement:
    tool_known = table.evl or table.period_us
    if table.period_us is None and interval_ns is not None:
        table.period_us = max(interval_ns // 1000, 1)
    marks: list[Mark] = []
    series = _series(table, source, marks)
    if not tool_known:
        marks.append(ImportMarkKind.TOOL_ASSUMED.mark())
    return Measurement(
        tool="evl latmus" if table.evl else "xenomai latency",
        source=source,
        version="2" if table.xenomai_2 else None,
        series=[series],
        resolution_ns=WIDTH_NS if table.histogram else 1,
        parameters={**table.space, **({} if table.priority is None else {"priority": table.priority})},
        marks=marks,
        duration_ns=table.duration_ns or len(table.seconds) * NS_PER_S or None,
        counts_missed=table.overruns == 0,
    )


_ROW = re.compile(r"^(RTD|RTT|RTS|HSD)\|", re.MULTILINE)
_CONTEXTS = "|".join(sorted(EVL_CONTEXTS))
_SCREEN_OF_LATMUS = re.compile(
    rf"^RTT\|[^\n(]{{0,40}}\((?:(?:{_CONTEXTS}),|[^\n)]{{0,120}}, CPU[0-9])", re.MULTILINE
)


def _read_latmus(path: Path, hints: Hints) -> list[Measurement]:
    measurements = parse_screen(lines(path), str(path), hints.interval_ns)
    return [replace(measurement, tool="evl latmus") for measurement in measurements]


XENOMAI = Importer(
    "xenomai",
    "latency: what the screen shows, with the histogram (-h)",
    lambda head: _ROW.search(head) is not None and "latmus" not in head,
    lambda path, hints: parse_screen(lines(path), str(path), hints.interval_ns),
    by_shape=True,
)
LATMUS = Importer(
    "latmus",
    "the screen",
    lambda head: bool(_SCREEN_OF_LATMUS.search(head) or ("latmus" in head and _ROW.search(head))),
    _read_latmus,
)
