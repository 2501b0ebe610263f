# SPDX-License-Identifier: MIT
"""The measurement of another tool, independent of its file format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True)
class Thread:
    """One measuring thread. Values are whole numbers of the measurement's unit, truncated by the tool.

    `histogram`: value -> samples, empty if there is none; `overflow` samples are above it, at `limit` or more.
    `average` as printed: truncated to whole units in text, rounded to 1/100 in JSON.
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
    """The threads of a measurement. `unit_ns`: 1000, or 1 (cyclictest -N). Times are UTC, ISO 8601; None if unknown."""

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
