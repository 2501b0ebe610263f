# SPDX-License-Identifier: MIT
"""Reads jitterdebugger's results.json: version 1, which has no header, and version 3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, Field

from rtgauge.errors import InputError
from rtgauge_ext.importers.foreign_file import json_documents, validated
from rtgauge_ext.importers.measurement import ImportedSeries, Importer, Measurement

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
    # jitterdebugger holds /dev/cpu_dma_latency at 0 while it runs.
    return Measurement(
        tool="jitterdebugger",
        source=source,
        series=series,
        resolution_ns=unit,
        unit_known=resolution is not None,
        system=system,
        parameters={"policy": "fifo", "dma_latency_us": 0},
        releases=True,
    )


def _recognises(head: str) -> bool:
    # Screen lines (-v) may come before the data.
    return '"file_version"' not in head and re.search(r'"cpu"\s*:\s*\{\s*"[0-9]+"\s*:\s*\{', head) is not None


JITTERDEBUGGER = Importer(
    "jitterdebugger",
    "results.json, version 1 and 3",
    _recognises,
    lambda path, _hints: [parse_results(raw, str(path)) for raw in json_documents(path)],
)
