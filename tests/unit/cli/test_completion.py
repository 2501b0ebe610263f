# SPDX-License-Identifier: MIT
"""The shell completes the names of presets, studies, loads, marks and records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rtgauge.cli import completion
from tests.support.records import Shape, write_record


def test_the_words_that_can_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = write_record(tmp_path / "rtgauge-runs", Shape(seconds=1, loads=("idle",)))
    (tmp_path / "standing.toml").write_text("")
    assert completion.plans("stan") == ["standard", "standing.toml"]
    assert completion.loads("idle,mem") == ["idle,memory"]
    assert "steal" in completion.marks("st")
    assert completion.records("la") == ["latest"]
    assert completion.records(record.name[:6])[0] == record.name
    assert completion.records("rtgauge-r") == ["rtgauge-runs/"]
    assert completion.records("rtgauge-runs/")[0] == f"rtgauge-runs/{record.name}/"
    assert completion.records("none/") == []


@pytest.mark.parametrize(("words", "actual"), [("run stan", "standard"), ("run --load idle,sche", "idle,scheduler"),
                                              ("marks throt", "throttled"), ("show lat", "latest")])  # fmt: skip
def test_bash_gets_them(words: str, actual: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", "from rtgauge.cli.main import main; main()"],
        env={"_RTGAUGE_COMPLETE": "complete_bash", "COMP_WORDS": f"rtgauge {words}", "COMP_CWORD": str(len(words.split())),
             "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert actual in completed.stdout.split(), completed.stderr
