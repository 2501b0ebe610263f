# SPDX-License-Identifier: MIT
"""labels.json holds what the user says about a record. It stays in the record's folder."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rtgauge.record.model import SCHEMA_VERSION, Model
from rtgauge.record.reader import read_model
from rtgauge.record.record_folder import RecordFolder

LABELS = "labels.json"
MOST_LABELS, LONGEST = 64, 200


def check_word(text: str) -> str:
    """Return `text` if it can be a name, a key or a value: one line of 1 to LONGEST characters. Raises
    ValueError otherwise.
    """
    if not text.strip() or len(text) > LONGEST or not text.isprintable():
        raise ValueError(f"give 1 to {LONGEST} characters on one line")
    return text


Word = Annotated[str, AfterValidator(check_word)]


class Labels(Model):
    """The content of labels.json. `machines` maps each target of the run to the user's machine name."""

    schema_version: int = SCHEMA_VERSION
    commit: Word | None = Field(default=None, description="commit of the software under test")
    labels: dict[Word, Word] = Field(default_factory=dict, max_length=MOST_LABELS)
    machines: dict[str, Word] = Field(default_factory=dict, max_length=MOST_LABELS)


def read_labels(folder: RecordFolder) -> Labels:
    """Read the record's labels; empty if it has none. Raises RecordError if the file is damaged."""
    return read_model(folder.file(LABELS), Labels) if folder.has(LABELS) else Labels()


def write_labels(folder: RecordFolder, labels: Labels) -> None:
    """Write the labels into the record, whole or not at all. Raises OSError."""
    folder.write(LABELS, labels.model_dump_json(indent=1).encode())
