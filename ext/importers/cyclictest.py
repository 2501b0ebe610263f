# SPDX-License-Identifier: MIT
"""Reads the text output of cyclictest, cyclicdeadline and signaltest. rt_tests.py reads their JSON.

The text (-h, -H, --histfile, -v, and lines `T: 0 (...)`) differs between versions and options. In a row, all
separators are spaces, or all but the first are tabs. With two threads or more, -H adds a last column to the
rows and to Total, Max and Overflows, but not to Min and Avg. Rows without samples and `Total:` may be
missing. A list of overflow cycles may end in `# 00128 others`. Without -q, the lines are repeated after
cursor movements. -v prints one line per sample: thread, cycle, latency. Only the widths in a `T:` line show
whether -N was given: Act and Avg have %8ld in ns, %5ld in us. signaltest's `T:` lines have no interval.

A file can hold several runs, for example a log to which each run appends. A new run begins if a counter
restarts, if a thread's id changes, or at a line that each run prints only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.marks import MarkKind, Severity
from rtgauge.record.model import OVERFLOW_CYCLES, Mark, Result
from rtgauge.units import format_time, plural
from rtgauge_ext.importers.foreign_file import lines
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, check_runs

DEFAULT_INTERVAL_US = 1000
DEFAULT_DISTANCE_US = 500


def _number(command: str, short: str, long: str) -> int | None:
    """Return the value of an option in any form: -i200, -i 200, -mqi200, --interval=200, --interval 200."""
    match = re.search(rf"(?:^|\s)(?:-[A-Za-z]*{short}\s*|--{long}[=\s]\s*)([0-9]{{1,12}})(?=\s|$)", command)
    return int(match[1]) if match else None


def _has(command: str, short: str, long: str) -> bool:
    return re.search(rf"(?:^|\s)(?:-[A-Za-z]*{short}|--{long})", command) is not None


def interval_us(command: str, thread: int) -> int | None:
    """Return the interval (us) of a thread from the command line: the base interval or, without a histogram,
    the base interval plus `thread` times the distance.

    None with -r, -s or -x: cyclictest then uses no absolute release times, so it misses no activation.
    """
    relative = (("r", "relative"), ("s", "system"), ("x", "posix_timers"))
    if any(_has(command, short, long) for short, long in relative):
        return None
    base = _number(command, "i", "interval") or DEFAULT_INTERVAL_US
    if histogram_limit(command) is not None:
        return base
    distance = _number(command, "d", "distance")
    return base + thread * (DEFAULT_DISTANCE_US if distance is None else distance)


def histogram_limit(command: str) -> int | None:
    """Return the first value above the histogram; None if there is neither -h nor -H."""
    sizes = [_number(command, "h", "histogram"), _number(command, "H", "histofall")]
    return next((size for size in sizes if size), None)


def break_limit(command: str) -> int | None:
    """Return the latency at which cyclictest stops (-b); None without -b."""
    return _number(command, "b", "breaktrace") or None


def scheduling(command: str) -> dict[str, Any]:
    """Return the scheduling parameters in a cyclictest command line (SCHED_OTHER without -p)."""
    priority = _number(command, "p", "(?:priority|prio)") or 0
    policy = re.search(r"--policy[=\s]\s*([a-z]{1,10})", command)
    free = re.search(r"(?:^|\s)--laptop(?=\s|$)", command) is not None
    held = re.search(r"--latency[=\s]\s*([0-9]{1,9})", command)
    return {
        "priority": priority,
        "policy": policy[1] if policy else "fifo" if priority else "other",
        "dma_latency_us": "off" if free else int(held[1]) if held else 0,
    }


_ROW = re.compile(r"([0-9]{1,12})((?:[ \t]+[0-9]{1,18})+)")
_FIGURE = re.compile(
    r"#\s*(Total|Min Latencies|Avg Latencies|Max Latencies|Histogram "
    r"Overflows|SMIs)\s*:((?:\s+-?[0-9]{1,18})*)$"
)
_CYCLES = re.compile(r"#\s*Thread\s+([0-9]{1,6})\s*:((?:\s+[0-9]{1,12})*)(?:\s*#\s*([0-9]{1,12})\s+others)?")
_LIVE = re.compile(
    r"T:\s*([0-9]{1,6})\s*\(\s*([0-9]{1,12})\)\s*(?:P:\s*([0-9]{1,3})\s*)?(?:I:\s*([0-9]{1,12})\s*)?C:\s*([0-9]{1,18})"
    r"\s*Min:\s*(-?[0-9]{1,18})\s*Act:\s*-?[0-9]{1,18}\s*Avg:\s*(-?(?:[0-9]{1,18}|nan))\s*Max:\s*(-?[0-9]{1,18})"
)
_THREAD = re.compile(r"T:\s*([0-9]{1,6})\s*\(\s*[0-9]{1,12}\)\s*[PI]:")
_WIDTHS = re.compile(r"Act:( *-?[0-9]{1,18}) Avg:( *-?[0-9]{1,18}) Max:")
_SMI = re.compile(r"SMI: *([0-9]{1,18})")
_BREAK = re.compile(r"# Break (thread|value): ([0-9]{1,18})")
LEAST_PLAUSIBLE = 1000
"""A minimum that would be at least this many us shows that the values are in ns."""
_SAMPLE = re.compile(r"([0-9]{1,6}):\s*([0-9]{1,15}):\s*(-?[0-9]{1,12})")
_DMA = re.compile(r"#\s*/dev/cpu_dma_latency set to ([0-9]{1,9})\s*us")
_LINE_NUMBER = re.compile(r"[0-9]{1,5}[:.)|]?[ \t]+(?=[0-9]{6,}[ \t])")
"""The number of a line before a row of a histogram, whose values have six digits or more."""
_RECOGNISED = re.compile(
    r"^[ \t]*+(?:#[ \t]*+(?:Histogram[ \t]*+$|Total:|Min Latencies:|Max Latencies:|Histogram "
    r"Overflows)|[0-9]{1,6}:[ \t]+[0-9]{1,15}:[ \t]+-?[0-9]+[ \t]*+$"
    r"|(?:[0-9]{1,5}[:.)|]?[ \t]++)?[0-9]{6} [0-9]{6}(?:[ \t][0-9]{6,})*+[ \t]*+$)"
    r"|\bT:[ \t]*+[0-9]++[ \t]*+\([ \t]*+[0-9]++\)[ \t]*+[PI]:",
    re.MULTILINE,
)


@dataclass
class _Samples:
    """The samples of one thread that -v printed: latency -> count, and the range of cycles."""

    histogram: dict[int, int]
    first: int
    last: int


def _unit_of(field: str) -> int | None:
    """Return the unit (ns) of a field written with %5ld or %8ld; None if both are possible."""
    padded = field.startswith(" ")
    if len(field) == 5 or (len(field) in {6, 7} and not padded):
        return 1000
    return 1 if len(field) == 8 else None


@dataclass
class _Live:
    """The figures in a `T:` line. `interval_us`: None if it has none (signaltest)."""

    task: int
    priority: int
    interval_us: int | None
    cycles: int
    minimum: int
    average: int
    maximum: int

    @property
    def interval_ns(self) -> int | None:
        """The interval of the thread."""
        return None if self.interval_us is None else self.interval_us * 1000

    def continues(self, earlier: _Live) -> bool:
        """Return whether this line can follow `earlier` in the same run."""
        # A thread that has not started has the id 0.
        same = earlier.task in {0, self.task} and self.priority == earlier.priority
        same = same and self.interval_us == earlier.interval_us
        wider = not earlier.cycles or (self.minimum <= earlier.minimum and self.maximum >= earlier.maximum)
        return same and wider and self.cycles >= earlier.cycles


class ScreenText:
    """Parses the lines of one run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[int, list[int]] = {}
        self.figures: dict[str, list[int]] = {}
        self.cycle_lists: dict[int, tuple[list[int], int]] = {}
        """Thread -> the listed cycles with a latency above the histogram, and the number of further cycles.
        """
        self.live: dict[int, _Live] = {}
        self.unreadable: dict[int, str] = {}
        """Thread -> a `T:` line of it that cannot be read, because it is cut off or mixed with other text."""
        self.samples: dict[int, _Samples] = {}
        self.smi: dict[int, int] = {}
        """Thread -> its count of system management interrupts (--smi)."""
        self.stopped_by: int | None = None
        """The latency that stopped cyclictest (-b)."""
        self.units_ns: set[int] = set()
        """Units (ns) found from the field widths of the `T:` lines."""
        self.dma_latency_us: int | None = None
        self.tool = "cyclictest"
        """The program that prints `T:` lines of this form."""

    def damaged(self, problem: str) -> InputError:
        """Make the error that reports this problem."""
        return InputError(f"{self.name} is a damaged cyclictest file: {problem}")

    @property
    def _ended(self) -> bool:
        """Whether the figures below the histogram, which end a run, have begun."""
        return bool(self.figures)

    def take(self, number: int, line: str) -> bool:
        """Parse a non-empty line without surrounding spaces. Return False if it begins another run."""
        if line[0].isdigit():
            return self._take_numbers(number, line)
        if line[0] == "#":
            return self._take_figures(line)
        return "T:" not in line or self.take_live(line)

    def take_live(self, line: str) -> bool:
        """Parse a `T:` line, which may follow other text, and ignore any other line. Return False if it
        begins another run.
        """
        match = _LIVE.search(line)
        if match is None:
            if begun := _THREAD.search(line):
                self.unreadable[int(begun[1])] = line
            return True
        thread, interval = int(match[1]), None if match[4] is None else int(match[4])
        # The average of no cycle may be -nan.
        task, priority, *figures = (
            0 if (text := match[group] or "0").endswith("nan") else int(text) for group in (2, 3, 5, 6, 7, 8)
        )
        live = _Live(task, priority, interval, *figures)
        earlier = self.live.get(thread)
        if self.samples or self._ended or (earlier is not None and not live.continues(earlier)):
            return False
        self.live[thread] = live
        self.tool = (
            "signaltest" if interval is None else "cyclicdeadline" if match[3] is None else "cyclictest"
        )
        if widths := _WIDTHS.search(line):
            units = map(_unit_of, widths.groups())
            self.units_ns |= {unit for unit in units if unit is not None}
        if smi := _SMI.search(line, match.end()):
            self.smi[thread] = int(smi[1])
        return True

    def goes_on(self, earlier: ScreenText) -> bool:
        """Return whether a thread has more cycles than the same thread of an earlier run, which it can
        continue.
        """
        both = ((live, earlier.live[thread]) for thread, live in self.live.items() if thread in earlier.live)
        return any(live.continues(before) and live.cycles > before.cycles for live, before in both)

    def _take_numbers(self, number: int, line: str) -> bool:
        """Parse a sample of -v, or a row of a histogram. Return False if it begins another run."""
        if ":" in line and (match := _SAMPLE.fullmatch(line)):
            return self.sample(int(match[1]), int(match[2]), int(match[3]))
        if numbered := _LINE_NUMBER.match(line):
            line = line[numbered.end() :]
        if match := _ROW.fullmatch(line):
            if self._ended:
                return False
            value = int(match[1])
            if self.rows and value <= next(reversed(self.rows)):
                raise self.damaged(
                    f"in line {number}, row {value} comes after row {next(reversed(self.rows))}"
                )
            self.rows[value] = [int(part) for part in match[2].split()]
        elif "T:" in line:
            return self.take_live(line)
        elif self.rows and not self._ended:
            raise self.damaged(f"line {number} is not a row of a histogram: '{line[:40]}'")
        return True

    def _take_figures(self, line: str) -> bool:
        """Parse a line that begins with `#`. Return False if it begins another run."""
        if match := _FIGURE.match(line):
            if match[1] in self.figures:
                return False
            self.figures[match[1]] = [int(part) for part in match[2].split()]
            if match[1] == "SMIs":
                self.smi = dict(enumerate(self.figures.pop("SMIs")))
        elif match := _BREAK.match(line):
            self.stopped_by = int(match[2]) if match[1] == "value" else self.stopped_by
        elif match := _CYCLES.match(line):
            self.cycle_lists[int(match[1])] = [int(cycle) for cycle in match[2].split()], int(match[3] or 0)
        elif match := _DMA.match(line):
            if self.live or self.samples or self.rows or self.figures:
                return False
            self.dma_latency_us = int(match[1])
        return True

    def sample(self, thread: int, cycle: int, latency: int) -> bool:
        """Add one sample of -v. Return False if it begins another run."""
        samples = self.samples.get(thread)
        if samples is None:
            if self.live or self._ended:
                return False
            self.samples[thread] = _Samples({latency: 1}, cycle, cycle)
            return True
        if cycle <= samples.last:
            return False
        samples.histogram[latency] = samples.histogram.get(latency, 0) + 1
        samples.last = cycle
        return True

    def check_threads(self) -> None:
        """Raise InputError if a thread has no `T:` line that can be read: its latencies are unknown."""
        every = self.unreadable.keys() | set(range(max(self.live) + 1))
        if lost := every - self.live.keys():
            thread = min(lost)
            line = self.unreadable.get(thread)
            why = "has no line" if line is None else f"has a line that cannot be read: '{line[:60]}'"
            raise self.damaged(f"thread {thread} {why}")

    def thread_count(self) -> int:
        """Return the number of threads, from lines with an entry for each, or from the columns without the
        sum.
        """
        if "Min Latencies" in self.figures:
            return len(self.figures["Min Latencies"])
        if self.cycle_lists or self.live:
            return max(self.cycle_lists.keys() | self.live.keys()) + 1
        if not self.rows:
            return len(next(iter(self.figures.values())))
        width = max(len(row) for row in self.rows.values())
        summed = all(len(row) < width or row[-1] == sum(row[:-1]) for row in self.rows.values())
        return width - 1 if width >= 3 and summed else width

    def column(self, name: str, threads: int) -> list[int] | None:
        """Return one value for each thread. An extra last value for all threads is dropped."""
        values = self.figures.get(name)
        if values is None:
            return None
        if len(values) not in {threads, threads + 1}:
            raise self.damaged(f"'{name}' has {len(values)} values for {threads} threads")
        return values[:threads]


