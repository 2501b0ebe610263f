# SPDX-License-Identifier: MIT
"""Lists the formats that can be imported, and finds the format of a file."""

from __future__ import annotations

from pathlib import Path

from rtgauge.errors import InputError
from rtgauge.importers.cyclictest import CYCLICTEST
from rtgauge.importers.foreign_file import head
from rtgauge.importers.hwlatdetect import HWLATDETECT
from rtgauge.importers.jitterdebugger import JITTERDEBUGGER, JITTERDEBUGGER_CSV, JITTERDEBUGGER_RAW
from rtgauge.importers.latmus import LATMUS, LATMUS_GNUPLOT
from rtgauge.importers.measurement import Hints, Importer, Measurement
from rtgauge.importers.oslat_table import OSLAT
from rtgauge.importers.rt_tests import RT_TESTS
from rtgauge.importers.rtai_testsuite import RTAI
from rtgauge.importers.rteval import RTEVAL
from rtgauge.importers.rtla import RTLA
from rtgauge.importers.xenomai import XENOMAI, XENOMAI_GNUPLOT
from rtgauge.suggest import nearest

# Formats that name themselves come before formats that only the shape of their lines identifies.
IMPORTERS: tuple[Importer, ...] = (
    JITTERDEBUGGER_RAW, RT_TESTS, JITTERDEBUGGER, RTEVAL, RTLA, OSLAT, LATMUS_GNUPLOT, LATMUS,
    XENOMAI_GNUPLOT, RTAI, XENOMAI, HWLATDETECT, JITTERDEBUGGER_CSV, CYCLICTEST,
)  # fmt: skip
BY_NAME: dict[str, Importer] = {
    importer.name: importer for importer in sorted(IMPORTERS, key=lambda importer: importer.name)
}


def importer_of(path: Path, name: str | None = None) -> Importer:
    """Find the importer for a file by its beginning, or by `name`. Raises InputError if there is none."""
    if name is not None:
        if name not in BY_NAME:
            raise InputError(f"unknown format '{name}'{nearest(name, BY_NAME)}")
        return BY_NAME[name]
    start = head(path)
    found = next((importer for importer in IMPORTERS if importer.recognises(start)), None)
    if found is None:
        raise InputError(
            f"{path} is in none of the formats {', '.join(BY_NAME)}; to read it as one of them, give --as "
            f"FORMAT"
        )
    return found


def read_file(path: Path, hints: Hints, name: str | None = None) -> list[Measurement]:
    """Read the measurements in a file. Raises InputError if it is foreign or damaged."""
    if name is not None:
        head(path)
    return importer_of(path, name).read(path, hints)
