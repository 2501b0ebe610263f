# SPDX-License-Identifier: MIT
"""Reads the text of hwlatdetect: its summary and the samples above its threshold.

A sample is `ts: S.NS, delta:D, inner:I, outer:O, cpu:C[, count:N]` (after 2.10; D in s, `nan` for the first
one; with --time-format the time is any text), `ts: S.NS, inner:I, outer:O[, cpu:C[, count:N]]` (before), or
three columns: time, inner, outer (oldest); I and O in us. N is the number of gaps above the threshold in a
window, but only the largest is reported. There is no --json. The detector observes only a part of each window
(its width) and is blind in the rest.

A file can hold several reports. A report begins with its duration, or where a line repeats that each report
has once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.model import Mark, Result
from rtgauge.record.writer import wall_time
from rtgauge.units import NS_PER_S, plural
from rtgauge_ext.importers.foreign_file import damaged, lines
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, check_runs

_SECONDS = re.compile(r"([0-9]{1,12})\.[0-9]{1,12}")
_FIELD = re.compile(r"([a-z]{1,20}):\s*+([0-9]{1,12})")
_DELTA = re.compile(r"delta:\s*+(?:-?[0-9]{1,12}(?:\.[0-9]{1,9})?|nan)")
_COLUMNS = re.compile(r"([0-9]{1,12})\.([0-9]{1,12})\s++([0-9]{1,12})\s++([0-9]{1,12})")
_SETTING = re.compile(
    r"(Latency threshold|Sample window|Sample width|Non-sampling period|Max Latency|Samples "
    r"recorded|Samples exceeding threshold|SMIs during run)"
    r":\s*(Below threshold|[0-9]{1,15})\s*(us)?"
)
_MTBF = re.compile(r"MTBF: ([0-9]{1,12}(?:\.[0-9]{1,6})?) seconds")
_SMIS = re.compile(r"([0-9]{1,9}) SMIs occured on cpu ([0-9]{1,5})")
_DURATION = re.compile(r"test duration ([0-9]{1,12}) seconds")


def _fields(text: str) -> dict[str, int] | None:
    """Return inner, outer, cpu and count of a sample in words or columns; None for any other line."""
    if columns := _COLUMNS.fullmatch(text):
        return {"inner": int(columns[3]), "outer": int(columns[4])}
    if not text.startswith("ts:"):
        return None
    # The time may contain commas, so match the fields at the end.
    values: dict[str, int] = {}
    parts = [part.strip() for part in text.rstrip(", ").split(",")]
    while len(parts) > 1 and (match := _FIELD.fullmatch(parts[-1])):
        values[match[1]] = int(match[2])
        parts.pop()
    if len(parts) > 1 and _DELTA.fullmatch(parts[-1]):
        parts.pop()
    return values if values and ",".join(parts) != "ts:" else None


@dataclass
class _Report:
    """The lines of one report."""

    settings: dict[str, int] = field(default_factory=dict[str, int])
    printed: set[str] = field(default_factory=set[str])
    """The names of the settings and figures so far."""
    duration_s: int | None = None
    gaps: dict[int | None, dict[int, int]] = field(default_factory=dict[int | None, dict[int, int]])
    times: list[int] = field(default_factory=list[int])
    smis: dict[str, int] = field(default_factory=dict[str, int])
    mtbf_s: float | None = None
    more: int = 0
    """Further gaps above the threshold, which the report only counts."""

    def take(self, number: int, text: str, source: str) -> bool:
        """Parse a line. Return False if it begins another report."""
        if match := _DURATION.search(text):
            if self.printed or self.gaps or self.duration_s is not None:
                return False
            self.duration_s = int(match[1])
        elif match := _SETTING.match(text):
            if match[1] in self.printed:
                return False
            self.printed.add(match[1])
            if match[2][0].isdigit():
                self.settings[match[1]] = int(match[2])
        elif match := _MTBF.fullmatch(text):
            self.mtbf_s = float(match[1])
        elif match := _SMIS.fullmatch(text):
            self.smis[match[2]] = int(match[1])
        elif (values := _fields(text)) is not None:
            if "inner" not in values or "outer" not in values:
                raise damaged(source, f"line {number} lacks the inner or the outer latency")
            gap = max(values["inner"], values["outer"])
            histogram = self.gaps.setdefault(values.get("cpu"), {})
            histogram[gap] = histogram.get(gap, 0) + 1
            self.more += max(values.get("count", 1) - 1, 0)
            if (seconds := _SECONDS.match(text.removeprefix("ts:").lstrip())) is not None:
                self.times.append(int(seconds[1]))
        elif text.startswith("ts:"):
            raise damaged(source, f"line {number} is not a sample of hwlatdetect")
        return True


def parse_hwlatdetect(numbered: Iterable[tuple[int, str]], source: str) -> list[Measurement]:
    """Parse hwlatdetect's lines. Raises InputError for foreign or damaged text."""
    reports = [_Report()]
    for number, line in numbered:
        text = line.strip()
        if not reports[-1].take(number, text, source):
            reports.append(_Report())
            check_runs(len(reports), source)
            reports[-1].take(number, text, source)
    return [_measurement(report, source) for report in reports]


