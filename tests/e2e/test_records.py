# SPDX-License-Identifier: MIT
"""show, list, report and export on a real record, and on damaged and foreign ones."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import jsonschema
import polars as pl
import pytest

from rtgauge.record.model import RunDocument
from tests.support.cli import error_line, good, invoke, rtgauge
from tests.support.real_record import document

pytestmark = [pytest.mark.engine, pytest.mark.root]

READERS = (("show",), ("show", "--page"), ("export",), ("export", "--format", "json"))


def test_show_as_text_and_as_json(real_record: Path) -> None:
    text = good(invoke("show", real_record)).stdout
    content = document(good(invoke("show", real_record, "--json")).stdout)
    jsonschema.validate(content, RunDocument.model_json_schema())
    assert str(real_record) in text.splitlines()[-1]
    assert "CPU " in text
    assert "missed" in text
    assert content["record"] == str(real_record)
    assert content["run"]["seed"] == 7
    assert content["systems"]["local"]["kernel"]["release"] == os.uname().release
    assert os.uname().release in good(invoke("show", real_record, "--details")).stdout
    assert all(one["exact_quantiles"] for step in content["steps"] for one in step["series"])


def test_list_names_every_record_and_says_what_it_left_out(record: Path) -> None:
    (record.parent / "foreign").mkdir()
    (record.parent / "foreign" / "run.json").write_text('{"hello": "world"}')
    (record.parent / "notes.txt").write_text("no record")
    completed = good(invoke("list", record.parent))
    assert record.name in completed.stdout
    assert "idle" in completed.stdout
    assert "foreign" in completed.stderr
    assert completed.stderr.startswith("rtgauge: ")
    listed = json.loads(good(invoke("list", record.parent, "--json")).stdout)
    assert [entry["record"] for entry in listed] == [str(record)]


def test_list_of_nothing(tmp_path: Path) -> None:
    assert good(invoke("list", tmp_path)).stdout == f"no records in {tmp_path}\n"
    assert json.loads(good(invoke("list", tmp_path, "--json")).stdout) == []


def test_report_writes_the_page_and_the_figures(real_record: Path, tmp_path: Path) -> None:
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    completed = good(invoke("show", real_record, "--page", page, "--figures", figures))
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "https://" not in page.read_text().partition("<script")[0]
    assert {path.suffix for path in figures.iterdir()} == {".png", ".svg", ".pdf"}
    assert all(str(path) in completed.stdout for path in [page, *figures.iterdir()])
    assert "cannot be written" in error_line(
        invoke("show", real_record, "--page", tmp_path / "no" / "page.html"), 2
    )


def test_export_in_every_format(real_record: Path, tmp_path: Path) -> None:
    content = document(good(invoke("show", real_record, "--json")).stdout)
    expected = [
        (step["id"], one["count"], one["max_ns"])
        for step in content["steps"]
        for one in [*step["series"], step["total"]]
    ]
    rows = list(csv.DictReader(io.StringIO(good(invoke("export", real_record)).stdout)))
    assert [(row["step"], int(row["count"]), int(row["max_ns"])) for row in rows] == expected
    table = tmp_path / "t.parquet"
    good(invoke("export", real_record, "--format", "parquet", "-o", table))
    assert pl.read_parquet(table).select("step", "count", "max_ns").rows() == expected
    windows = tmp_path / "w.parquet"
    good(invoke("export", real_record, "--format", "parquet", "--windows", "-o", windows))
    measured = pl.read_parquet(windows).filter(pl.col("phase") == "measure")
    assert measured["count"].sum() == sum(step["total"]["count"] for step in content["steps"])
    assert len(json.loads(good(invoke("export", real_record, "--format", "json")).stdout)) >= 1
    assert "did you mean 'parquet'" in error_line(invoke("export", real_record, "--format", "paruqet"), 2)
    assert "-o FILE" in error_line(invoke("export", real_record, "--format", "parquet"), 2)


def spoil(record: Path, name: str, how: str) -> None:
    """Damage one file of a record."""
    file = record / name
    if how == "missing":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif how == "binary":
        file.write_bytes(os.urandom(1000))
    elif how == "foreign":
        file.write_text('{"some": ["other", "tool"], "schema_version": 1}')
    elif how == "newer":
        file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": 99}))
    elif how == "a folder":
        file.unlink()
        file.mkdir()
    elif how == "list":
        file.write_text("[1, 2]")
    elif how == "deep":
        file.write_text("[" * 100_000)


@pytest.mark.parametrize(
    "how", ["missing", "empty", "cut", "binary", "foreign", "newer", "a folder", "list", "deep"]
)
@pytest.mark.parametrize("file", ["run.json", "step.json"])
def test_a_damaged_record_is_named_by_its_file(record: Path, file: str, how: str) -> None:
    name = file if file == "run.json" else f"steps/01-wakeup-idle-r1/{file}"
    spoil(record, name, how)
    for words in READERS[:1] if how in {"cut", "binary", "newer"} else READERS[:2]:
        line = error_line(invoke(words[0], record, *words[1:]), 2)
        assert str(record / name) in line
        assert how != "newer" or "newer rtgauge" in line


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "binary", "foreign", "a folder"])
def test_damaged_windows(record: Path, how: str, tmp_path: Path) -> None:
    name = "steps/02-wakeup-idle-r2/windows.parquet"
    spoil(record, name, how)
    assert str(record / name) in error_line(invoke("show", "--page", record), 2)
    assert str(record / name) in error_line(
        invoke("export", record, "--format", "parquet", "--windows", "-o", tmp_path / "w.parquet"), 2
    )
    good(invoke("show", record))


def test_windows_of_another_table(record: Path) -> None:
    name = "steps/02-wakeup-idle-r2/windows.parquet"
    pl.DataFrame({"series": ["x"], "other": [1]}).write_parquet(record / name)
    assert str(record / name) in error_line(invoke("show", "--page", record), 2)


@pytest.mark.parametrize("how", ["empty", "cut", "binary", "list"])
def test_damaged_facts(record: Path, how: str) -> None:
    spoil(record, "targets/local/system.json", how)
    assert "system.json" in error_line(invoke("show", record), 2)


@pytest.mark.parametrize("steps", [["../../../../../../etc"], ["01-wakeup-idle-r1", "01-wakeup-idle-r1"]])
def test_a_step_that_points_out_of_the_record_or_is_there_twice(record: Path, steps: list[str]) -> None:
    file = record / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "steps": steps}))
    reported = f"{file} has duplicate or invalid step names: the record is damaged"
    assert reported in error_line(invoke("show", record), 2)


def test_control_words_are_shown_as_text(record: Path) -> None:
    run = json.loads((record / "run.json").read_text())
    evil = "\x1b[2J\x07<script>alert(1)</script>"
    run["marks"] = [{"name": evil, "severity": "note", "detail": evil, "series": None}]
    run["left_out"] = [{"what": evil, "reason": evil, "remedy": evil}]
    (record / "run.json").write_text(json.dumps(run))
    for words in (("show", record), ("list", record.parent)):
        assert "\x1b" not in good(invoke(*words)).stdout
    good(invoke("show", "--page", record))
    assert "<script>alert" not in (record / "report.html").read_text()


def test_a_foreign_record_is_read_if_it_cannot_be_written(record: Path) -> None:
    moved = record.parent.parent / "elsewhere"
    shutil.move(record, moved)
    good(invoke("show", moved))
    line = error_line(invoke("show", moved, "--page", "/proc/page.html"), 2)
    assert "/proc/page.html" in line


@pytest.mark.parametrize(
    "words", [("show",), ("list",), ("export",), ("export", "--format", "json"), ("show", "--json")]
)
def test_the_reader_may_go(real_record: Path, words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    completed = rtgauge(
        words[0], real_record.parent if words[0] == "list" else real_record, *words[1:], stdout=write
    )
    os.close(write)
    assert (completed.returncode, completed.stderr) == (0, "")
