# SPDX-License-Identifier: MIT
"""Reads the output of stress-ng --cyclic: samples, mean, extremes, standard deviation, percentiles, and with
--cyclic-dist a histogram.

Each line begins with `stress-ng: info:` and the stressor's name. A histogram has as many cells as its heading
says. The number of samples above the histogram is the number of all samples minus the sum of the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from rtgauge.errors import InputError
from rtgauge.importers.foreign_file import damaged
from rtgauge.importers.measurement import ImportedSeries, Importer, Measurement
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, Result

_SCHED = re.compile(
    r"sched (?:SCHED_)?([A-Z]{1,20})(?: \([^()]{0,60}\))?: ([0-9]{1,15}) ns delay, ([0-9]{1,12}) samples"
)
_MEAN = re.compile(r"mean: (-?[0-9]{1,15}\.[0-9]{1,4}) ns, mode: (-?[0-9]{1,15}) ns")
_RANGE = re.compile(r"min: (-?[0-9]{1,15}) ns, max: (-?[0-9]{1,15}) ns, std\.dev\. ([0-9]{1,15}\.[0-9]{1,4})")
_PERCENTILE = re.compile(r"([0-9]{1,3}\.[0-9]{1,3})%:\s++(-?[0-9]{1,15}) ns")
_WIDTH = re.compile(r"latency distribution \(([0-9]{1,12}) ns intervals\)")
_CELL = re.compile(r"([0-9]{1,15})\s++([0-9]{1,12})")
_HEADING = re.compile(r"latency \(ns\)\s++frequency")
_VERSION = re.compile(r"stress-ng(?:,)? (?:version )?([0-9]{1,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)\b")


def parse_stress_ng(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse the output of stress-ng. Raises InputError if it is foreign or damaged."""
    found: dict[str, re.Match[str]] = {}
    percentiles: dict[str, int] = {}
    cells: dict[int, int] = {}
    in_cells = False
    version: str | None = None
    for _, line in numbered:
        if version is None and (match := _VERSION.search(line)):
            version = match[1]
        text = line.rpartition("cyclic:")[2].strip()
        if not text:
            continue
        for name, pattern in (("sched", _SCHED), ("mean", _MEAN), ("range", _RANGE), ("width", _WIDTH)):
            if match := pattern.fullmatch(text.rstrip(":")):
                if name in found:
                    two = "two measurements of stress-ng --cyclic"
                    raise InputError(f"{source} has {two}; keep only one in the file")
                found[name] = match
        if match := _PERCENTILE.fullmatch(text):
            percentiles[match[1]] = int(match[2])
        elif _HEADING.fullmatch(text):
            in_cells = True
        elif in_cells and (match := _CELL.fullmatch(text)) and int(match[2]):
            last = next(reversed(cells), None)
            if last is not None and int(match[1]) <= last:
                raise damaged(source, f"cell {match[1]} comes after cell {last}")
            cells[int(match[1])] = int(match[2])
    if not {"sched", "mean", "range"} <= found.keys():
        absent = "a sched, mean or min line is missing"
        raise InputError(f"{source} is not an output of stress-ng --cyclic, or it is cut short: {absent}")
    count, low, high = int(found["sched"][3]), int(found["range"][1]), int(found["range"][2])
    binned = sum(cells.values())
    if binned > count:
        raise damaged(source, f"its bins have {binned} samples, but it says that there are {count}")
    width = int(found["width"][1]) if "width" in found and cells else 1
    if width < 1:
        raise damaged(source, f"cells of {width} ns")
    marks: list[Mark] = []
    if count == 10_000:
        detail = "stress-ng keeps only the first 10000 latencies of its run"
        marks.append(MarkKind.SAMPLES_LIMITED.mark(detail))
    series = ImportedSeries(
        labels={"thread": 0},
        histogram=cells,
        count=count,
        overflow=count - binned,
        limit_ns=max(cells) + width if cells and count > binned else None,
        minimum_ns=low,
        maximum_ns=high,
        average_ns=Fraction(found["mean"][1]),
        std_ns=float(found["range"][3]),
        finer_average=True,
        absolute=low < 0,
    )
    result = Result(name="percentiles", values={f"p{name}_ns": ns for name, ns in percentiles.items()})
    result.values["mode_ns"] = int(found["mean"][2])
    return Measurement(
        tool="stress-ng cyclic",
        source=source,
        series=[series],
        resolution_ns=width,
        version=version,
        parameters={"policy": found["sched"][1].lower(), "delay_ns": int(found["sched"][2])},
        marks=marks,
        results=[result],
    )


STRESS_NG = Importer.of_lines(
    "stress-ng",
    "what stress-ng --cyclic prints",
    lambda head: re.search(r"ns delay, [0-9]+ samples", head) is not None,
    parse_stress_ng,
)
