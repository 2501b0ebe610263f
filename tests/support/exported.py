# SPDX-License-Identifier: MIT
"""A record, one with hostile names, and what `export` writes of them: for the tests of every format."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtgauge.exporters.record_export import export
from rtgauge.record.reader import Record
from tests.support.records import Shape, write_record

HOSTILE = 'a"b\\c\x1b[2J|*_<&>%$#{}~^\u202e\n]]> -- é'


@pytest.fixture(scope="module", name="exported")
def exported_record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A record of some loads."""
    return Record.open(write_record(tmp_path_factory.mktemp("record"), Shape(seconds=3)))


@pytest.fixture(scope="module", name="hostile_exported")
def hostile_record(exported: Record) -> Record:
    """The same with a load whose name belongs to all formats at once."""
    steps = [
        step.model_copy(update={"key": step.key.model_copy(update={"load": HOSTILE})})
        for step in exported.steps
    ]
    return replace(exported, steps=steps)


def text(record: Record, form: str) -> str:
    """The record in a format that is text."""
    written = export(record, form, None)
    assert written is not None
    return written
