# SPDX-License-Identifier: MIT
"""Writes JUnit XML for continuous integration.

Each step of a record, its requirement and each item left out is a test; all pass if the run exits with 0. A
gate is one test; a failed measurement is an error, not a pass.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import datetime

from rtgauge.errors import EXIT_OK
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
from rtgauge.report.gate_report import SUITE, notes
from rtgauge.verdict.gate_result import GateOutcome, GateResult


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
    return _document(f"rtgauge {one_line(record.run.id)}", cases, timestamp=record.run.created)


def gate_junit(result: GateResult) -> bytes:
    """Return a gate as JUnit XML."""
    name = one_line(f"{result.candidate} against {result.baseline}: {result.series or 'no series'}")
    case = ET.Element("testcase", classname="rtgauge.gate", name=name, time="0")
    if result.status != EXIT_OK:
        kind = "failure" if result.outcome in {GateOutcome.WORSE, GateOutcome.FAILS} else "error"
        ET.SubElement(case, kind, message=one_line(result.conclusion), type=result.outcome.value)
    ET.SubElement(case, "system-out").text = "\n".join(map(one_line, [result.conclusion, *notes(result)]))
    return _document(SUITE, [case])


def _document(name: str, cases: Sequence[ET.Element], **more: str) -> bytes:
    """Return the document of one suite, with the numbers of its cases."""
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {
        counter: str(sum(case.find(tag) is not None for case in cases)) for counter, tag in tags.items()
    }
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", {"name": name, "tests": str(len(cases)), **counts, **more})
    suite.extend(cases)
    ET.indent(suites)
    return ET.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


JUNIT = Exporter(make=junit)
