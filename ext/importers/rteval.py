# SPDX-License-Identifier: MIT
"""Reads rteval's summary.xml: its measurements of cyclictest and timerlat, with one series for each core.

rteval adds up rtla timerlat's counts of interrupt, thread and user context in one histogram, and ignores
samples above rtla's bins.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction
from typing import Any

from rtgauge.errors import InputError
from rtgauge.record.model import Mark, Result
from rtgauge_ext.importers.cyclictest import interval_us
from rtgauge_ext.importers.foreign_file import clock_ns, damaged, document
from rtgauge_ext.importers.import_marks import ImportMarkKind
from rtgauge_ext.importers.importer import Importer
from rtgauge_ext.importers.measurement import ImportedSeries, Measurement

TOOLS = ("cyclictest", "timerlat")
MAX_DEPTH = 64


def _root(data: bytes, source: str) -> ET.Element:
    """Parse the document with a limit on its depth, and return its root.

    Raises InputError if it is not XML, is nested too deeply, or has a DTD, whose entities can be any size.
    """
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise InputError(f"{source} has a document type definition, which rteval never writes")
    depth = 0
    try:
        root: ET.Element | None = None
        for event, element in ET.iterparse(io.BytesIO(data), events=("start", "end")):  # noqa: S314 - without entities, bounded in size and depth
            root = element if root is None else root
            depth += 1 if event == "start" else -1
            if depth > MAX_DEPTH:
                raise InputError(f"{source} is nested more than {MAX_DEPTH} levels deep")
        if root is None:
            raise InputError(f"{source} is not valid XML")
        return root
    except (ET.ParseError, ValueError, LookupError) as error:
        raise InputError(f"{source} is not valid XML ({error}); is the file cut short?") from None


def _number(element: ET.Element | None, name: str) -> Fraction | None:
    part = None if element is None else element.find(name)
    text = (part.text or "").strip() if part is not None else ""
    return Fraction(text) if re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,12})?", text) else None


def _series(part: ET.Element, labels: dict[str, str | int], source: str) -> ImportedSeries | None:
    """Return the series of a core; None if it has no samples."""
    statistics = part.find("statistics")
    samples = _number(statistics, "samples")
    buckets: dict[int, int] = {}
    for bucket in part.iterfind("histogram/bucket"):
        index, value = bucket.get("index", ""), bucket.get("value", "")
        if not re.fullmatch(r"[0-9]{1,9}", index) or not re.fullmatch(r"[0-9]{1,18}", value):
            raise damaged(source, f"a bucket has an invalid index or value ('{index[:20]}', '{value[:20]}')")
        buckets[int(index)] = buckets.get(int(index), 0) + int(value)
    buckets = {index: buckets[index] for index in sorted(buckets) if buckets[index]}
    binned = sum(buckets.values())
    if samples is None and not binned:
        return None
    count = binned if samples is None else int(samples)
    if count < binned:
        raise damaged(source, f"a core reports {count} samples, but its histogram has {binned}")
    if not count:
        return None
    names = ("minimum", "maximum", "mean", "standard_deviation")
    low, high, mean, deviation = (_number(statistics, name) for name in names)
    if high is None and count > binned:
        low = None
    else:
        low = Fraction(min(buckets, default=0)) if low is None else low
        high = Fraction(max(buckets, default=0)) if high is None else high
    return ImportedSeries(
        labels=labels,
        histogram={index * 1000: samples_in for index, samples_in in buckets.items()},
        count=count,
        overflow=count - binned,
        limit_ns=(max(buckets) + 1) * 1000 if buckets and count > binned else None,
        minimum_ns=None if low is None else int(low * 1000),
        maximum_ns=None if high is None else int(high * 1000),
        average_ns=None if mean is None else mean * 1000,
        std_ns=None if deviation is None else float(deviation * 1000),
    )


def _cores(measured: ET.Element, source: str) -> list[ImportedSeries]:
    """Return one series for each core, or the whole system's series if there are no cores."""
    series: list[ImportedSeries] = []
    for core in measured.iterfind("core"):
        identity = core.get("id", "")
        if not re.fullmatch(r"[0-9]{1,5}", identity):
            raise damaged(source, f"a core has the invalid id '{identity[:20]}'")
        if (of_core := _series(core, {"cpu": int(identity)}, source)) is not None:
            series.append(of_core)
    if not series and (system := measured.find("system")) is not None:
        whole = _series(system, {}, source)
        series = [] if whole is None else [whole]
    return series


