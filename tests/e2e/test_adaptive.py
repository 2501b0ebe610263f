# SPDX-License-Identifier: MIT
"""A run whose steps are asked for by what was measured: it grows, ends, and goes on where it was stopped."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from rtgauge.cli.progress import Display
from rtgauge.plan.make_plan import Overrides, make_plan
from rtgauge.record.reader import Record
from rtgauge.runner.interrupt import Interrupt
from rtgauge.runner.measure_run import RunOptions, resume_run, start_run
from rtgauge.study.adaptive import AdaptiveStudy
from tests.support.cli import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rtgauge.plan.make_plan import Plan
    from rtgauge.record.model import StepKey

pytestmark = [pytest.mark.engine, pytest.mark.root]


def steps(*intervals_us: int) -> Plan:
    entries = [{"interval": f"{us}us", "count": 100, "warm-up": "0s", "cpu": "0"} for us in intervals_us]
    return make_plan({"name": "halving", "order": "as-written", "step": entries}, "a test", Overrides())


class Halving:
    """Halves the interval of the last step until it is 1 ms."""

    name = "halving"
    description = "a test"

    def begin(self, overrides: Overrides) -> Plan:
        return steps(8000)

    def next_steps(self, record: Record, overrides: Overrides) -> Sequence[StepKey]:
        last_us = min(step.key.parameters.get("interval_ns") for step in record.steps) // 1000
        return steps(last_us // 2).steps if last_us > 1000 else []


def intervals_us(record: Record) -> list[int]:
    return [step.key.parameters.get("interval_ns") // 1000 for step in record.steps]


def test_a_study_grows_until_it_adds_no_steps(tmp_path: Path) -> None:
    study = AdaptiveStudy(Halving(), Overrides())
    with Interrupt(lambda: None) as interrupt:
        path, run, _ = start_run(
            study.plan(),
            RunOptions(tmp_path, ["test"], wait_s=PATIENCE_S),
            Display(StringIO()),
            interrupt,
            study,
        )
    record = Record.open(path)
    assert intervals_us(record) == [8000, 4000, 2000, 1000]
    assert run.state == "complete"
    assert len(run.planned) == 4
    assert [step.id[:2] for step in record.steps] == ["01", "02", "03", "04"]


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    study = AdaptiveStudy(Halving(), Overrides())
    with Interrupt(lambda: None) as interrupt:

        def stopped(record: Record) -> Sequence[StepKey]:
            interrupt.requested = len(record.steps) == 2
            return [] if interrupt.requested else study(record)

        path, run, _ = start_run(
            study.plan(),
            RunOptions(tmp_path, ["test"], wait_s=PATIENCE_S),
            Display(StringIO()),
            interrupt,
            stopped,
        )
    assert run.state == "interrupted"
    assert path.name.endswith(".partial")
    with Interrupt(lambda: None) as interrupt:
        path, run, _ = resume_run(
            path, RunOptions(tmp_path, ["test"], wait_s=PATIENCE_S), Display(StringIO()), interrupt, study
        )
    assert intervals_us(Record.open(path)) == [8000, 4000, 2000, 1000]
    assert run.state == "complete"


def test_what_is_planned_is_not_measured_again(tmp_path: Path) -> None:
    plan = replace(steps(2000, 1000), name="same")
    with Interrupt(lambda: None) as interrupt:
        path, _, _ = start_run(
            plan,
            RunOptions(tmp_path, ["test"], wait_s=PATIENCE_S),
            Display(StringIO()),
            interrupt,
            lambda _: plan.steps,
        )
    assert intervals_us(Record.open(path)) == [2000, 1000]
