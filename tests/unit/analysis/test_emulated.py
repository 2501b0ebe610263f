# SPDX-License-Identifier: MIT
"""Emulated machines beside others."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from rtgauge.analysis.baselines import pairs
from rtgauge.analysis.comparison import ComparisonOptions, compare
from rtgauge.analysis.comparison_document import Comparison
from rtgauge.analysis.sides import sides_of
from rtgauge.errors import InputError
from rtgauge.record.facts import Facts, Virtualization
from rtgauge.record.reader import Record
from rtgauge.report.compare.comparison_page import chapter_of, html
from rtgauge.report.compare.comparison_tables import grids
from rtgauge.report.table import Table
from rtgauge.report.terminal_table import print_tables
from rtgauge.runner.step_loop import machine_marks
from tests.support.records import Shape, write_record


def record(folder: Path, *, emulated: bool, host: str = "bench", kernel: str | None = None) -> Record:
    folder.mkdir()
    path = write_record(folder, Shape(host=host))
    (system,) = path.glob("targets/*/system.json")
    facts = json.loads(system.read_text())
    facts["machine"]["emulated"] = emulated
    facts["kernel"]["release"] = kernel or facts["kernel"]["release"]
    system.write_text(json.dumps(facts))
    return Record.open(path)


def test_an_emulated_machine_is_compared_only_when_forced(tmp_path: Path) -> None:
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
    return compare(sides, pairs(sides, None), ComparisonOptions(intervals=False))


def test_a_note_names_the_emulated_machines(tmp_path: Path) -> None:
    records = [
        record(tmp_path / "a", emulated=False, host="bench"),
        record(tmp_path / "b", emulated=True, host="guest"),
    ]
    result = compared(records)
    assert [note for note in grids(result)[0].notes if note.startswith("Emulated: guest.")]
    sides = sides_of(records, force=True)
    assert "Emulated: guest." in html([chapter_of(result, sides)], records)


MACHINES = ("bench", "debian", "debian-rt", "debian-arm64", "debian-rt-arm64")


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Of five machines, idle and loaded, each with a kernel of its own."""
    folder = tmp_path_factory.mktemp("five")
    return compared(
        [
            record(folder / name, emulated=name != "bench", host=name, kernel=f"6.12.107+deb13-{name}-amd64")
            for name in MACHINES
        ]
    )


def printed(tables: list[Table], width: int) -> str:
    text = StringIO()
    print_tables(tables, Console(file=text, width=width, force_terminal=False))
    return text.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60])
def test_no_number_is_cut_where_a_terminal_is_too_narrow_for_it(five: Comparison, width: int) -> None:
    tables = grids(five)
    words = printed(tables[:3], width).split()
    whole = {word for table in tables[:3] for row in table.rows for cell in row for word in cell.split()}
    numbers = {word for word in words if re.fullmatch(r"[0-9]+\.[0-9]+", word)}
    assert numbers  # columns that do not fit are left out, and named
    assert numbers <= whole


def test_an_emulated_machine_is_reported_if_all_are(tmp_path: Path) -> None:
    result = compared(
        [record(tmp_path / "a", emulated=True, host="one"), record(tmp_path / "b", emulated=True, host="two")]
    )
    assert [note for note in grids(result)[0].notes if note.startswith("All sides are emulated.")]
    result = compared(
        [
            record(tmp_path / "c", emulated=False, host="one"),
            record(tmp_path / "d", emulated=False, host="two"),
        ]
    )
    assert not [note for note in grids(result)[0].notes if "mulated" in note]


def test_a_step_on_an_emulated_machine_is_marked() -> None:
    (mark,) = machine_marks("lab:debian", Facts(machine=Virtualization(emulated=True)))
    assert (mark.name, mark.severity) == ("emulated", "note")
    assert machine_marks("ssh://board", Facts(machine=Virtualization(emulated=None))) == []
