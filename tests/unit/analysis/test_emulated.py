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
from rtgauge.report.compare.comparison_tables import grids, machines_grids
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


def test_one_table_has_machine_kernel_and_load(tmp_path: Path) -> None:
    records = [
        record(tmp_path / "a", emulated=False, host="bench"),
        record(tmp_path / "b", emulated=True, host="guest"),
    ]
    result = compared(records)
    (grid,) = machines_grids(result, 200)
    assert [column.title for column in grid.columns] == ["", "bench", "guest"]
    rows = {row[0]: row[1:] for row in grid.rows}
    assert rows["processor"] == ["not emulated", "emulated"]
    assert rows["kernel"] == ["6.1.0-18-amd64"] * 2
    loads = {side.traits["load"] for side in result.sides}
    assert {name.partition(":")[0] for name in rows} - {"kernel", "processor"} == loads
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


def table_rows(result: Comparison, tables: list[Table]) -> dict[tuple[str, str], list[str]]:
    """What the tables say of every machine in every load: its four figures."""
    actual: dict[tuple[str, str], list[str]] = {}
    hosts = {side.traits["host"] for side in result.sides}
    for grid in tables:
        for row in grid.rows:
            load, _, what = row[0].partition(": ")
            if what in hosts:
                actual[load, what] = row[1:5]
            elif what:
                for host, cell in zip(grid.columns[1:], row[1:], strict=True):
                    actual.setdefault((load, host.title), []).append(cell)
    return actual


@pytest.mark.parametrize("width", [80, 110, 160, 200])
def test_the_machine_table_fits_the_terminal_unbroken(five: Comparison, width: int) -> None:
    tables = machines_grids(five, width)
    lines = printed(tables, width).splitlines()
    assert max(map(len, lines)) <= width
    # a title, its columns and its notes, and a blank line between two tables
    assert len(lines) == sum(2 + len(grid.rows) + len(grid.notes) for grid in tables) + len(tables) - 1
    cells = [cell for grid in tables for row in grid.rows for cell in row if cell]
    words = " ".join(lines).split()
    assert all(part in words for cell in cells for part in cell.split())
    assert table_rows(five, tables) == table_rows(five, machines_grids(five, 1000))
    assert len(table_rows(five, tables)) == len(MACHINES) * 3
    text = " ".join(lines)
    assert all(side.traits["kernel"] in text and side.traits["host"] in text for side in five.sides)


def test_numbers_stand_below_one_another(five: Comparison) -> None:
    for width in (80, 160, 200):
        lines = [
            line
            for line in printed(machines_grids(five, width), width).splitlines()
            if line.startswith(("idle", "cpu", "memory"))
        ]
        ends = {match.end() for line in lines for match in re.finditer(r"[0-9]+\.[0-9]{3}(?=\s|$)", line)}
        assert len(ends) == (5 if width == 200 else 4)


@pytest.mark.parametrize("width", [20, 40, 60])
def test_no_number_is_cut_where_a_terminal_is_too_narrow_for_it(five: Comparison, width: int) -> None:
    tables = grids(five, width)
    words = printed(tables[:3], width).split()
    whole = {word for table in tables[:3] for row in table.rows for cell in row for word in cell.split()}
    numbers = {word for word in words if re.fullmatch(r"[0-9]+\.[0-9]+", word)}
    assert numbers  # columns that do not fit are left out, and named
    assert numbers <= whole


def test_one_machine_needs_no_such_table(tmp_path: Path) -> None:
    assert machines_grids(compared([record(tmp_path / "a", emulated=False)]), 80) == []
    twice = [record(tmp_path / "b", emulated=False), record(tmp_path / "c", emulated=False)]
    assert machines_grids(compared(twice), 80) == []


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