def _histograms(text: ScreenText, threads: int) -> list[dict[int, int]]:
    result: list[dict[int, int]] = [{} for _ in range(threads)]
    for value, row in text.rows.items():
        if len(row) not in {threads, threads + 1}:
            raise text.damaged(f"row {value} has {len(row)} columns for {threads} threads")
        if len(row) == threads + 1 and row[-1] != sum(row[:-1]):
            raise text.damaged(f"the last column of row {value} is not the sum of the others")
        for thread in range(threads):
            if row[thread]:
                result[thread][value] = row[thread]
    totals = text.column("Total", threads)
    for thread, total in enumerate(totals or []):
        samples = sum(result[thread].values())
        if text.rows and samples != total:
            raise text.damaged(
                f"the rows of thread {thread} hold {samples} samples, but 'Total' says {total}"
            )
    return result


def _with_histogram(text: ScreenText, unit_ns: int) -> list[ImportedSeries]:
    """Return the series of a histogram, or of its figures if the rows are missing (`grep '^#'`)."""
    threads = text.thread_count()
    minima, maxima = text.column("Min Latencies", threads), text.column("Max Latencies", threads)
    overflows, averages = text.column("Histogram Overflows", threads), text.column("Avg Latencies", threads)
    totals = text.column("Total", threads)
    if maxima is None or overflows is None:
        absent = "Max Latencies" if maxima is None else "Histogram Overflows"
        raise text.damaged(f"the line '# {absent}:' is missing; is the file cut short?")
    if not text.rows and totals is None:
        raise text.damaged("it has neither the rows of a histogram nor '# Total:'")
    limit = (max(text.rows) + 1) * unit_ns if text.rows else None
    result: list[ImportedSeries] = []
    for number, histogram in enumerate(_histograms(text, threads)):
        binned = sum(histogram.values())
        overflow = overflows[number] + (0 if text.rows or totals is None else totals[number])
        count = binned + overflow
        live = text.live.get(number)
        minimum = min(histogram, default=None) if minima is None else minima[number]
        result.append(
            ImportedSeries(
                labels={"thread": number},
                histogram={value * unit_ns: samples for value, samples in histogram.items()},
                count=count,
                overflow=overflow,
                limit_ns=limit,
                minimum_ns=None if minimum is None else minimum * unit_ns,
                maximum_ns=maxima[number] * unit_ns,
                average_ns=None if averages is None else Fraction(averages[number] * unit_ns),
                interval_ns=None if live is None else live.interval_ns,
            )
        )
        if live is not None and (
            live.cycles > count
            or live.maximum > maxima[number]
            or (live.cycles and live.minimum < (minimum or 0))
        ):
            raise text.damaged(
                f"the histogram of thread {number} contradicts its line 'T:'; does the file have two "
                "measurements?"
            )
    return result


