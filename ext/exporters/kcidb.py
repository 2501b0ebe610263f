# SPDX-License-Identifier: MIT
"""Writes reports for KCIDB, kernel CI's database.

Each step, the requirement and each item left out is a test. All tests pass if the run exits with 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rtgauge.errors import InputError
from rtgauge.escape import one_line
from rtgauge.exporters.exporter import Exporter
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
from rtgauge.record.model import Step
from rtgauge.record.quantiles import times_longer
from rtgauge.record.reader import Record

ORIGIN = "rtgauge"
VERSION = {"major": 5, "minor": 3}
FIGURES = ("min_ns", "mean_ns", "p99_ns", "p99_9_ns", "max_ns")


@dataclass(frozen=True)
class KernelSource:
    """The commit of the measured kernel, and who submits the report (`origin`). `describe`: git's name for
    the commit. `url`: the repository's clone address; empty if there is none.
    """

    origin: str
    commit: str
    describe: str
    url: str


def _build(record: Record, step: Step, source: KernelSource | None) -> dict[str, Any]:
    """Return the KCIDB build of a step. Raises InputError if the kernel release names another commit."""
    facts = record.system(next(iter(step.key.targets.values()), "local"))
    release = one_line(facts.kernel.release or UNKNOWN)
    if source is None:
        return {"id": f"{ORIGIN}:{release}"}
    named = re.search(r"-g([0-9a-f]{7,40})(?![0-9a-f])", release)
    if named is not None and not source.commit.startswith(named[1]):
        raise InputError(
            f"step {step.id} ran on kernel {release}, which was not built from commit {source.commit[:12]}; "
            f"give the tree that the kernel was built from"
        )
    machine = one_line(facts.kernel.architecture or UNKNOWN).lower()
    return {
        "id": f"{source.origin}:{source.commit[:12]}-{machine}",
        "checkout_id": f"{source.origin}:{source.commit}",
        "origin": source.origin,
        "architecture": machine,
        "status": "PASS",
        "comment": release,
    }


def kcidb(record: Record, source: KernelSource | None = None) -> bytes:
    """Return the report for KCIDB, kernel CI's database. It has a test for each step, for each figure (in
    seconds) of each series, and for each check of the run.

    With `source`, the report is a whole submission: the checkout, a build for each architecture, and the
    tests. Without `source`, the origin is `rtgauge` and the build is the kernel release, and the submitter
    must replace both. Raises InputError if a kernel release names a different commit from `source`.
    """
    origin = ORIGIN if source is None else source.origin
    builds = {step.id: _build(record, step, source) for step in record.steps}
    report: dict[str, Any] = {"version": VERSION}
    if source is not None:
        checkout = {
            "id": f"{origin}:{source.commit}",
            "origin": origin,
            "git_commit_hash": source.commit,
            "git_commit_name": source.describe,
            # KCIDB accepts only such addresses
            **({"git_repository_url": source.url} if source.url.startswith("https://") else {}),
            "valid": True,
        }
        report |= {
            "checkouts": [checkout],
            "builds": list({build["id"]: build for build in builds.values()}.values()),
        }
    tests: list[dict[str, Any]] = []
    for step in record.steps:
        about = {
            "build_id": builds[step.id]["id"],
            "origin": origin,
            "start_time": step.started,
            "comment": step_name(step),
        }
        tests += [{**about, **test} for test in _tests(record, step, f"{origin}:{record.run.id}/{step.id}")]
    for number, check in enumerate(run_checks(record) if record.steps else []):
        tests.append(
            {
                "build_id": builds[record.steps[0].id]["id"],
                "origin": origin,
                "id": f"{origin}:{record.run.id}/run/{number}",
                "path": "rtgauge.run",
                "status": check.result.upper(),
                "comment": check.name,
                "misc": {"reason": check.failure or check.skipped or ""},
            }
        )
    return (json.dumps({**report, "tests": tests}, indent=1) + "\n").encode()


def _tests(record: Record, step: Step, name: str) -> Iterator[dict[str, Any]]:
    """Yield a test for the step, which has the id `name`, and one for each figure of each series."""
    path = f"rtgauge.{clean_name(step.key.probe)}.{clean_name(step.key.load)}".replace(" ", "-")
    marks = [one_line(f"{mark.severity.value}: {mark.name}: {mark.detail}") for mark in step.marks]
    passes = "DONE" if verdict_of(record, step) is None else "PASS"
    yield {
        "id": name,
        "path": path,
        "status": "FAIL" if failure_of(record, step) is not None else passes,
        "misc": {"deployment": one_line(step.key.deployment), "marks": marks},
    }
    for series in shown_series(step):
        missed = {} if (count := missed_of(step, series)) is None else {"missed": count}
        for figure in FIGURES:
            value: float | None = getattr(series, figure)
            if value is None or times_longer(figure, series.count) is not None:
                continue
            figure_name = figure.removesuffix("_ns").replace("_", "-")
            bound = {"bound": "lower"} if figure in series.lower_bounds else {}
            yield {
                "id": f"{name}/{series.series}/{figure_name}",
                "path": f"{path}.{clean_name(series.metric)}.{figure_name}",
                "status": "DONE",
                "number": {"value": value / 1e9, "unit": "s", "prefix": "metric"},
                "misc": {"series": series_name(series), "count": series.count, **missed, **bound},
            }


KCIDB = Exporter(make=kcidb)
