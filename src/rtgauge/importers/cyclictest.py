# SPDX-License-Identifier: MIT
"""Reads the output of cyclictest.

Text (-h, -H, --histfile, and lines `T: 0 (...)`) differs between versions and options: the first separator of a row is a space and the others are
tabs, or all are spaces; -H adds a last column to the rows and to Total, Max and Overflows, not to Min and Avg, and only with two threads or more; rows
without samples may be missing; `Total:` may be missing; a list of overflow cycles may end in `# 00128 others`; without -q the lines are repeated after
cursor movements.

JSON (--json, file_version 1): the keys `cmdline:` and `rt_test_version:` contain a colon; `resolution_in_ns` 0 means us; overflows are the cycles
that are in no bin."""

from __future__ import annotations

import json
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from fractions import Fraction
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtgauge.errors import InputError
from rtgauge.importers.measurement import Measurement, Thread

DEFAULT_INTERVAL_US = 1000
DEFAULT_DISTANCE_US = 500


def _number(command: str, short: str, long: str) -> int | None:
    """The number of an option: -i200, -i 200, -mqi200, --interval=200, --interval 200."""
    match = re.search(rf"(?:^|\s)(?:-[A-Za-z]*{short}\s*|--{long}[=\s]\s*)([0-9]{{1,12}})(?=\s|$)", command)
    return int(match[1]) if match else None


def _has(command: str, short: str, long: str) -> bool:
    return re.search(rf"(?:^|\s)(?:-[A-Za-z]*{short}|--{long})", command) is not None


def interval_us(command: str, thread: int) -> int | None:
    """The interval of a thread by its command line: the base interval and, without a histogram, `thread` times the distance.

    None if it does not use absolute release times (-r, -s, -x): no activation is missed then.
    """
    if any(_has(command, short, long) for short, long in (("r", "relative"), ("s", "system"), ("x", "posix_timers"))):
        return None
    base = _number(command, "i", "interval") or DEFAULT_INTERVAL_US
    if histogram_limit(command) is not None:
        return base
    distance = _number(command, "d", "distance")
    return base + thread * (DEFAULT_DISTANCE_US if distance is None else distance)


def histogram_limit(command: str) -> int | None:
    """The first value above the histogram; None without -h and -H."""
    sizes = [_number(command, "h", "histogram"), _number(command, "H", "histofall")]
    return next((size for size in sizes if size), None)


def priority(command: str) -> int | None:
    """The priority; None if it is not in the command line."""
    return _number(command, "p", "(?:priority|prio)")


_CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ROW = re.compile(r"([0-9]{1,12})((?:[ \t]+[0-9]{1,18})+)")
_FIGURE = re.compile(r"#\s*(Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows)\s*:((?:\s*-?[0-9]{1,18}\b)*)")
_CYCLES = re.compile(r"#\s*Thread\s+([0-9]{1,6})\s*:")
_LIVE = re.compile(
    r"T:\s*([0-9]{1,6})\s*\(\s*[0-9]+\)\s*P:\s*([0-9]{1,3})\s*I:\s*([0-9]{1,12})\s*C:\s*([0-9]{1,18})"
    r"\s*Min:\s*(-?[0-9]{1,18})\s*Act:\s*-?[0-9]{1,18}\s*Avg:\s*(-?[0-9]{1,18})\s*Max:\s*(-?[0-9]{1,18})"
)


