# SPDX-License-Identifier: MIT
"""Emulated machines beside others."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtgauge.analysis.comparison import Comparison, Options, compare
from rtgauge.analysis.sides import pairs, sides_of
from rtgauge.errors import InputError
from rtgauge.record.reader import Record
from rtgauge.report.compare.chapters import chapter_of
from rtgauge.report.compare.page import html
from rtgauge.report.compare.tables import grids, machines_grid
from rtgauge.runner.machine_marks import machine_marks
from tests.support.records import Shape, write_record


def record(folder: Path, *, emulated: bool, host: str = "bench") -> Record:
    folder.mkdir()
    path = write_record(folder, Shape(host=host))
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


def compared(records: list[Record]) -> Comparison:
    sides = sides_of(records, force=True)
    return compare(sides, pairs(sides, None), Options(resamples=0, tails=False))


def test_machine_kernel_and_load_are_one_table_in_which_the_emulated_are_named(tmp_path: Path) -> None:
    records = [record(tmp_path / "a", emulated=False, host="bench"), record(tmp_path / "b", emulated=True, host="guest")]
    result = compared(records)
    grid = machines_grid(result)
    assert grid is not None
    assert grid.columns == ["", "bench", "guest"]
    rows = {row[0]: row[1:] for row in grid.rows}
    assert rows["processor"] == ["not emulated", "emulated"]
    assert rows["kernel"] == ["6.1.0-18-amd64"] * 2
    loads = {side.traits["load"] for side in result.sides}
    assert {name.partition(":")[0] for name in rows} - {"kernel", "processor"} == loads
    assert [note for note in grids(result)[0].notes if note.startswith("Emulated: guest.")]
    sides = sides_of(records, force=True)
    assert "Emulated: guest." in html([chapter_of(result, sides, pairs(sides, None))], records)


def test_one_machine_needs_no_such_table(tmp_path: Path) -> None:
    assert machines_grid(compared([record(tmp_path / "a", emulated=False)])) is None
    twice = [record(tmp_path / "b", emulated=False), record(tmp_path / "c", emulated=False)]
    assert machines_grid(compared(twice)) is None


def test_where_all_are_emulated_it_is_said_too(tmp_path: Path) -> None:
    result = compared([record(tmp_path / "a", emulated=True, host="one"), record(tmp_path / "b", emulated=True, host="two")])
    assert [note for note in grids(result)[0].notes if note.startswith("Emulated: all of them.")]
    result = compared([record(tmp_path / "c", emulated=False, host="one"), record(tmp_path / "d", emulated=False, host="two")])
    assert not [note for note in grids(result)[0].notes if "mulated" in note]


def test_a_step_on_an_emulated_machine_is_marked() -> None:
    (mark,) = machine_marks("lab:debian", {"machine": {"emulated": True}})
    assert (mark.name, mark.severity) == ("emulated", "note")
    assert machine_marks("ssh://board", {"machine": {"emulated": "unknown"}}) == []


def test_a_step_on_this_machine_beside_guests_is_doubtful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert machine_marks("local", {}) == []
    monkeypatch.setattr("rtgauge.runner.machine_marks.all_running", lambda: [SimpleNamespace(name="debian")])
    (mark,) = machine_marks("local", {})
    assert (mark.name, mark.severity) == ("guests-running", "doubtful")
    assert "debian" in mark.detail
    assert machine_marks("ssh://board", {}) == []