def _text(root: ET.Element, *paths: str) -> str | None:
    return next((text for path in paths if (text := (root.findtext(path) or "").strip())), None)


def _facts(root: ET.Element) -> dict[str, str | int]:
    facts: dict[str, str | int] = {}
    for name, element in {"nodename": "node", "release": "kernel", "machine": "arch"}.items():
        if text := _text(root, f"uname/{element}", f"SystemInfo/uname/{element}"):
            facts[name] = text[:200]
    kernel = next(root.iter("kernel"), None)
    if kernel is not None and kernel.get("is_RT") is not None:
        facts["realtime"] = int(kernel.get("is_RT") == "1")
    return facts


def _duration_ns(root: ET.Element) -> int | None:
    element = next(root.iter("run_info"), None)
    if element is None:
        return None
    parts = [element.get(name, "") for name in ("days", "hours", "minutes", "seconds")]
    if not all(re.fullmatch(r"[0-9]{1,9}", part) for part in parts):
        return None
    return clock_ns(*parts) or None


def _priority(measured: ET.Element) -> dict[str, Any]:
    values = {core.get("priority", "") for core in measured.iterfind("core")}
    known = [int(value) for value in values if re.fullmatch(r"[0-9]{1,2}", value)]
    return {"priority": min(known)} if known else {}


def parse_summary(data: bytes, source: str) -> list[Measurement]:
    """Parse the measurements in summary.xml. Raises InputError if it is foreign or damaged."""
    root = _root(data, source)
    if root.tag != "rteval":
        raise InputError(f"{source} is not rteval's summary.xml: its outermost element is {root.tag[:40]!r}")
    result: list[Measurement] = []
    for measured in (element for tool in TOOLS for element in root.iter(tool)):
        series = _cores(measured, source)
        if not series:
            continue
        marks: list[Mark] = []
        results: list[Result] = []
        command = (measured.get("command_line") or "")[:1000]
        if measured.tag == "cyclictest" and command:
            series = [
                replace(of_thread, interval_ns=1000 * us if (us := interval_us(command, thread)) else None)
                for thread, of_thread in enumerate(series)
            ]
        if measured.tag == "timerlat":
            marks += [ImportMarkKind.QUANTITIES_MIXED.mark(), ImportMarkKind.OVERFLOW_UNKNOWN.mark()]
            for report in measured.iter("stoptrace_report"):
                text = "\n".join(part.strip() for part in report.itertext() if part.strip())
                cpu = report.get("CPU", "unknown")[:10]
                results.append(
                    Result(name="explanation", labels={"cpu": cpu}, values={"text": text[:20_000]})
                )
        result.append(
            Measurement(
                tool=f"rteval {measured.tag}",
                source=source,
                series=series,
                resolution_ns=1000,
                version=root.get("version"),
                command=command or None,
                system=_facts(root),
                duration_ns=_duration_ns(root),
                parameters=_priority(measured),
                marks=marks,
                results=results,
                releases=measured.tag == "cyclictest",
            )
        )
    if not result:
        raise InputError(f"{source} does not contain a measurement by cyclictest or timerlat")
    return result


RTEVAL = Importer(
    "rteval",
    "summary.xml",
    lambda head: "<rteval" in head,
    lambda path, _hints: parse_summary(document(path), str(path)),
)
