# SPDX-License-Identifier: MIT
"""Emulated machines beside others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtgauge.analysis.sides import sides_of
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from tests.support.records import write_record


def record(folder: Path, *, emulated: bool) -> Record:
    folder.mkdir()
    path = write_record(folder)
    (system,) = path.glob("targets/*/system.json")
    facts = json.loads(system.read_text())
    facts["machine"]["emulated"] = emulated
    system.write_text(json.dumps(facts))
    return Record.open(path)


def test_an_emulated_machine_is_compared_with_others_only_when_forced(tmp_path: Path) -> None:
    records = [record(tmp_path / "a", emulated=False), record(tmp_path / "b", emulated=True)]
    with pytest.raises(InputError, match=r"emulated.*--force"):
        sides_of(records)
    labels = [side.label for side in sides_of(records, force=True)]
    assert any("not emulated" in label for label in labels)
    assert any("emulated" in label and "not emulated" not in label for label in labels)


def test_emulated_machines_are_compared_with_one_another(tmp_path: Path) -> None:
    assert sides_of([record(tmp_path / "a", emulated=True), record(tmp_path / "b", emulated=True)])
