# SPDX-License-Identifier: MIT
"""Reads the output of RTAI's testsuite: an RTD line in ns each second from latency (printed by its partner
display), and the three last lines of switches.

The period of latency is compiled in, 100 us by default. In RTAI 3.9 to 5.2 latency prints it, in 5.3 display
does. If the text also has a periodic task's line of /proc/rtai/scheduler, this line takes precedence, because
it shows the period in use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from rtgauge.errors import InputError
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Result
from rtgauge.units import NS_PER_S, NS_PER_UNIT, format_duration, plural
from rtgauge_ext.importers.foreign_file import damaged, lines
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, Second

NS_PER_MS = NS_PER_UNIT["ms"]
DEFAULT_PERIOD_NS = 100_000
MAX_SECONDS = 10**6
HIGHEST = 99
"""Linux's highest priority, which stands for RTAI's priority 0."""
_NS = r"\s*(-?[0-9]{1,12})"
_RTD = re.compile(rf"RTD\|{_NS}\|{_NS}\|{_NS}\|{_NS}\|{_NS}\|\s*([0-9]{{1,10}})")
_PERIOD = re.compile(r"(?:#|\*\*\* {3}) period = ([1-9][0-9]{0,9}) \(ns\)")
_AVERAGE = re.compile(r"(?:# |\*\*\* .*, {2})(?:average time|avrgtime) = ([0-9]{1,9}) \(s\)")
"""RTAI 5.1 prints both values in one line, between stars."""
_TASK = re.compile(r"([0-9]{1,10}) +([1-9][0-9]{0,9}) +\S+ +\S+ +0x[0-9a-f]{1,8} .*")
_IN_KERNEL = re.compile(r"RTAI Testsuite - KERNEL (?:space )?latency\b")
_SWITCHES = re.compile(
    r"FOR ([0-9]{1,6}) TASKS: TIME ([0-9]{1,9}) \(ms\), ([A-Z/ -]{1,20}) SWITCHES ([0-9]{1,9}), "
    r"SWITCH TIME(?: \(INCLUDING FULL FP SUPPORT\))? ([0-9]{1,10}) \(ns\)"
)


def parse_rtai_latency(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse the latencies, second by second. Raises InputError if the output is damaged or has no figures."""
    printed_period: int | None = None
    of_scheduler: int | None = None
    parameters: dict[str, str | int] = {"space": "user"}
    rows: list[tuple[int, int, int, int]] = []
    lowest, highest = 10**9, -(10**9)
    for number, line in numbered:
        text = line.strip()
        if match := _PERIOD.match(text):
            printed_period = int(match[1])
        if match := _AVERAGE.match(text):
            if match[1] != "1":
                raise InputError(
                    f"{source} has averages over {match[1]} s; rtgauge reads only averages over 1 s"
                )
        elif match := _TASK.fullmatch(text):
            of_scheduler = int(match[2])
            if int(match[1]) < HIGHEST:
                parameters["priority"] = HIGHEST - int(match[1])
        elif _IN_KERNEL.match(text):
            parameters = {"space": "kernel", "context": "thread"}
        elif match := _RTD.fullmatch(text):
            low, overall_low, average, high, overall_high, overruns = map(int, match.groups())
            lowest, highest = min(lowest, low), max(highest, high)
            fewer = bool(rows) and overruns < rows[-1][3]
            if not low <= average <= high or (overall_low, overall_high) != (lowest, highest) or fewer:
                contradicts = f"'{text[:90]}' contradicts itself or the lines before it"
                raise damaged(source, f"line {number}: {contradicts}")
            if len(rows) >= MAX_SECONDS:
                raise InputError(f"{source} has more than {MAX_SECONDS} lines of figures")
            rows.append((low, average, high, overruns))
        elif text.startswith("RTD|"):
            raise damaged(source, f"line {number}: '{text[:90]}'")
    if not rows:
        raise InputError(f"{source} has no line with figures (RTD)")
    period_ns = of_scheduler or printed_period or DEFAULT_PERIOD_NS
    if period_ns > NS_PER_S:
        longer = (
            f"the period is {format_duration(period_ns)}, but each RTD line covers only 1 s; use a period of "
            f"at most 1 s"
        )
        raise InputError(f"{source}: {longer}")
    count = NS_PER_S // period_ns
    series = ImportedSeries(
        labels={"thread": 0},
        count=count * len(rows),
        overflow=count * len(rows),
        minimum_ns=lowest,
        maximum_ns=highest,
        interval_ns=period_ns,
        seconds=[
            Second(count=count, minimum_ns=low, maximum_ns=high, average_ns=Fraction(average))
            for low, average, high, _ in rows
        ],
    )
    return Measurement(
        tool="rtai latency",
        source=source,
        series=[series],
        resolution_ns=1,
        parameters=parameters,
        marks=_marks(printed_period, of_scheduler, lowest, rows[-1][3]),
        duration_ns=len(rows) * NS_PER_S,
        counts_missed=rows[-1][3] == 0,
    )


