# SPDX-License-Identifier: MIT
"""What the user may call a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtgauge.errors import RecordError
from rtgauge.record.reader import find_record
from tests.unit.records import run


@pytest.fixture(name="runs")
def three_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("2026-11-21T10-00-00Z-a", "2026-11-22T10-00-00Z-b.partial", "2026-11-20T10-00-00Z-c"):
        (tmp_path / "rtgauge-runs" / name).mkdir(parents=True)
        (tmp_path / "rtgauge-runs" / name / "run.json").write_text(
            run(name).model_copy(update={"created": name[:20]}).model_dump_json()
        )
    return Path("rtgauge-runs")


@pytest.mark.parametrize(
    ("named", "folder"),
    [
        ("latest", "2026-11-22T10-00-00Z-b.partial"),
        ("rtgauge-runs/latest", "2026-11-22T10-00-00Z-b.partial"),
        ("2026-11-21T10-00-00Z-a", "2026-11-21T10-00-00Z-a"),
        ("rtgauge-runs/2026-11-20T10-00-00Z-c", "2026-11-20T10-00-00Z-c"),
        ("2026-11-22T10-00-00Z-b", "2026-11-22T10-00-00Z-b.partial"),
        ("rtgauge-runs/2026-11-22T10-00-00Z-b", "2026-11-22T10-00-00Z-b.partial"),
        ("rtgauge-runs/2026-11-21T10-00-00Z-a.partial", "2026-11-21T10-00-00Z-a"),
    ],
)
def test_a_record_is_found_by_each_of_its_names(runs: Path, named: str, folder: str) -> None:
    assert find_record(Path(named)) == runs / folder


def test_latest_is_by_when_it_was_begun_and_not_by_name(runs: Path) -> None:
    (runs / "2026-11-22T10-00-00Z-b.partial").rename(runs / "0")
    assert find_record(Path("latest")) == runs / "0"


def test_what_is_there_is_taken_as_it_is(runs: Path) -> None:
    Path("latest").mkdir()
    assert find_record(Path("latest")) == Path("latest")


def test_what_is_nowhere_stays_as_it_is_named(runs: Path) -> None:
    assert find_record(Path("elsewhere/2026-11-21T10-00-00Z-a")) == Path("elsewhere/2026-11-21T10-00-00Z-a")
    assert find_record(Path("nowhere")) == Path("nowhere")


def test_latest_needs_a_record(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="does not contain any record"):
        find_record(tmp_path / "latest")
