# SPDX-License-Identifier: MIT
"""Writes the result of a gate as JUnit XML with one case. A failed measurement is an error, not a pass."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from rtgauge.errors import EXIT_OK
from rtgauge.escape import one_line
from rtgauge.report.gate_report import SUITE, notes
from rtgauge.verdict.gate_result import GateOutcome, GateResult


def gate_junit(result: GateResult) -> bytes:
    """Return the JUnit document of a gate."""
    failed = result.outcome in {GateOutcome.WORSE, GateOutcome.FAILS} and result.status != EXIT_OK
    passed = result.status == EXIT_OK
    suites = ET.Element("testsuites")
    counts = {"failures": str(int(failed)), "errors": str(int(not failed and not passed)), "skipped": "0"}
    suite = ET.SubElement(suites, "testsuite", {"name": SUITE, "tests": "1", **counts})
    name = one_line(f"{result.candidate} against {result.baseline}: {result.series or 'no series'}")
    case = ET.SubElement(suite, "testcase", {"classname": "rtgauge.gate", "name": name, "time": "0"})
    if not passed:
        ET.SubElement(
            case,
            "failure" if failed else "error",
            {"message": one_line(result.conclusion), "type": result.outcome.value},
        )
    ET.SubElement(case, "system-out").text = "\n".join(map(one_line, [result.conclusion, *notes(result)]))
    ET.indent(suites)
    return ET.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"
