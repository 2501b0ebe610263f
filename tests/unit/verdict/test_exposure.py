# SPDX-License-Identifier: MIT
"""The exposure of a verdict, against the rule of three and by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from rtgauge.record.model import Exposure
from rtgauge.record.reader import Record
from rtgauge.report.record_conclusion import conclude, exposure_text
from rtgauge.report.record_view import RecordView
from rtgauge.verdict.requirement import parse_requirement
from rtgauge.verdict.run_verdict import judge_run
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path


def judged(folder: Path, require: str, shape: Shape) -> tuple[Record, Exposure]:
    record = Record.open(write_record(folder, shape))
    record.run.verdicts = judge_run(parse_requirement(require), record)
    exposure = record.run.verdicts[0].exposure
    assert exposure is not None
    assert all(verdict.exposure is None for verdict in record.run.verdicts[1:])
    return record, exposure


CALM = Shape(seconds=5, loads=("idle", "cpu"), repeats=2, marks=False, missed_under=(), left_out=False)


def test_all_steps_together_exclude_a_share(tmp_path: Path) -> None:
    record, exposure = judged(tmp_path, "latency<=100ms", CALM)
    assert (exposure.activations, exposure.violations) == (2 * 2 * 2 * 5_000, 0)
    assert (exposure.runs, exposure.boots, exposure.conditions) == (2, 1, 2)
    assert exposure.share_excluded == pytest.approx(-math.log(0.05) / 40_000, rel=1e-3)
    per_second = exposure.share_excluded * 40_000 / exposure.measured_s
    assert exposure.per_hour_excluded == pytest.approx(per_second * 3600)
    assert exposure.next_share == pytest.approx(1e-5)
    assert exposure.next_s == pytest.approx(exposure.measured_s * 299_572 / 40_000, rel=1e-3)
    assert exposure.next_boards == 8
    assert conclude(RecordView(record)).exposure == exposure_text(exposure)
    assert exposure_text(exposure).startswith("40,000 activations in 2 runs, 1 boot, 2 conditions and ")
    assert "1 in 100,000, measure for" in exposure_text(exposure)


def test_an_observed_rate_is_not_excluded_by_more_of_it(tmp_path: Path) -> None:
    _, exposure = judged(tmp_path, "latency<=10us hardness=50%", CALM)
    assert exposure.violations > 1_000
    assert exposure.share_excluded > exposure.violations / exposure.activations
    assert exposure.next_s is None
    assert "if further runs vary" in exposure_text(exposure)
    assert exposure_text(exposure).endswith("per hour")


def test_each_run_with_a_boot_of_its_own_counts(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, CALM))
    record.run.plan["alternate"] = {"sides": ["a", "b"], "boot_between": True}
    exposure = judge_run(parse_requirement("latency<=1s"), record)[0].exposure
    assert exposure is not None
    assert exposure.boots == 2


def test_nothing_counted_is_no_exposure(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, CALM))
    assert judge_run(parse_requirement("response<=1s"), record)[0].exposure is None


def test_boots_that_the_steps_name_are_counted(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, CALM))
    for number, step in enumerate(record.steps):
        step.boot_id = f"boot {number // 2}"
    exposure = judge_run(parse_requirement("latency<=100ms"), record)[0].exposure
    assert exposure is not None
    assert exposure.boots == len(record.steps) // 2 == 2
