# SPDX-License-Identifier: MIT
"""Checks a record's files against their checksums."""

from __future__ import annotations

import re

from rtgauge.errors import RecordError
from rtgauge.input_file import MOST_JSON
from rtgauge.record.reader import SUMS, Record, described_in
from rtgauge.record.record_folder import RecordFolder, damaged

SUM_LINE = re.compile(r"([0-9a-f]{64})  ([^\0]+)")


def check_files(record: Record) -> None:
    """Check every file against its checksum. A step's missing files are skipped, because the user may
    delete streams and logs.

    Raises RecordError for a file that differs.
    """
    _check_described(record.folder)
    for step in record.steps:
        for name in step.checksums:
            if record.has(step, name):
                try:
                    record.file(step, name).open().close()
                except (OSError, ValueError) as error:
                    raise damaged(record.file(step, name), error) from None


def _check_described(folder: RecordFolder) -> None:
    """Check run.json, step.json and system.json. Older records have no checksums of these files."""
    if not folder.has(SUMS):
        return
    file = folder.file(SUMS)
    try:
        lines = file.read(MOST_JSON).decode().splitlines()
    except (OSError, ValueError) as error:
        raise damaged(file, error) from None
    sums = {match[2]: match[1] for line in lines if (match := SUM_LINE.fullmatch(line)) is not None}
    if len(sums) < len(lines) or sorted(sums) != sorted(described_in(folder)):
        raise RecordError(f"{file} does not list exactly the files of the record: the record is damaged")
    for name, sha256 in sums.items():
        try:
            folder.file(name, sha256).open().close()
        except (OSError, ValueError) as error:
            raise damaged(folder.file(name), error) from None
