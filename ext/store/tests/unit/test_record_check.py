# SPDX-License-Identifier: MIT
"""`store add` checks every file of a record that came from elsewhere, not only the files that it reads."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.messages import missing

from ext.store.tests.stored import run, small
from rtgauge.record.reader import read_run
from rtgauge.record.writer import RecordWriter


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record with the right checksums of all its files."""
    record = small(tmp_path / "runs", 1)
    (step,) = (record / "steps").iterdir()
    keep_checksums(record, {each.name: sha256(each.read_bytes()).hexdigest() for each in step.iterdir()})
    return record


def keep_checksums(record: Path, checksums: dict[str, str]) -> None:
    """Write these checksums of a step's files, and the right ones of the record's JSON files."""
    (described,) = record.glob("steps/*/step.json")
    about = json.loads(described.read_text())
    about["checksums"] = {name: checksum for name, checksum in checksums.items() if name != "step.json"}
    described.write_text(json.dumps(about))
    RecordWriter(record, record.name).write_run(read_run(record))


def refusal(record: Path, store: Path) -> str:
    return str(run("store", "add", record, "--store", store).exception)


def is_added(record: Path, store: Path) -> bool:
    return run("store", "add", record, "--store", store).stdout.startswith("added: ")


def test_a_damaged_table_is_refused(record: Path, tmp_path: Path) -> None:
    (table,) = record.glob("steps/*/windows.parquet")
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    assert "checksum" in refusal(record, tmp_path / "s.sqlite")


def test_a_file_that_only_its_checksum_covers_is_checked(record: Path, tmp_path: Path) -> None:
    (step,) = (record / "steps").iterdir()
    (step / "stream.ndjson").write_text("{}\n")
    known = json.loads((step / "step.json").read_text())["checksums"]
    keep_checksums(record, {**known, "stream.ndjson": "0" * 64})
    assert "stream.ndjson" in refusal(record, tmp_path / "s.sqlite")
    (step / "stream.ndjson").unlink()
    assert is_added(record, tmp_path / "s.sqlite")


@pytest.mark.parametrize("name", ["run.json", "step.json", "system.json"])
def test_a_changed_description_is_refused(record: Path, tmp_path: Path, name: str) -> None:
    """It is still valid JSON of its model: only its checksum tells."""
    (file,) = record.rglob(name)
    file.write_text(file.read_text() + "\n")
    store = tmp_path / "s.sqlite"
    assert not missing(refusal(record, store), f"{name} does not match its checksum", "damaged")
    (record / "SHA256SUMS").unlink()
    assert is_added(record, store), "an older record has no checksums"
