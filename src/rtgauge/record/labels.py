# SPDX-License-Identifier: MIT
"""labels.json: what the user says about a record, so that the record alone still has it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rtgauge.record.model import SCHEMA_VERSION, Model
from rtgauge.record.reader import read_model
from rtgauge.record.record_folder import RecordFolder

LABELS = "labels.json"
MOST_LABELS, LONGEST = 64, 200


def check_word(text: str) -> str:
    """A text of one line that can be a name, a key or a value. Raises ValueError."""
    if not text.strip() or len(text) > LONGEST or not text.isprintable():
        raise ValueError(f"give 1 to {LONGEST} characters of one line")
    return text


Word = Annotated[str, AfterValidator(check_word)]


class Labels(Model):
    """labels.json. `machines`: target, as in the run, -> what the user calls the machine."""

    schema_version: int = SCHEMA_VERSION
    commit: Word | None = Field(default=None, description="of what was tested")
    labels: dict[Word, Word] = Field(default_factory=dict, max_length=MOST_LABELS)
    machines: dict[str, Word] = Field(default_factory=dict, max_length=MOST_LABELS)


def read_labels(folder: RecordFolder) -> Labels:
    """What the user said about the record; nothing if it has no such file. Raises RecordError."""
    return read_model(folder.file(LABELS), Labels) if folder.has(LABELS) else Labels()


def write_labels(folder: RecordFolder, labels: Labels) -> None:
    """Keep it in the record: the file is whole or as it was. Raises OSError."""
    folder.write(LABELS, labels.model_dump_json(indent=1).encode())
