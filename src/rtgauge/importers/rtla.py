# SPDX-License-Identifier: MIT
"""Reads the histogram that `rtla timerlat hist` prints (kernel documentation, tools/rtla/rtla-timerlat-hist)."""

from __future__ import annotations

import re
from fractions import Fraction

from rtgauge.errors import InputError
from rtgauge.importers.measurement import Measurement, Thread

THREAD_COLUMN = re.compile(r"Thr-([0-9]{1,4})")
ROW = re.compile(r"^\s*(?:([0-9]{1,9})|(over|count|min|avg|max):)((?:\s+(?:[0-9]{1,18}(?:\.[0-9]{1,9})?|-))+)\s*$")
MAX_BYTES = 64 << 20
NS_PER_UNIT = {"us": 1000, "ns": 1}


def _numbers(text: str) -> list[Fraction | None]:
    return [None if word == "-" else Fraction(word) for word in text.split()]


def _whole(value: Fraction | None) -> int | None:
    return None if value is None else int(value)


def parse_rtla(text: str, source: str) -> Measurement:
    """The thread latencies of each CPU. `source` names the text in errors. Raises InputError for foreign or damaged text."""
    if len(text) > MAX_BYTES or "RTLA timerlat histogram" not in text:
        raise InputError(f"{source} is not an output of rtla timerlat hist")
    unit = re.search(r"Time unit is \w+ \((us|ns)\)", text)
    lines = text.splitlines()
    header = next((line.split() for line in lines if line.startswith("Index")), None)
    columns = [] if header is None else [(at, int(match[1])) for at, name in enumerate(header[1:]) if (match := THREAD_COLUMN.fullmatch(name))]
    if header is None or not columns:
        raise InputError(f"{source}: rtla's output has no column of thread latencies")
    histogram: dict[int, list[Fraction | None]] = {}
    totals: dict[str, list[Fraction | None]] = {}
    for line in lines:
        if line.startswith("ALL"):
            break
        row = ROW.match(line)
        if row is None:
            continue
        values = _numbers(row[3])
        if len(values) != len(header) - 1:
            raise InputError(f"{source}: rtla's row '{line.strip()[:40]}' has {len(values)} of {len(header) - 1} columns")
        if row[1] is not None:
            histogram[int(row[1])] = values
        else:
            totals[row[2]] = values
    if "count" not in totals:
        raise InputError(f"{source} is cut short: rtla's row 'count:' is missing")
    threads = [_thread(number, at, cpu, histogram, totals, source) for number, (at, cpu) in enumerate(columns)]
    return Measurement(threads=threads, unit_ns=NS_PER_UNIT[unit[1]] if unit else 1000, source=source, unit_known=unit is not None)


def _thread(number: int, at: int, cpu: int, histogram: dict[int, list[Fraction | None]], totals: dict[str, list[Fraction | None]], source: str) -> Thread:
    counts = {value: int(row[at] or 0) for value, row in histogram.items() if row[at]}
    cycles = int(totals["count"][at] or 0)
    overflow = cycles - sum(counts.values())
    if overflow < 0 or overflow != int(totals.get("over", [Fraction(0)] * (at + 1))[at] or 0):
        raise InputError(f"{source} is damaged: CPU {cpu} has {cycles} samples, but its histogram has another sum")
    none: list[Fraction | None] = [None] * (at + 1)
    return Thread(
        number=number,
        cpu=cpu,
        histogram=counts,
        cycles=cycles,
        overflow=overflow,
        limit=max(histogram, default=0) + 1 if overflow else None,
        minimum=_whole(totals.get("min", none)[at]),
        maximum=_whole(totals.get("max", none)[at]),
        average=totals.get("avg", none)[at],
    )
