# SPDX-License-Identifier: MIT
"""Reads the --json files of rt-tests (file_version 1).

The keys `cmdline:` and `rt_test_version:` contain a colon. A `resolution_in_ns` of 0 means us. Cycles outside
the bins are overflows, which the files do not list. Each program has its own fields below `thread`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from rtgauge.errors import InputError
from rtgauge.record.model import Mark, Result
from rtgauge_ext.importers.cyclictest import (
    break_limit,
    histogram_limit,
    interval_us,
    scheduling,
    smi_results,
    stopped,
)
from rtgauge_ext.importers.foreign_file import json_documents, utc, validated
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement, last_bin_mark

Count = Annotated[int, Field(ge=0, lt=2**62, strict=True)]
Value = Annotated[int, Field(gt=-(2**62), lt=2**62, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False, gt=-1e15, lt=1e15)]
Index = Annotated[int, Field(ge=0, lt=100_000)]
Decimal = Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?$")]


class _Part(BaseModel):
    """A part of the document. Unknown keys are ignored, because newer versions add some."""

    model_config = ConfigDict(populate_by_name=True)


Thread = TypeVar("Thread", bound=_Part)


class _Cyclic(_Part):
    histogram: dict[Annotated[int, Field(ge=0, lt=2**40)], Count] = Field(default_factory=dict[int, int])
    cycles: Count
    min: Value
    max: Value
    avg: Number | None
    """None if there was no cycle, for which cyclictest writes -nan."""
    cpu: int = -1
    smi_count: Count | None = None


class _Oslat(_Part):
    cpu: int = -1
    min: Number
    avg: Number
    max: Number
    duration: Number | None = None
    histogram: dict[Decimal, Count]


class _Receiver(_Part):
    cpu: int = -1
    priority: int | None = None
    min: Value
    avg: Number
    max: Value


class _Sender(_Part):
    cpu: int = -1
    priority: int | None = None
    samples: Count
    interval: Count | None = None


class _Pair(_Part):
    sender: _Sender
    receiver: _Receiver


class _Header(_Part):
    file_version: Annotated[int, Field(strict=True)]
    command: str = Field(default="", alias="cmdline:")
    version: str | None = Field(default=None, alias="rt_test_version:")
    command_right: str | None = Field(default=None, alias="cmdline")
    version_right: str | None = Field(default=None, alias="rt_test_version")
    start_time: str | None = None
    end_time: str | None = None
    sysinfo: dict[str, str | int] = Field(default_factory=dict[str, "str | int"])
    resolution_in_ns: Annotated[int, Field(ge=0, le=1)] | None = None


class _Migrate(_Part):
    prio: int | None = None
    min: Number
    avg: Number
    max: Number
    total: Number


class _File(_Part, Generic[Thread]):
    """The threads of one run of a program."""

    thread: dict[Index, Thread] = Field(min_length=1)


class _PiStressFile(_Part):
    inversion: Count


def _threads(model: type[_File[Thread]], raw: Mapping[str, Any], name: str, tool: str) -> dict[int, Thread]:
    return dict(sorted(validated(model, raw, name, tool).thread.items()))


def _damaged(name: str, tool: str, problem: str) -> InputError:
    return InputError(f"{name} is damaged output of {tool} --json ({problem})")


def _labels(cpus: dict[int, int]) -> dict[int, dict[str, str | int]]:
    """Label each series with its CPU if all threads have different `cpus`, else with its thread."""
    if min(cpus.values()) >= 0 and len(set(cpus.values())) == len(cpus):
        return {number: {"cpu": cpu} for number, cpu in cpus.items()}
    return {number: {"thread": number} for number in cpus}


def _exact(value: float) -> Fraction:
    return Fraction(str(value))


def _cyclic(raw: Mapping[str, Any], name: str, header: _Header, tool: str) -> dict[str, Any]:
    if header.resolution_in_ns is None and tool != "signaltest":
        raise _damaged(name, tool, "resolution_in_ns is missing")
    threads = _threads(_File[_Cyclic], raw, name, f"{tool} --json")
    labels = _labels({number: thread.cpu for number, thread in threads.items()})
    command = header.command or header.command_right or ""
    unit = 1 if header.resolution_in_ns == 1 else 1000
    limit = histogram_limit(command)
    series: list[ImportedSeries] = []
    for number, thread in threads.items():
        binned = sum(thread.histogram.values())
        if binned > thread.cycles:
            problem = f"has {binned} samples in its bins, but only {thread.cycles} cycles"
            raise _damaged(name, tool, f"thread {number} {problem}")
        if thread.cycles and thread.min < 0:
            raise _damaged(name, tool, f"thread {number} has a negative latency, {thread.min}")
        end = limit if limit is not None else max(thread.histogram) + 1 if thread.histogram else None
        interval = interval_us(command, number) if command and tool == "cyclictest" else None
        series.append(
            ImportedSeries(
                labels=labels[number],
                histogram={value * unit: count for value, count in sorted(thread.histogram.items()) if count},
                count=thread.cycles,
                overflow=thread.cycles - binned,
                limit_ns=None if end is None else end * unit,
                minimum_ns=thread.min * unit,
                maximum_ns=thread.max * unit,
                average_ns=None if thread.avg is None else _exact(thread.avg) * unit,
                interval_ns=None if not interval else interval * 1000,
            )
        )
    parameters: dict[str, Any] = {}
    marks: list[Mark] = []
    if command and tool == "cyclictest":
        parameters = scheduling(command)
        threshold = break_limit(command)
        largest = max((part.maximum_ns for part in series if part.maximum_ns is not None), default=0)
        if threshold is not None and largest > threshold * unit:
            marks.append(stopped(tool, largest))
    elif tool == "cyclicdeadline":
        parameters = {"policy": "deadline"}
    smi = {number: thread.smi_count for number, thread in threads.items() if thread.smi_count is not None}
    return {
        "series": series,
        "resolution_ns": unit,
        "parameters": parameters,
        "releases": tool == "cyclictest",
        "probe": "wakeup" if tool in {"cyclictest", "cyclicdeadline"} else tool,
        "marks": marks,
        "results": smi_results(smi),
    }


def oslat_fields(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of oslat's measurement. oslat counts each round of its loop: the first bin is the
    loop itself, and the last bin also holds all larger values.

    `raw`: the document of the file `name`. Raises InputError if it is damaged.
    """
    threads = _threads(_File[_Oslat], raw, name, "oslat")
    labels = _labels({number: thread.cpu for number, thread in threads.items()})
    series: list[ImportedSeries] = []
    marks: list[Mark] = []
    clipped = 0
    width = 1000
    for number, thread in threads.items():
        histogram = {int(Fraction(value) * 1000): count for value, count in thread.histogram.items() if count}
        values = sorted(int(Fraction(value) * 1000) for value in thread.histogram)
        width = min([width, *(after - before for before, after in pairwise(values))])
        maximum = int(_exact(thread.max) * 1000)
        count = sum(histogram.values())
        last = max(histogram, default=0)
        overflow = 0
        if histogram and last == values[-1] and maximum > last + max(width, 1):
            # An unknown share of the last bin's samples, possibly all, lies above the bin.
            overflow = histogram.pop(last)
            clipped += overflow
        series.append(
            ImportedSeries(
                metric="gap",
                labels=labels[number],
                histogram=dict(sorted(histogram.items())),
                count=count,
                overflow=overflow,
                limit_ns=last if overflow else None,
                minimum_ns=int(_exact(thread.min) * 1000),
                maximum_ns=maximum,
                average_ns=_exact(thread.avg) * 1000,
            )
        )
    if clipped:
        marks.append(
            last_bin_mark("the last bin of oslat also counts every longer gap", clipped, "that long")
        )
    marks.append(ImportMarkKind.LOOP_IN_FIRST_BIN.mark())
    longest = max((thread.duration or 0 for thread in threads.values()), default=0)
    return {
        "series": series,
        "resolution_ns": max(width, 1),
        "probe": "noise",
        "marks": marks,
        "duration_ns": int(longest * 1e9) or None,
    }