def _measurement(report: _Report, source: str) -> Measurement:
    """Make the measurement of a report. Raises InputError if it has no result."""
    settings, gaps, smis = report.settings, report.gaps, report.smis
    if not report.printed and report.duration_s is None and not gaps:
        raise InputError(f"{source} is not output of hwlatdetect")
    if not gaps and not report.printed & {"Max Latency", "Samples recorded"}:
        raise InputError(
            f"{source} is cut short: it has a report of hwlatdetect with neither samples nor a result"
        )
    recorded = settings.get("Samples recorded")
    gap_count = sum(sum(histogram.values()) for histogram in gaps.values())
    marks: list[Mark] = []
    if recorded is not None and recorded != gap_count:
        detail = f"hwlatdetect says that it recorded {recorded} samples, but the file has {gap_count}"
        marks.append(ImportMarkKind.SAMPLES_MISSING.mark(detail))
    highest = settings.get("Max Latency")
    largest = max(map(max, gaps.values()), default=None)
    if highest is not None and largest is not None and largest != highest:
        detail = f"hwlatdetect reports a maximum of {highest} us, but the largest sample is {largest} us"
        marks.append(ImportMarkKind.MAXIMUM_DIFFERS.mark(detail))
    window, width = settings.get("Sample window"), settings.get("Sample width")
    if window and width is not None and width < window:
        share = width * 100 / window
        detail = f"hwlatdetect looked for gaps only {share:.0f} % of the time"
        marks.append(ImportMarkKind.DUTY_CYCLE.mark(detail))
    elif not window:
        unknown = "the file does not say for how much of the time hwlatdetect looked for gaps (default: half)"
        marks.append(ImportMarkKind.DUTY_CYCLE.mark(unknown))
    if report.more:
        only = "hwlatdetect reports only the largest gap of each window"
        marks.append(
            ImportMarkKind.SAMPLES_MISSING.mark(
                f"the file lacks {plural(report.more, 'further gap')} above the threshold, because {only}"
            )
        )
    threshold = settings.get("Latency threshold")
    if threshold:
        marks.append(
            ImportMarkKind.SMALL_GAPS_UNKNOWN.mark(
                f"hwlatdetect does not record gaps of up to {threshold} us"
            )
        )
    series = [
        ImportedSeries(
            metric="gap",
            labels={} if cpu is None else {"cpu": cpu},
            histogram={value * 1000: histogram[value] for value in sorted(histogram)},
            count=sum(histogram.values()),
            minimum_ns=min(histogram) * 1000,
            maximum_ns=max(histogram) * 1000,
        )
        for cpu, histogram in sorted(gaps.items(), key=lambda item: -1 if item[0] is None else item[0])
    ]
    if not series and not highest:
        series.append(ImportedSeries(metric="gap", labels={}, count=0, minimum_ns=None, maximum_ns=None))
    if highest is not None and highest > (largest or 0):
        series.append(_not_listed(max((recorded or 0) - gap_count, 1), highest, threshold or 0))
    times_us = {"window_ns": window, "width_ns": width, "threshold_ns": threshold}
    parameters: dict[str, Any] = {name: value * 1000 for name, value in times_us.items() if value}
    result = Result(
        name="hwlatdetect",
        values={
            "samples": gap_count,
            "above_threshold": settings.get("Samples exceeding threshold"),
            "smi": settings.get("SMIs during run"),
            **{f"smi of CPU {cpu}": count for cpu, count in smis.items()},
            **({} if report.mtbf_s is None else {"mtbf_s": report.mtbf_s}),
        },
    )
    return Measurement(
        tool="hwlatdetect",
        source=source,
        probe="noise",
        series=series,
        resolution_ns=1000,
        duration_ns=None if report.duration_s is None else report.duration_s * 10**9,
        parameters=parameters,
        marks=marks,
        results=[result],
        started=_utc(min(report.times, default=None)),
        ended=_utc(max(report.times, default=None)),
    )


def _not_listed(count: int, highest_us: int, threshold_us: int) -> ImportedSeries:
    """Return a series for samples that the file does not list. Their maximum is known from the summary."""
    return ImportedSeries(
        metric="gap",
        labels={"samples": "not in the file"},
        count=count,
        overflow=count,
        minimum_ns=(highest_us if count == 1 else threshold_us) * 1000,
        minimum_is_bound=count > 1,
        maximum_ns=highest_us * 1000,
    )


def _utc(seconds: int | None) -> str | None:
    try:
        return None if seconds is None else wall_time(seconds * NS_PER_S)
    except (ValueError, OverflowError, OSError):
        return None


_HEAD = re.compile(
    r"^[ \t]*+(?:hwlatdetect:|ts:[^\n]{1,80}, ?(?:inner|delta):|[0-9]{9,12}\.[0-9]{9,12}[ "
    r"\t]++[0-9]++[ \t]++[0-9]++[ \t]*+$)",
    re.MULTILINE,
)


HWLATDETECT = Importer(
    "hwlatdetect",
    "its report",
    lambda head: _HEAD.search(head) is not None,
    lambda path, _hints: parse_hwlatdetect(lines(path), str(path)),
    by_shape=True,
)
