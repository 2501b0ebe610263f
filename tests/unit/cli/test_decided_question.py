# SPDX-License-Identifier: MIT
"""What a record asks, in words: `rtgauge resume` says it if an option would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rtgauge.analysis.gate_options import GateOptions
from rtgauge.cli.decided import gate_question
from rtgauge.cli.resume_command import question_of_record
from rtgauge.record.reader import Record
from tests.support.records import Shape, write_record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "expected_text"),
    [
        ({}, "p99.9 of wakeup latency under idle, cpu, 10 % larger, 12 pairs"),
        ({"series": "wakeup/latency/cpu"}, "p99.9 of wakeup latency under cpu, 10 % larger, 12 pairs"),
        ({"larger_than": 2.0, "quantile": "p50", "max_pairs": 24},
         "p50 of wakeup latency under idle, cpu, 3.0 times as large, 24 pairs"),
        ({"require": "latency<=1ms"},
         "violations of latency<=1ms by wakeup latency under idle, cpu, 10 % larger, 12 pairs"),
    ],
)  # fmt: skip
def test_a_gate(tmp_path: Path, options: dict[str, object], expected_text: str) -> None:
    record = Record.open(write_record(tmp_path, Shape(seconds=1, cpus=(0,), loads=("idle", "cpu"))))
    asks = GateOptions.model_validate({"max_pairs": 12, **options})
    assert gate_question(asks, record.run.planned) == expected_text


def test_a_run_that_the_words_name_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_record(tmp_path, Shape(seconds=1, cpus=(0,), loads=("idle", "cpu"), verdict=None))
    expected_text = "wakeup latency under idle, cpu, 2 steps"
    assert question_of_record(["--load", "memory", str(path)], tmp_path) == expected_text
    assert question_of_record([f"{path}", "--duration=1s"], tmp_path) == expected_text
    monkeypatch.chdir(tmp_path)
    assert question_of_record(["nowhere", "--load", "cpu"], tmp_path) is None
    assert question_of_record(["--duration=1s"], tmp_path) is None, "no record is unfinished"
    path.rename(path.with_name(f"{path.name}.partial"))
    assert question_of_record(["--duration=1s"], tmp_path) == expected_text
