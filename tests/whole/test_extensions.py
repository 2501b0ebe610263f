# SPDX-License-Identifier: MIT
"""What extensions name is there, and is what its kind needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest

from rtgauge.cli.main import main
from rtgauge.extension import Extension, Kind, commands, extensions, imported, load, registered
from rtgauge.runner.step import Measurer

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(file.parent.name for file in ROOT.glob("ext/*/extension.py"))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_everything_named_can_be_imported(kind: Kind) -> None:
    assert all(imported(reference) is not None for reference in registered(kind).values())


def test_every_command_can_be_imported() -> None:
    assert all(imported(command.target) is not None for command in commands().values())


def test_the_folders_of_ext_are_the_extensions_by_name() -> None:
    assert [extension.name for extension in extensions()] == ["core", *FOLDERS]


@pytest.mark.parametrize("extension", extensions(), ids=lambda extension: extension.name)
def test_an_object_is_short_and_says_what_it_is_for(extension: Extension) -> None:
    assert extension.line.endswith(".")
    if extension.name != "core":
        text = (ROOT / "ext" / extension.name / "extension.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 50


def test_the_table_of_extensions_has_each() -> None:
    table = (ROOT / "ext" / "README.md").read_text(encoding="utf-8")
    assert [name for name in FOLDERS if f"[{name}]({name}/README.md)" not in table] == []


def test_every_measurer_has_what_a_step_needs() -> None:
    assert all(load("measurers", name, Measurer) is not None for name in registered("measurers"))


def test_what_an_extension_no_longer_has_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {typed: today for extension in extensions() for typed, today in extension.gone.items()}
    assert bool(answers) == bool(FOLDERS)
    monkeypatch.setattr("rtgauge.cli.main.make_patient", lambda: None)
    for typed, today in answers.items():
        monkeypatch.setattr(sys, "argv", ["rtgauge", *typed.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code, today in capsys.readouterr().err) == (2, True), typed
