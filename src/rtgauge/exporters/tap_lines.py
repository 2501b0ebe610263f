# SPDX-License-Identifier: MIT
"""The Test Anything Protocol, version 13: a test a step, and one each for the requirement and what was left
out: all pass where the run exits with 0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rtgauge.escape import one_line
from rtgauge.exporters.step_figures import (
    failure_of,
    microseconds,
    missed_of,
    not_judged,
    run_checks,
    series_name,
    shown_series,
    step_name,
)

if TYPE_CHECKING:
    from rtgauge.record.reader import Record


def _text(text: str) -> str:
    """A description: `#` would begin a directive."""
    return one_line(text).replace("#", "no.")


def tap(record: Record) -> bytes:
    """The lines. Figures are YAML blocks below each test (of JSON values, which YAML includes)."""
    checks = run_checks(record)
    lines = ["TAP version 13", f"1..{len(record.steps) + len(checks)}"]
    number = 0
    for number, step in enumerate(record.steps, start=1):
        failure, unknown = failure_of(record, step), not_judged(record, step)
        result = "not ok" if failure is not None else "ok"
        directive = f" # SKIP {_text(unknown)}" if unknown is not None and failure is None else ""
        lines += [f"{result} {number} - {_text(step.id)}: {_text(step_name(step))}{directive}", "  ---"]
        if failure is not None:
            lines.append(f"  message: {json.dumps(failure)}")
        lines += [
            f"  {json.dumps(series_name(series))}: {{count: {series.count}, missed: "
            f"{json.dumps(missed_of(step, series))}, "
            f"max_us: {json.dumps(microseconds(series.max_ns))}}}"
            for series in shown_series(step)
        ]
        lines += [
            f"  {json.dumps(one_line(mark.name))}: {json.dumps(one_line(mark.detail))}"
            for mark in {mark.name: mark for mark in step.marks}.values()
        ]
        lines.append("  ...")
    for at, check in enumerate(checks, start=number + 1):
        directive = f" # SKIP {_text(check.skipped)}" if check.skipped is not None else ""
        lines.append(f"{'ok' if check.failure is None else 'not ok'} {at} - {_text(check.name)}{directive}")
        if check.failure is not None:
            lines += ["  ---", f"  message: {json.dumps(check.failure)}", "  ..."]
    return ("\n".join(lines) + "\n").encode()
