# SPDX-License-Identifier: MIT
"""What another tool measured, whichever way it wrote it down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True)
class Thread:
    """One measuring thread. Values are in the measurement's unit, cut to whole ones by cyclictest.

    `histogram`: value -> samples, empty where none was asked for; `overflow` samples lie above it, at `limit` or more.
    `average` is as it was printed: cut to whole units in text, rounded to 1/100 in JSON.
    """

    number: int
    cpu: int | None
    histogram: dict[int, int]
    cycles: int
    overflow: int
    limit: int | None
    minimum: int | None
    maximum: int | None
    average: Fraction | None
    interval_us: int | None = None
    priority: int | None = None


@dataclass(frozen=True)
class Measurement:
    """A file of cyclictest. `unit_ns` is 1000, or 1 with -N. Times are UTC, ISO 8601, None where the file does not say them."""

    threads: list[Thread]
    unit_ns: int
    source: str
    unit_known: bool
    version: str | None = None
    command: str | None = None
    started: str | None = None
    ended: str | None = None
    system: dict[str, str | int] = field(default_factory=dict[str, "str | int"])
    average_is_cut: bool = True
