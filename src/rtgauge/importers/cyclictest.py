# SPDX-License-Identifier: MIT
"""What cyclictest says of a measurement, whichever way it was written down."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

DEFAULT_INTERVAL_US = 1000
DEFAULT_DISTANCE_US = 500


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


def _number(command: str, short: str, long: str) -> int | None:
    """The number that an option has: -i200, -i 200, -mqi200, --interval=200, --interval 200."""
    match = re.search(rf"(?:^|\s)(?:-[A-Za-z]*{short}\s*|--{long}[=\s]\s*)([0-9]{{1,12}})(?=\s|$)", command)
    return int(match[1]) if match else None


def _has(command: str, short: str, long: str) -> bool:
    return re.search(rf"(?:^|\s)(?:-[A-Za-z]*{short}|--{long})", command) is not None


def interval_us(command: str, thread: int) -> int | None:
    """The interval of a thread by its command line: the base interval and, without a histogram, `thread` times the distance.

    None where it does not release on absolute times (-r, -s, -x), so that no activation is missed by the clock.
    """
    if any(_has(command, short, long) for short, long in (("r", "relative"), ("s", "system"), ("x", "posix_timers"))):
        return None
    base = _number(command, "i", "interval") or DEFAULT_INTERVAL_US
    if histogram_limit(command) is not None:
        return base
    distance = _number(command, "d", "distance")
    return base + thread * (DEFAULT_DISTANCE_US if distance is None else distance)


def histogram_limit(command: str) -> int | None:
    """The first value that its histogram does not hold; None without -h and -H."""
    sizes = [_number(command, "h", "histogram"), _number(command, "H", "histofall")]
    return next((size for size in sizes if size), None)


def priority(command: str) -> int | None:
    """The priority asked for; None where it is not in the command line."""
    return _number(command, "p", "(?:priority|prio)")