def _oslat(raw: Mapping[str, Any], name: str, _header: _Header, _tool: str) -> dict[str, Any]:
    return oslat_fields(raw, name)


def _pairs(raw: Mapping[str, Any], name: str, _header: _Header, tool: str) -> dict[str, Any]:
    threads = _threads(_File[_Pair], raw, name, f"{tool} --json")
    labels = _labels({number: pair.receiver.cpu for number, pair in threads.items()})
    series: list[ImportedSeries] = []
    for number, pair in threads.items():
        count, receiver = pair.sender.samples, pair.receiver
        if count and receiver.min < 0:
            raise _damaged(name, tool, f"it has a negative latency, {receiver.min}")
        series.append(
            ImportedSeries(
                labels=labels[number],
                count=count,
                overflow=count,
                minimum_ns=receiver.min * 1000,
                maximum_ns=receiver.max * 1000,
                average_ns=_exact(receiver.avg) * 1000,
                interval_ns=pair.sender.interval * 1000 if pair.sender.interval else None,
            )
        )
    priorities = [pair.receiver.priority for pair in threads.values() if pair.receiver.priority is not None]
    return {
        "series": series,
        "resolution_ns": 1000,
        "probe": tool,
        "parameters": {"priority": min(priorities)} if priorities else {},
    }