def _marks(printed_period: int | None, of_scheduler: int | None, lowest: int, overruns: int) -> list[Mark]:
    marks: list[Mark] = []
    if overruns:
        text = (
            f"RTAI's latency program reports {plural(overruns, 'overrun')} (missed activations) and counts "
            f"each as a latency of 0"
        )
        marks.append(ImportMarkKind.OVERRUNS.mark(text))
    if lowest < 0:
        early = f"some activations were up to {-lowest} ns early"
        marks.append(MarkKind.EARLY.mark(f"{early}, because RTAI's calibration sets its timer early"))
    if printed_period is None and of_scheduler is None:
        assumed = f"rtgauge assumes {format_duration(DEFAULT_PERIOD_NS)} to count the samples"
        detail = (
            "the period is neither in the output of RTAI's latency program nor in RTAI's list of tasks; "
            f"{assumed}"
        )
        marks.append(ImportMarkKind.PERIOD_ASSUMED.mark(detail))
    elif printed_period is not None and of_scheduler is not None and abs(printed_period - of_scheduler) > 1:
        # display prints a constant instead
        printed, used = format_duration(printed_period), format_duration(of_scheduler)
        detail = f"RTAI's latency program prints a period of {printed}, but its task's period is {used}"
        marks.append(ImportMarkKind.PERIOD_OF_THE_TASK.mark(detail))
    return marks


def parse_rtai_switches(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Make a result `rtai-switches` for each kind of switch (label `by`): `tasks`, `switches`, their total
    time (`total_ns`, in whole ms) and the mean time of a switch (`mean_ns`).

    Raises InputError if the output is damaged or has no figures.
    """
    results: list[Result] = []
    for number, line in numbered:
        text = line.strip()
        if match := _SWITCHES.fullmatch(text):
            tasks, total_ms, switches, mean_ns = (int(match[group]) for group in (1, 2, 4, 5))
            total_ns = total_ms * NS_PER_MS
            if total_ns >= (mean_ns + 1) * switches or mean_ns * switches >= total_ns + NS_PER_MS:
                contradicts = f"{switches} switches in {total_ms} ms contradict {mean_ns} ns per switch"
                raise damaged(source, f"line {number}: {contradicts}")
            values = {"tasks": tasks, "switches": switches, "total_ns": total_ns, "mean_ns": mean_ns}
            results.append(Result(name="rtai-switches", labels={"by": match[3].lower()}, values={**values}))
        elif text.startswith("FOR "):
            raise damaged(source, f"line {number}: '{text[:90]}'")
    if not results:
        raise InputError(f"{source} has no figures from RTAI's switches program")
    return Measurement(
        tool="rtai switches", source=source, probe="switch", series=[], resolution_ns=1, results=results
    )


_RECOGNISED = re.compile(
    r"RTAI Testsuite|RTH\|\s*lat min\|\s*ovl min\||"
    r"^[ \t]*+RTD\|(?:[ \t]*+-?[0-9]++\|){5}[ \t]*+[0-9]++[ \t]*+$",
    re.MULTILINE,
)
RTAI = Importer(
    "rtai",
    "latency from RTAI's testsuite: what the screen shows",
    lambda head: _RECOGNISED.search(head) is not None,
    lambda path, _hints: [parse_rtai_latency(lines(path), str(path))],
)
