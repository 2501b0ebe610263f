# SPDX-License-Identifier: MIT
"""Records as a command names them: a folder, `latest`, or `NAME=RECORD`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.record.reader import Record, latest_record

if TYPE_CHECKING:
    from collections.abc import Sequence

LATEST = "latest"
RECORDS = Path("rtgauge-runs")


def record_folder(named: Path) -> Path:
    """The folder of a record: `latest` is the one begun last in rtgauge-runs, where there is no folder of that name. Raises InputError where none is there."""
    return latest_record(RECORDS) if str(named) == LATEST and not named.exists() else named


def open_record(named: Path) -> Record:
    """The record of this name. Raises RecordError, or InputError for `latest` where there is none."""
    return Record.open(record_folder(named))


def open_records(named: Sequence[Path], labelled: Sequence[str]) -> list[Record]:
    """Every record, those of `labelled` (NAME=RECORD) with their names; one that is named in both ways is there once.

    Raises InputError for no record, or a label without a name, RecordError for a damaged record.
    """
    labels: dict[Path, str] = {}
    for text in labelled:
        name, equals, folder = text.partition("=")
        if not (name.strip() and equals and folder):
            raise InputError(f"--label {text}: write NAME=RECORD, e.g. before=rtgauge-runs/RECORD")
        labels[record_folder(Path(folder))] = name.strip()
    if len(set(labels.values())) < len(labels):
        raise InputError("--label gives two records the same name")
    folders = [record_folder(folder) for folder in named]
    known = {folder.resolve(): name for folder, name in labels.items()}
    present = {folder.resolve() for folder in folders}
    records = [Record.open(folder) for folder in (*folders, *(folder for folder in labels if folder.resolve() not in present))]
    if not records:
        raise InputError("name a record: rtgauge compare RECORD..., or latest")
    return [replace(record, label=known.get(record.path.resolve())) for record in records]