def _migrate(raw: Mapping[str, Any], name: str, _header: _Header, tool: str) -> dict[str, Any]:
    results: list[Result] = []
    for number, thread in _threads(_File[_Migrate], raw, name, f"{tool} --json").items():
        values = {f"{figure}_us": getattr(thread, figure) for figure in ("min", "avg", "max", "total")}
        result = Result(name="start latency", labels={"thread": number}, values=values)
        if thread.prio is not None:
            result.labels["priority"] = thread.prio
        results.append(result)
    return {"series": [], "resolution_ns": 1000, "probe": tool, "results": results}


def _pi_stress(raw: Mapping[str, Any], name: str, _header: _Header, tool: str) -> dict[str, Any]:
    inversions = validated(_PiStressFile, raw, name, f"{tool} --json").inversion
    result = Result(name="priority inheritance", values={"inversions": inversions})
    return {"series": [], "resolution_ns": 1, "probe": tool, "results": [result]}


TOOLS: dict[str, Callable[[Mapping[str, Any], str, _Header, str], dict[str, Any]]] = {
    **dict.fromkeys(("cyclictest", "cyclicdeadline", "signaltest"), _cyclic),
    **dict.fromkeys(("pmqtest", "ptsematest", "sigwaittest", "svsematest"), _pairs),
    "rt-migrate-test": _migrate,
    "pi_stress": _pi_stress,
    "oslat": _oslat,
}


def _tool(raw: Mapping[str, Any], command: str, name: str) -> str:
    """Find the program by its command line, or else by fields that no other program writes.

    Raises InputError for an unknown program.
    """
    words = command.split()
    program = re.split(r"[/\\]", words[0])[-1] if words else ""
    if program in TOOLS:
        return program
    threads: Any = raw.get("thread")
    parts = list(cast("dict[str, Any]", threads).values()) if isinstance(threads, dict) else []
    fields = set(cast("dict[str, Any]", parts[0])) if parts and isinstance(parts[0], dict) else set[str]()
    if "inversion" in raw:
        return "pi_stress"
    if "freq" in fields or "duration" in fields:
        return "oslat"
    if "total" in fields:
        return "rt-migrate-test"
    if "sender" in fields:
        which = "pmqtest, ptsematest, sigwaittest, svsematest"
        raise InputError(f"{name} does not say which rt-tests program wrote it ({which})")
    return "cyclictest"


def parse_json(raw: Mapping[str, Any], name: str) -> Measurement:
    """Parse the document of the file `name`.

    Raises InputError if it is damaged or no program of rt-tests wrote it.
    """
    version = raw.get("file_version")
    if version != 1:
        raise InputError(
            f"{name} is not JSON from rt-tests with file_version 1 "
            f"(its file_version is {str(version)[:40]!r})"
        )
    header = validated(_Header, raw, name, "rt-tests --json")
    command = header.command or header.command_right or ""
    tool = _tool(raw, command, name)
    if raw.get("thread") == {}:
        raise InputError(f"{name}: {tool} measured nothing, because it had no measuring thread")
    return Measurement(
        tool=tool,
        source=name,
        version=header.version or header.version_right,
        command=command or None,
        started=utc(header.start_time),
        ended=utc(header.end_time),
        system=header.sysinfo,
        **TOOLS[tool](raw, name, header, tool),
    )


RT_TESTS = Importer(
    "rt-tests",
    "--json of cyclictest, cyclicdeadline, oslat, pmqtest, signaltest, ...",
    lambda head: "{" in head and '"file_version"' in head,
    lambda path, _hints: [parse_json(raw, str(path)) for raw in json_documents(path)],
)
