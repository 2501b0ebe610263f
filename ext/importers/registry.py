# SPDX-License-Identifier: MIT
"""Lists the formats that can be imported, and finds the format of a file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

from rtgauge import extension
from rtgauge.errors import InputError
from rtgauge.nearest_name import nearest
from rtgauge_ext.importers.foreign_file import head
from rtgauge_ext.importers.importer import Importer


@cache
def importers() -> tuple[Importer, ...]:
    """Return the importers of all extensions in the order in which they are tried.

    Raises InputError if a package's importer cannot be used.
    """
    usable = [
        cast("Importer", extension.load("importers", name, Importer))
        for name in extension.registered("importers")
    ]
    return tuple(sorted(usable, key=lambda importer: importer.by_shape))


def by_name() -> dict[str, Importer]:
    """Return the importers by name, in alphabetical order. Raises InputError as `importers` does."""
    return {importer.name: importer for importer in sorted(importers(), key=lambda importer: importer.name)}


def importer_of(path: Path, name: str | None = None) -> Importer:
    """Find the importer for a file by its beginning, or by `name`. Raises InputError if there is none."""
    known = by_name()
    if name is not None and name not in known:
        raise InputError(f"unknown format '{name}'{nearest(name, known)}")
    start = head(path)
    if name is not None:
        return known[name]
    recognised = next((importer for importer in importers() if importer.recognises(start)), None)
    if recognised is None:
        raise InputError(
            f"{path} has none of the formats {', '.join(known)}; to read it as one of them, give --as FORMAT"
        )
    return recognised
