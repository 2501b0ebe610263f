# SPDX-License-Identifier: MIT
"""Stalls of a known kind on this machine are found and named.

The machine may be busy: bounds are wide, and no size is asserted.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.support.cli import good, invoke, rtgauge
from tests.support.published import check_published
from tests.support.traces import lines_of, slices

from rtgauge.explain.analysis.culprits import explained_steps
from rtgauge.record.reader import Record


@pytest.mark.root
@pytest.mark.tracefs
@pytest.mark.alone  # other measurements would take more of these latencies
def test_a_higher_hog_and_page_faults_are_found_and_named(tmp_path: Path) -> None:
    completed = rtgauge(
        "selftest", "--kinds", "hog,fault,irqs-off", "--count", 30, "--json", "--out", tmp_path / "records"
    )
    assert completed.returncode in {0, 1, 4}, completed.stderr
    check_published(completed.stdout, "selftest")
    result = json.loads(completed.stdout)
    for row in result["kinds"][:2]:
        assert row["injected"] >= 5
        assert row["found"] >= 0.5 * row["injected"], row
        assert row["named"] >= 0.5 * row["found"], (
            row
        )  # other tests run meanwhile, and take more of some of these latencies
    assert [row["kind"] for row in result["kinds"]][:2] == ["hog", "fault"]
    assert "irqs-off" in {row["kind"] for row in result["kinds"]} | result["not_tried"].keys()
    record = Record.open(Path(result["record"]))
    step = explained_steps(record)[0]
    for explanation in step.explanations:
        assert sum(part.ns for part in explanation.parts) == explanation.latency_ns
    shown = good(invoke("show", record.path, "--details")).stdout
    assert "task rtgauge-hog" in shown
    page = (record.path / "report.html").read_text()
    assert "Self test" in page
    assert f"figure-explained-{step.step.id}" in page
    lanes = slices(
        json.loads(good(invoke("export", record.path, "--step", step.step.id, "--format", "perfetto")).stdout)
    )
    assert any("rtgauge-hog" in name for lane in lanes.values() for _, _, name in lane)
    if shutil.which("trace-cmd") is not None:
        good(
            invoke(
                "export",
                record.path,
                "--step",
                step.step.id,
                "--format",
                "trace.dat",
                "-o",
                tmp_path / "trace.dat",
            )
        )
        assert any(
            "rtgauge-hog" in line for line in lines_of((tmp_path / "trace.dat").read_bytes(), tmp_path)
        )
