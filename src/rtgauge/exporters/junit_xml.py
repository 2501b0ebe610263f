# SPDX-License-Identifier: MIT
"""JUnit XML: a case a step, and one each for the requirement and what was left out: all pass where the run
exits with 0 (run_checks).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import datetime
from typing import TYPE_CHECKING

from rtgauge.escape import one_line
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

if TYPE_CHECKING:
    from rtgauge.record.model import Step
    from rtgauge.record.reader import Record


def _seconds(step: Step) -> float:
    try:
        return max(
            (datetime.fromisoformat(step.ended) - datetime.fromisoformat(step.started)).total_seconds(), 0.0
        )
    except (ValueError, TypeError):
        return 0.0


def junit(record: Record) -> bytes:
    """The document."""
    cases: list[ET.Element] = []
    for step in record.steps:
        case = ET.Element(
            "testcase",
            classname=f"rtgauge.{one_line(step.key.probe)}",
            name=f"{step.id}: {step_name(step)}",
            time=f"{_seconds(step):.3f}",
        )
        failure, unknown = failure_of(record, step), not_judged(record, step)
        if failure is not None:
            ET.SubElement(case, "failure", message=failure, type="requirement")
        elif unknown is not None:
            ET.SubElement(case, "skipped", message=unknown)
        lines = [
            f"{series_name(series)}: count {series.count}, missed {missed_text(step, series)}, max "
            f"{microseconds(series.max_ns)} us, "
            "p99.9 "
            f"{'at least ' if 'p99_9_ns' in series.lower_bounds else ''}{microseconds(series.p99_9_ns)} "
            "us"
            for series in shown_series(step)
        ]
        lines += [
            f"{mark.severity.value}: {one_line(mark.name)}: {one_line(mark.detail)}" for mark in step.marks
        ]
        ET.SubElement(case, "system-out").text = "\n".join(lines)
        cases.append(case)
    for check in run_checks(record):
        case = ET.Element("testcase", classname="rtgauge", name=check.name, time="0")
        if check.failure is not None:
            ET.SubElement(case, "failure", message=check.failure, type="requirement")
        elif check.skipped is not None:
            ET.SubElement(case, "skipped", message=check.skipped)
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
