# SPDX-License-Identifier: MIT
"""A report for KCIDB (kernel CI's database): a test for each figure of each step, with its number in seconds,
and one for each verdict and what was left out.

The origin is `rtgauge`, the build the kernel's release: who submits it puts their own there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rtgauge.escape import one_line
from rtgauge.exporters.step_figures import (
    failure_of,
    missed_of,
    run_checks,
    series_name,
    shown_series,
    step_name,
    verdict_of,
)
from rtgauge.record.facts import UNKNOWN
from rtgauge.record.files import clean_name

if TYPE_CHECKING:
    from rtgauge.record.model import Step
    from rtgauge.record.reader import Record

ORIGIN = "rtgauge"
VERSION = {"major": 5, "minor": 3}
FIGURES = ("min_ns", "mean_ns", "p99_ns", "p99_9_ns", "max_ns")


def _build(record: Record, step: Step) -> str:
    release = record.system(next(iter(step.key.targets.values()), "local")).kernel.release
    return f"{ORIGIN}:{one_line(release or UNKNOWN)}"


def kcidb(record: Record) -> bytes:
    """The report as JSON."""
    tests: list[dict[str, Any]] = []
    for step in record.steps:
        path = f"rtgauge.{clean_name(step.key.probe)}.{clean_name(step.key.load)}".replace(" ", "-")
        about = {
            "build_id": _build(record, step),
            "origin": ORIGIN,
            "start_time": step.started,
            "comment": step_name(step),
        }
        misc = {
            "deployment": one_line(step.key.deployment),
            "marks": [one_line(f"{mark.severity.value}: {mark.name}: {mark.detail}") for mark in step.marks],
        }
        status = (
            "FAIL"
            if failure_of(record, step) is not None
            else "DONE"
            if verdict_of(record, step) is None
            else "PASS"
        )
        tests.append(
            {
                **about,
                "id": f"{ORIGIN}:{record.run.id}/{step.id}",
                "path": path,
                "status": status,
                "misc": misc,
            }
        )
        for series in shown_series(step):
            missed = {} if (count := missed_of(step, series)) is None else {"missed": count}
            for figure in FIGURES:
                value: float | None = getattr(series, figure)
                if value is None:
                    continue
                name = figure.removesuffix("_ns").replace("_", "-")
                bound = {"bound": "lower"} if figure in series.lower_bounds else {}
                tests.append(
                    {
                        **about,
                        "id": f"{ORIGIN}:{record.run.id}/{step.id}/{series.series}/{name}",
                        "path": f"{path}.{clean_name(series.metric)}.{name}",
                        "status": "DONE",
                        "number": {"value": value / 1e9, "unit": "s", "prefix": "metric"},
                        "misc": {"series": series_name(series), "count": series.count, **missed, **bound},
                    }
                )
    for number, check in enumerate(run_checks(record) if record.steps else []):
        tests.append(
            {
                "build_id": _build(record, record.steps[0]),
                "origin": ORIGIN,
                "id": f"{ORIGIN}:{record.run.id}/run/{number}",
                "path": "rtgauge.run",
                "status": "FAIL"
                if check.failure is not None
                else "SKIP"
                if check.skipped is not None
                else "PASS",
                "comment": check.name,
                "misc": {"reason": check.failure or check.skipped or ""},
            }
        )
    return (json.dumps({"version": VERSION, "tests": tests}, indent=1) + "\n").encode()