class _Text:
    """The lines of a file, parsed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[int, list[int]] = {}
        self.figures: dict[str, list[int]] = {}
        self.cycle_lists: set[int] = set()
        self.live: dict[int, list[int]] = {}

    def damaged(self, problem: str) -> InputError:
        return InputError(f"{self.name} is a damaged cyclictest file: {problem}")

    def take(self, number: int, line: str) -> None:
        if match := _ROW.fullmatch(line):
            value = int(match[1])
            if self.rows and value <= next(reversed(self.rows)):
                raise self.damaged(f"line {number}: row {value} comes after row {next(reversed(self.rows))}")
            self.rows[value] = [int(part) for part in match[2].split()]
        elif match := _FIGURE.match(line):
            if match[1] in self.figures:
                raise self.damaged(f"line {number}: a second '{match[1]}' (two measurements in one file?)")
            self.figures[match[1]] = [int(part) for part in match[2].split()]
        elif match := _CYCLES.match(line):
            self.cycle_lists.add(int(match[1]))
        elif match := _LIVE.search(line):
            self.live[int(match[1])] = [int(part) for part in match.groups()[1:]]
        elif re.match(r"[0-9]", line):
            raise self.damaged(f"line {number} is not a row of a histogram: '{line[:40]}'")

    def thread_count(self) -> int:
        """The number of threads, from lines with one entry per thread, else from the rows, whose last column may be a sum."""
        if "Min Latencies" in self.figures:
            return len(self.figures["Min Latencies"])
        if self.cycle_lists or self.live:
            return max(self.cycle_lists | set(self.live)) + 1
        width = max(len(row) for row in self.rows.values())
        summed = all(len(row) < width or row[-1] == sum(row[:-1]) for row in self.rows.values())
        return width - 1 if width >= 3 and summed else width

    def column(self, name: str, threads: int) -> list[int] | None:
        """One value per thread; an extra last value for all threads is dropped."""
        values = self.figures.get(name)
        if values is None:
            return None
        if len(values) not in {threads, threads + 1}:
            raise self.damaged(f"'{name}' has {len(values)} values for {threads} threads")
        return values[:threads]


def _histograms(text: _Text, threads: int) -> list[dict[int, int]]:
    result: list[dict[int, int]] = [{} for _ in range(threads)]
    for value, row in text.rows.items():
        if len(row) not in {threads, threads + 1}:
            raise text.damaged(f"row {value} has {len(row)} columns for {threads} threads")
        if len(row) == threads + 1 and row[-1] != sum(row[:-1]):
            raise text.damaged(f"row {value}: its last column is not the sum of the others")
        for thread in range(threads):
            if row[thread]:
                result[thread][value] = row[thread]
    totals = text.column("Total", threads)
    for thread, total in enumerate(totals or []):
        if sum(result[thread].values()) != total:
            raise text.damaged(f"thread {thread}: the rows hold {sum(result[thread].values())} samples and 'Total' says {total}")
    return result


def _with_histogram(text: _Text) -> list[Thread]:
    threads = text.thread_count()
    minima, maxima = text.column("Min Latencies", threads), text.column("Max Latencies", threads)
    overflows, averages = text.column("Histogram Overflows", threads), text.column("Avg Latencies", threads)
    if maxima is None or overflows is None:
        absent = "Max Latencies" if maxima is None else "Histogram Overflows"
        raise text.damaged(f"the line '# {absent}:' is missing; is it cut short?")
    limit = max(text.rows) + 1 if text.rows else None
    result: list[Thread] = []
    for number, histogram in enumerate(_histograms(text, threads)):
        overflow = overflows[number]
        cycles = sum(histogram.values()) + overflow
        live = text.live.get(number)
        minimum = min(histogram, default=None) if minima is None else minima[number]
        result.append(
            Thread(
                number=number,
                cpu=None,
                histogram=histogram,
                cycles=cycles,
                overflow=overflow,
                limit=limit,
                minimum=minimum if cycles else None,
                maximum=maxima[number] if cycles else None,
                average=None if averages is None or not cycles else Fraction(averages[number]),
                interval_us=None if live is None else live[1],
                priority=None if live is None else live[0],
            )
        )
    return result


def _live_only(text: _Text) -> list[Thread]:
    result: list[Thread] = []
    for number, (prio, interval, cycles, minimum, average, maximum) in sorted(text.live.items()):
        known = cycles > 0
        result.append(
            Thread(
                number,
                None,
                {},
                cycles,
                cycles,
                None,
                minimum if known else None,
                maximum if known else None,
                Fraction(average) if known else None,
                interval,
                prio,
            )
        )
    return result


def parse_text(data: str, name: str, *, unit_ns: int | None = None) -> Measurement:
    """The measurement in the text `data` of the file `name`.

    The text does not show whether -N was given: `unit_ns` (1 or 1000) comes from the user, by default 1000. Raises
    InputError if it is not cyclictest's output or damaged.
    """
    text = _Text(name)
    for number, line in enumerate(_CURSOR.sub("\n", data).splitlines(), start=1):
        stripped = line.strip()
        if stripped:
            text.take(number, stripped)
    if text.rows or "Histogram Overflows" in text.figures:
        threads = _with_histogram(text)
    elif text.live:
        threads = _live_only(text)
    else:
        raise InputError(f"{name} is not an output of cyclictest: it has neither a histogram (-h, -H, --histfile) nor lines 'T: 0 ...'")
    return Measurement(threads=threads, unit_ns=unit_ns or 1000, source=name, unit_known=unit_ns is not None)


Count = Annotated[int, Field(ge=0, lt=2**62, strict=True)]
Key = Annotated[int, Field(ge=0, lt=2**62)]


class _Thread(BaseModel):
    histogram: dict[Key, Count] = Field(default_factory=dict[int, int])
    cycles: Count
    min: Annotated[int, Field(gt=-(2**62), lt=2**62, strict=True)]
    max: Annotated[int, Field(gt=-(2**62), lt=2**62, strict=True)]
    avg: Annotated[float, Field(allow_inf_nan=False, gt=-1e18, lt=1e18)]
    cpu: int = -1


class _File(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    file_version: Annotated[int, Field(strict=True)]
    command: str = Field(default="", alias="cmdline:")
    version: str | None = Field(default=None, alias="rt_test_version:")
    command_right: str | None = Field(default=None, alias="cmdline")
    version_right: str | None = Field(default=None, alias="rt_test_version")
    start_time: str | None = None
    end_time: str | None = None
    sysinfo: dict[str, str | int] = Field(default_factory=dict[str, "str | int"])
    resolution_in_ns: Annotated[int, Field(ge=0, le=1)]
    thread: dict[Annotated[int, Field(ge=0, lt=100_000)], _Thread] = Field(min_length=1)


def _time(text: str | None) -> str | None:
    try:
        return None if text is None else f"{parsedate_to_datetime(text).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError):
        return None


def looks_like_json(data: str) -> bool:
    """Whether a text looks like JSON."""
    return data.lstrip().startswith("{")


def parse_json(data: str, name: str) -> Measurement:
    """The measurement in the JSON `data` of the file `name`. Raises InputError if it is not cyclictest's output or damaged."""
    try:
        raw: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError(f"{name} is not valid JSON, although it begins like it; is it cut short?") from None
    version: Any = cast("dict[str, Any]", raw).get("file_version") if isinstance(raw, dict) else None
    if version != 1:
        raise InputError(f"{name} is not an output of cyclictest --json with file_version 1 (it has {version!r:.40})")
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        details = error.errors()[0]
        where = ".".join(str(part) for part in details["loc"])[:80]
        raise InputError(f"{name} is a damaged output of cyclictest --json ({where}: {details['msg']})") from None
    command = file.command or file.command_right or ""
    limit = histogram_limit(command)
    threads: list[Thread] = []
    for number, thread in sorted(file.thread.items()):
        binned = sum(thread.histogram.values())
        if binned > thread.cycles:
            raise InputError(f"{name} is a damaged output of cyclictest --json (thread {number}: {binned} samples in bins, {thread.cycles} cycles)")
        known = thread.cycles > 0
        threads.append(
            Thread(
                number=number,
                cpu=thread.cpu if thread.cpu >= 0 else None,
                histogram={value: count for value, count in sorted(thread.histogram.items()) if count},
                cycles=thread.cycles,
                overflow=thread.cycles - binned,
                limit=limit if limit is not None else max(thread.histogram) + 1 if thread.histogram else None,
                minimum=thread.min if known else None,
                maximum=thread.max if known else None,
                average=Fraction(str(thread.avg)) if known else None,
                interval_us=interval_us(command, number) if command else None,
                priority=priority(command),
            )
        )
    return Measurement(
        threads=threads,
        unit_ns=1 if file.resolution_in_ns == 1 else 1000,
        source=name,
        unit_known=True,
        version=file.version or file.version_right,
        command=command or None,
        started=_time(file.start_time),
        ended=_time(file.end_time),
        system=file.sysinfo,
        average_is_cut=False,
    )
