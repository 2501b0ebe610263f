# SPDX-License-Identifier: MIT
"""The exit status of a run from which everything was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.cli.command_end import status
from rtgauge.record.reader import Record
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_without_a_step_could_not_measure(tmp_path: Path) -> None:
    record = Record.open(write_record(tmp_path, Shape(verdict=None, marks=False)))
    assert status(record, None) == 0
    record.steps.clear()
    assert status(record, None) == 3
    record.run.state = "interrupted"
    assert status(record, None) == 130
