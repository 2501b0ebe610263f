# SPDX-License-Identifier: MIT
"""A name of an earlier version is answered by the name of today."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rtgauge.cli.main import main
from rtgauge.nearest_name import RENAMED
from rtgauge.record.marks import mark_kinds
from rtgauge.validation import GONE_KEYS

if TYPE_CHECKING:
    from pathlib import Path

GONE = {
    "explain latest": "rtgauge show latest --why",
    "report latest": "rtgauge show latest --page",
    "run --cpus 1": "--cpu",
    "run --boot-between": "--boot each-run",
    "run --deployments-by boot": "--boot each-deployment",
    "run --live-at 0.0.0.0:8377": "--live=ADDRESS:PORT",
    "run --resume latest": "rtgauge resume RECORD",
    "gate --resume latest": "rtgauge resume RECORD",
    "compare --label a=b": "--side NAME=RECORD",
    "watch --watch 1": "--pid",
    "marks activations-untold": "activations-unknown",
    "marks in-band-switches": "mode-switches",
}
"""What was typed in an earlier version -> what it is called today."""


def answer(typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command is refused."""
    monkeypatch.setattr(sys, "argv", ["rtgauge", *typed.split()])
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(("typed", "today"), GONE.items())
def test_a_command_an_option_or_a_mark(
    typed: str, today: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert today in answer(typed, monkeypatch, capsys)


@pytest.mark.parametrize(("key", "today"), GONE_KEYS.items())
def test_a_key_of_a_plan(
    key: str, today: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'{key} = "boot"\n[[step]]\nprobe = "wakeup"\n')
    assert today in answer(f"run {plan}", monkeypatch, capsys)


def test_the_names_of_today_exist() -> None:
    assert set(RENAMED.values()) <= set(mark_kinds())
    assert not set(RENAMED) & set(mark_kinds())
