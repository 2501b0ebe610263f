# SPDX-License-Identifier: MIT
"""Finds the values on a machine that differ from the settings that a tuning kept."""

from __future__ import annotations

from pathlib import Path

from rtgauge.record.reader import Record, find_record
from rtgauge.target.open_target import reader
from rtgauge.tune.installing import read_files, same, values_of
from rtgauge.tune.keep_files import Value, keep_files
from rtgauge.tune.result import TuneResult


def kept_values(named: Path) -> list[Value]:
    """Return the values that a tuning kept, from the folder that `--files` wrote or from its record. Raises
    InputError, RecordError.
    """
    found = find_record(named)
    if found.is_dir() and not (found / "run.json").exists():
        return values_of(read_files(found))
    record = Record.open(found)
    return values_of(keep_files(TuneResult.of(record), record))


def drifted(named: Path, target: str) -> dict[Value, str | None]:
    """Return the values that were kept, each with the target's present one; None if that is the same.

    Raises InputError, RecordError, MeasureError.
    """
    values = kept_values(named)
    with reader(target) as (_, read):
        files = read([each.path for each in values])
    found: dict[Value, str | None] = {}
    for each in values:
        now = files.text(each.path)
        is_same = now is not None and same(now, each.wanted)
        found[each] = None if is_same else now if now is not None else files.error(each.path) or "not there"
    return found
