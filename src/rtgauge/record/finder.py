# SPDX-License-Identifier: MIT
"""Finds a record by what the user calls it: its folder, its name as `rtgauge list` prints it, or `latest`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rtgauge.errors import RecordError
from rtgauge.record.reader import read_run

RECORDS = Path("rtgauge-runs")
"""Where records are kept if no other folder is named."""
LATEST = "latest"
PARTIAL = ".partial"


def record_folders(out: Path) -> list[Path]:
    """The records in a folder, the oldest first: their names begin with the time."""
    return sorted(path.parent for path in out.glob("*/run.json") if not path.parent.name.startswith("."))


def _begun_last(out: Path) -> Path:
    begun: list[tuple[str, Path]] = []
    for folder in record_folders(out) if out.is_dir() else []:
        with suppress(RecordError):
            begun.append((read_run(folder).created, folder))
    if not begun:
        raise RecordError(f"there is no latest record: {out} holds none; rtgauge run makes one")
    return max(begun)[1]


def find_record(named: Path) -> Path:
    """The folder of a record. What is there under that path is taken as it is.

    `latest` is the record in rtgauge-runs that was begun last, finished or not, DIR/latest that in DIR;
    another name without a folder is looked for
    in rtgauge-runs, with or without its `.partial`. Raises RecordError for `latest` if there is no record.
    """
    if named.exists():
        return named
    if named.name == LATEST:
        out = RECORDS if named == Path(LATEST) else named.parent
        return _begun_last(out)
    places = [named, RECORDS / named] if len(named.parts) == 1 else [named]
    candidates = [place.with_name(f"{place.name}{end}") for place in places for end in ("", PARTIAL)]
    candidates += [place.with_name(place.name.removesuffix(PARTIAL)) for place in places]
    return next((candidate for candidate in candidates if candidate.is_dir()), named)