def live_series(text: ScreenText, unit_ns: int) -> list[ImportedSeries]:
    """Make a series of each thread from its `T:` lines, with the number of samples and the extremes.

    Raises InputError for a negative latency.
    """
    result: list[ImportedSeries] = []
    for number, live in sorted(text.live.items()):
        if live.cycles and live.minimum < 0:
            raise text.damaged(f"thread {number} has a negative latency ({live.minimum})")
        result.append(
            ImportedSeries(
                labels={"thread": number},
                count=live.cycles,
                overflow=live.cycles,
                minimum_ns=live.minimum * unit_ns,
                maximum_ns=live.maximum * unit_ns,
                average_ns=Fraction(live.average * unit_ns),
                interval_ns=live.interval_ns,
            )
        )
    return result


def _verbose(text: ScreenText, unit_ns: int) -> tuple[list[ImportedSeries], list[Mark]]:
    series: list[ImportedSeries] = []
    lost = 0
    for number, samples in sorted(text.samples.items()):
        count = sum(samples.histogram.values())
        lost += max(samples.last - samples.first + 1 - count, 0)
        if min(samples.histogram) < 0:
            raise text.damaged(f"thread {number} has a negative latency ({min(samples.histogram)})")
        series.append(
            ImportedSeries(
                labels={"thread": number},
                histogram={value * unit_ns: samples.histogram[value] for value in sorted(samples.histogram)},
                count=count,
                minimum_ns=min(samples.histogram) * unit_ns,
                maximum_ns=max(samples.histogram) * unit_ns,
            )
        )
    if not lost:
        return series, []
    detail = f"the file lacks {plural(lost, 'cycle')}, according to the numbers that cyclictest -v prints"
    return series, [MarkKind.SAMPLES_LOST.mark(detail, severity=Severity.DOUBTFUL)]


