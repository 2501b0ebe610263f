# SPDX-License-Identifier: MIT
"""Reads jitterdebugger's results.json (version 1, which has no header, and version 3), its samples.raw, and
jittersamples' samples.csv.

samples.raw is packed: CPU (32 bits), time (two numbers of the target's word size) and latency (64 bits),
little-endian as on nearly every target. The values show whether the time has 8 or 16 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from rtgauge.errors import InputError
from rtgauge.units import NS_PER_S
from rtgauge_ext.importers.foreign_file import damaged, json_documents, lines, open_file, validated
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement

Count = Annotated[int, Field(ge=0, lt=2**62, strict=True)]


class _Cpu(BaseModel):
    histogram: dict[Annotated[int, Field(ge=0, lt=2**40)], Count]
    count: Count
    min: Count
    max: Count
    avg: Annotated[float, Field(allow_inf_nan=False, ge=0, lt=1e15)]


class _Results(BaseModel):
    version: int = 1
    sysinfo: dict[str, str | int] = Field(default_factory=dict[str, "str | int"])
    cpu: dict[Annotated[int, Field(ge=0, lt=100_000)], _Cpu] = Field(min_length=1)


def _measurement(source: str, series: list[ImportedSeries], unit_ns: int, **more: Any) -> Measurement:
    # jitterdebugger holds /dev/cpu_dma_latency at 0 while it runs.
    return Measurement(
        tool="jitterdebugger",
        source=source,
        series=series,
        resolution_ns=unit_ns,
        parameters={"policy": "fifo", "dma_latency_us": 0},
        releases=True,
        **more,
    )


def parse_results(raw: Mapping[str, Any], source: str) -> Measurement:
    """Parse results.json. Raises InputError if it is foreign or damaged."""
    results = validated(_Results, raw, source, "jitterdebugger")
    resolution = results.sysinfo.get("resolution_in_ns")
    unit = 1 if resolution == 1 else 1000
    series: list[ImportedSeries] = []
    for cpu, figures in sorted(results.cpu.items()):
        binned = sum(figures.histogram.values())
        if binned > figures.count:
            problem = f"CPU {cpu} has {binned} samples in its bins, but its count is {figures.count}"
            raise InputError(f"{source} is damaged output of jitterdebugger ({problem})")
        overflow = figures.count - binned
        series.append(
            ImportedSeries(
                labels={"cpu": cpu},
                histogram={
                    value * unit: count for value, count in sorted(figures.histogram.items()) if count
                },
                count=figures.count,
                overflow=overflow,
                limit_ns=(max(figures.histogram, default=0) + 1) * unit if overflow else None,
                minimum_ns=figures.min * unit,
                maximum_ns=figures.max * unit,
                average_ns=Fraction(str(figures.avg)) * unit,
            )
        )
    system = {name: value for name, value in results.sysinfo.items() if name != "resolution_in_ns"}
    return _measurement(source, series, unit, system=system, unit_known=resolution is not None)


def _samples(source: str, histograms: Mapping[int, Mapping[int, int]], span_ns: int) -> Measurement:
    """Make one series for each CPU from its values (us)."""
    if not histograms:
        raise InputError(f"{source} has no sample")
    series = [
        ImportedSeries(
            labels={"cpu": cpu},
            histogram={value * 1000: histogram[value] for value in sorted(histogram)},
            count=sum(histogram.values()),
            minimum_ns=min(histogram) * 1000,
            maximum_ns=max(histogram) * 1000,
        )
        for cpu, histogram in sorted(histograms.items())
    ]
    return _measurement(source, series, 1000, unit_known=False, duration_ns=span_ns or None)


_CSV = re.compile(r"([0-9]{1,5});([0-9]{1,12})\.([0-9]{1,9});([0-9]{1,12})")


def parse_csv(numbered: Iterable[tuple[int, str]], source: str) -> Measurement:
    """Parse samples.csv: CPU;time;latency in us.

    Raises InputError if it is foreign or damaged.
    """
    histograms: dict[int, dict[int, int]] = {}
    times_ns: dict[int, int] = {}
    first = last = None
    for number, line in numbered:
        if not line.strip():
            continue
        match = _CSV.fullmatch(line.strip())
        if match is None:
            raise damaged(source, f"line {number} does not have the form CPU;time;latency")
        cpu, second, latency = int(match[1]), int(match[2]), int(match[4])
        time_ns = second * NS_PER_S + int(match[3])
        if time_ns < times_ns.get(cpu, time_ns):
            raise damaged(source, f"in line {number}, {_BACK}")
        times_ns[cpu] = time_ns
        first = second if first is None else min(first, second)
        last = second if last is None else max(last, second)
        histogram = histograms.setdefault(cpu, {})
        histogram[latency] = histogram.get(latency, 0) + 1
    return _samples(source, histograms, ((last or 0) - (first or 0)) * 10**9)


_BACK = "the time on a CPU goes backwards; does the file have two measurements?"


def _layout(word: int) -> np.dtype[np.void]:
    return np.dtype([("cpu", "<u4"), ("second", f"<i{word}"), ("ns", f"<i{word}"), ("latency", "<u8")])


def _part(data: bytes, layout: np.dtype[np.void]) -> npt.NDArray[Any]:
    """Return the complete samples in these bytes."""
    return np.frombuffer(data, layout, count=len(data) // layout.itemsize)


def _plausible(part: npt.NDArray[Any]) -> bool:
    """Return whether the bytes, read with this width of the time, give plausible samples."""
    ns, second = part["ns"], part["second"]
    times = np.all((ns >= 0) & (ns < 10**9)) and np.all((second >= 0) & (second < 2**34))
    return bool(len(part) and times and np.all(part["cpu"] < 65536) and np.all(part["latency"] < 10**10))


CHUNK = 1 << 18


def parse_raw(path: Path) -> Measurement:
    """Read samples.raw in pieces. Raises InputError if it is foreign or damaged."""
    histograms: dict[int, dict[int, int]] = {}
    with open_file(path) as file:
        beginning = file.read(4096)
        layouts = [layout for layout in (_layout(8), _layout(4)) if _plausible(_part(beginning, layout))]
        if not layouts:
            implausible = "the CPU numbers, times and latencies in it are implausible"
            raise InputError(f"{path} does not look like samples.raw of jitterdebugger: {implausible}")
        layout = layouts[0]
        file.seek(0)
        first, last, cut = None, 0, 0
        times_ns: dict[int, int] = {}
        while data := file.read(layout.itemsize * CHUNK):
            cut = len(data) % layout.itemsize
            part = _part(data, layout)
            if len(part) and not _plausible(part):
                raise damaged(str(path), "part of the file does not contain jitterdebugger's samples")
            for cpu in np.unique(part["cpu"]).tolist():
                own = part[part["cpu"] == cpu]
                own_ns = own["second"].astype(np.int64) * NS_PER_S + own["ns"]
                if own_ns[0] < times_ns.get(cpu, own_ns[0]) or np.any(np.diff(own_ns) < 0):
                    raise damaged(str(path), _BACK)
                times_ns[cpu] = int(own_ns[-1])
                values, counts = np.unique(part["latency"][part["cpu"] == cpu], return_counts=True)
                histogram = histograms.setdefault(int(cpu), {})
                for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                    histogram[value] = histogram.get(value, 0) + count
            if len(part):
                first = int(part["second"].min()) if first is None else min(first, int(part["second"].min()))
                last = max(last, int(part["second"].max()))
    measurement = _samples(str(path), histograms, (last - (first or 0)) * 10**9)
    if cut:
        incomplete = "the last sample in the file is incomplete, so rtgauge leaves it out"
        measurement.marks.append(ImportMarkKind.CUT_SHORT.mark(incomplete))
    return measurement


def _recognises(head: str) -> bool:
    # Screen lines (-v) may come before the data.
    return '"file_version"' not in head and re.search(r'"cpu"\s*:\s*\{\s*"[0-9]+"\s*:\s*\{', head) is not None


JITTERDEBUGGER = Importer(
    "jitterdebugger",
    "results.json, version 1 and 3",
    _recognises,
    lambda path, _hints: [parse_results(raw, str(path)) for raw in json_documents(path)],
)
JITTERDEBUGGER_CSV = Importer(
    "jitterdebugger-csv",
    "samples.csv of jittersamples",
    lambda head: _CSV.match(head) is not None,
    lambda path, _hints: [parse_csv(lines(path), str(path))],
    by_shape=True,
)
JITTERDEBUGGER_RAW = Importer(
    "jitterdebugger-raw",
    "samples.raw",
    lambda head: "\0" in head[:64],
    lambda path, _hints: [parse_raw(path)],
)
