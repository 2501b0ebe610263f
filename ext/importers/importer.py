# SPDX-License-Identifier: MIT
"""What an importer must have: the reader of one format of another tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rtgauge_ext.importers.measurement import Measurement


@dataclass(frozen=True)
class Hints:
    """Facts that the user supplies, usually because the file lacks them: `unit_ns` (1: cyclictest -N),
    `interval_ns`.
    """

    unit_ns: int | None = None
    interval_ns: int | None = None


@dataclass(frozen=True)
class Importer:
    """The reader of one format.

    `recognises` gets the beginning as text, in lines as the reader gets them. `read` returns a measurement
    for each run in the file, and raises InputError if the file is foreign or damaged.
    """

    name: str
    help: str
    recognises: Callable[[str], bool]
    read: Callable[[Path, Hints], list[Measurement]]
    by_shape: bool = False
    """Whether only the shape of its lines identifies the format. Formats that name themselves are tried
    first.
    """
