# SPDX-License-Identifier: MIT
"""Opens the records that a command names: a folder, a name from `rtgauge list`, `latest`, or NAME=RECORD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge.input_file import real_path
from rtgauge.nearest_name import nearest
from rtgauge.record.reader import Record, find_record


def open_record(named: Path) -> Record:
    """Open the record with this name. Raises RecordError if there is none or it is damaged."""
    return Record.open(find_record(named))


def with_one_step(record: Record, step: str | None) -> Record:
    """Return the record with only the step that `--step` names, or with all steps. Raises InputError if there
    is no such step.
    """
    if step is None:
        return record
    names = [known.id for known in record.steps]
    if step not in names:
        raise InputError(f"--step {step} is not one of {', '.join(names)}{nearest(step, names)}")
    return replace(record, steps=[known for known in record.steps if known.id == step])


def open_records(named: Sequence[Path], labelled: Sequence[str]) -> list[Record]:
    """Open each record once. `labelled`: texts NAME=RECORD, in which records may share a name.

    Raises InputError if no record is named or a label is wrong, RecordError if a record is damaged.
    """
    labels: dict[Path, str] = {}
    for text in labelled:
        name, equals, folder = text.partition("=")
        if not (name.strip() and equals and folder):
            raise InputError(f"--side {text}: write NAME=RECORD, e.g. before=rtgauge-runs/RECORD")
        labels[find_record(Path(folder))] = name.strip()
    folders = [find_record(folder) for folder in named]
    known = {real_path(folder): name for folder, name in labels.items()}
    present = {real_path(folder) for folder in folders}
    records = [
        Record.open(folder)
        for folder in (*folders, *(folder for folder in labels if real_path(folder) not in present))
    ]
    if not records:
        raise InputError("name a record: rtgauge compare RECORD..., or latest")
    return [replace(record, label=known.get(real_path(record.path))) for record in records]