def stopped(tool: str, value_ns: int | None) -> Mark:
    """Return the mark of a measurement that stopped at a latency above a limit (cyclictest's -b)."""
    latency = "a latency" if value_ns is None else f"a latency of {format_time(value_ns)}"
    why = f"{tool} stopped at {latency}, which exceeded its limit (-b), so the maximum depends on this limit"
    return ImportMarkKind.STOPPED_AT_THRESHOLD.mark(why)


def smi_results(counts: Mapping[int, int]) -> list[Result]:
    """Return results with the system management interrupts of each thread, which --smi counted."""
    return [
        Result(name="smi", labels={"thread": thread}, values={"smi": count})
        for thread, count in sorted(counts.items())
    ]


def _overflow_cycles(text: ScreenText) -> list[Result]:
    """Return results with the cycles in which a thread exceeded the histogram, and their times."""
    results: list[Result] = []
    for thread, (cycles, others) in sorted(text.cycle_lists.items()):
        if cycles:
            result = Result(name=OVERFLOW_CYCLES, labels={"thread": thread}, values={})
            result.values["cycles"] = " ".join(map(str, cycles))
            result.values["others"] = others
            result.values["interval_ns"] = text.live[thread].interval_ns if thread in text.live else None
            results.append(result)
    return results


def _runs(numbered: Iterable[tuple[int, str]], name: str) -> list[ScreenText]:
    """Parse the lines of each run. Raises InputError if they are damaged."""
    runs = [ScreenText(name)]
    for number, line in numbered:
        stripped = line.strip()
        if not stripped or runs[-1].take(number, stripped):
            continue
        runs.append(ScreenText(name))
        check_runs(len(runs), name)
        runs[-1].take(number, stripped)
        if len(runs) > 2 and runs[-1].goes_on(runs[-3]):
            raise InputError(
                f"line {number} of {name} continues an earlier run; the lines of two runs are mixed"
            )
    return runs


