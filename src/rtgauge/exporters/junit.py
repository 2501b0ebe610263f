# SPDX-License-Identifier: MIT
"""Writes JUnit XML for continuous integration.

Each step, the requirement and each item left out is a test. All tests pass if the run exits with 0.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import datetime

from rtgauge.escape import one_line
from rtgauge.exporters.exporter import Exporter
from rtgauge.exporters.step_figures import (
    failure_of,
    microseconds,
    missed_text,
    not_judged,
    run_checks,
    series_name,
    shown_series,
    step_name,
)
from rtgauge.record.model import SeriesSummary, Step
from rtgauge.record.quantiles import times_longer
from rtgauge.record.reader import Record


def _seconds(step: Step) -> float:
    try:
        return max(
            (datetime.fromisoformat(step.ended) - datetime.fromisoformat(step.started)).total_seconds(), 0.0
        )
    except (ValueError, TypeError):
        return 0.0


def _mark(case: ET.Element, failure: str | None, skipped: str | None) -> None:
    if failure is not None:
        ET.SubElement(case, "failure", message=failure, type="requirement")
    elif skipped is not None:
        ET.SubElement(case, "skipped", message=skipped)


def _p99_9(series: SeriesSummary) -> str:
    times = times_longer("p99_9_ns", series.count)
    if times is not None:
        return f"unknown; measure {times} times as long"
    return f"{'at least ' if 'p99_9_ns' in series.lower_bounds else ''}{microseconds(series.p99_9_ns)} us"


def junit(record: Record) -> bytes:
    """Return the record as JUnit XML."""
    cases: list[ET.Element] = []
    for step in record.steps:
        case = ET.Element(
            "testcase",
            classname=f"rtgauge.{one_line(step.key.probe)}",
            name=f"{step.id}: {step_name(step)}",
            time=f"{_seconds(step):.3f}",
        )
        _mark(case, failure_of(record, step), not_judged(record, step))
        lines = [
            f"{series_name(series)}: count {series.count}, missed {missed_text(step, series)}, max "
            f"{microseconds(series.max_ns)} us, p99.9 {_p99_9(series)}"
            for series in shown_series(step)
        ]
        lines += [
            f"{mark.severity.value}: {one_line(mark.name)}: {one_line(mark.detail)}" for mark in step.marks
        ]
        ET.SubElement(case, "system-out").text = "\n".join(lines)
        cases.append(case)
    for check in run_checks(record):
        case = ET.Element("testcase", classname="rtgauge", name=check.name, time="0")
        _mark(case, check.failure, check.skipped)
        cases.append(case)
    failed, skipped = (sum(case.find(tag) is not None for case in cases) for tag in ("failure", "skipped"))
    suites = ET.Element("testsuites")
    about = {
        "name": f"rtgauge {one_line(record.run.id)}",
        "tests": str(len(cases)),
        "failures": str(failed),
        "skipped": str(skipped),
        "errors": "0",
    }
    suite = ET.SubElement(suites, "testsuite", about, timestamp=record.run.created)
    suite.extend(cases)
    ET.indent(suites)
    return ET.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


JUNIT = Exporter(make=junit)
