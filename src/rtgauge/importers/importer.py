# SPDX-License-Identifier: MIT
"""What every importer is: how it recognises its files by their beginning, and how it reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rtgauge.importers.measurement import Measurement


@dataclass(frozen=True)
class Hints:
    """What the user knows and a file may not say: `unit_ns` (1: cyclictest -N), `interval_ns`."""

    unit_ns: int | None = None
    interval_ns: int | None = None


@dataclass(frozen=True)
class Importer:
    """One format.

    `recognises` gets the first 64 KiB as text; `read` raises InputError for a foreign or damaged file.
    """

    name: str
    help: str
    recognises: Callable[[str], bool]
    read: Callable[[Path, Hints], list[Measurement]]