def _measurement(text: ScreenText, unit_ns: int | None) -> Measurement:
    """Make the measurement of a run; see `parse_text`."""
    name = text.name
    known_unit = text.units_ns.pop() if unit_ns is None and len(text.units_ns) == 1 else unit_ns
    unit = known_unit or 1000
    marks: list[Mark] = []
    if text.rows or "Histogram Overflows" in text.figures:
        series = _with_histogram(text, unit)
    elif text.samples:
        series, marks = _verbose(text, unit)
    elif text.live:
        text.check_threads()
        series = live_series(text, unit)
    else:
        neither = "it has neither a histogram (-h, -H, --histfile) nor lines 'T: 0 ...'"
        raise InputError(f"{name} is not output of cyclictest: {neither}")
    least = min((part.minimum_ns for part in series if part.minimum_ns is not None), default=0)
    if unit_ns is None and unit == 1000 and least >= LEAST_PLAUSIBLE * 1000:
        raise InputError(
            f"the unit of {name} is unclear: its smallest latency is {least // 1000}, which in us would be "
            f"{format_time(least)}; if the file is in ns (-N), give --ns, otherwise --us"
        )
    if text.stopped_by is not None:
        marks.append(stopped("cyclictest", text.stopped_by * unit))
    parameters: dict[str, Any] = {}
    if text.dma_latency_us is not None:
        parameters["dma_latency_us"] = text.dma_latency_us
    if text.tool == "cyclicdeadline":
        parameters["policy"] = "deadline"
    elif text.live:
        parameters["priority"] = min(live.priority for live in text.live.values())
    return Measurement(
        tool=text.tool,
        probe="signaltest" if text.tool == "signaltest" else "wakeup",
        source=name,
        series=series,
        resolution_ns=unit,
        unit_known=known_unit is not None,
        parameters=parameters,
        marks=marks,
        results=[*_overflow_cycles(text), *smi_results(text.smi)],
        average_is_cut=True,
        releases=text.tool == "cyclictest",
    )


def parse_text(
    numbered: Iterable[tuple[int, str]], name: str, *, unit_ns: int | None = None
) -> list[Measurement]:
    """Parse the lines of the file `name`, which can hold several runs.

    `unit_ns` (1 with -N, else 1000) comes from the user, else from the field widths, else it is 1000. Raises
    InputError if the text is damaged or not cyclictest's, or if `unit_ns` contradicts it.
    """
    return [_measurement(text, unit_ns) for text in _runs(numbered, name)]


CYCLICTEST = Importer(
    "cyclictest",
    "the text from -h, -H, --histfile or -v, or what the screen shows; for signaltest, what the screen shows",
    lambda head: _RECOGNISED.search(head) is not None,
    lambda path, hints: parse_text(lines(path), str(path), unit_ns=hints.unit_ns),
    by_shape=True,
)
