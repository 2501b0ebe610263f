# SPDX-License-Identifier: MIT
"""Points in a program: the calls of functions, or static probes, between which its parts run."""

from __future__ import annotations

import re
from typing import NamedTuple

from rtgauge.probe.descriptor import TRACE_INSTANCE

SEPARATOR = "\n"
"""Separates points in a parameter. Names of C++ functions may have commas."""
LEAST_POINTS, MOST_POINTS = 2, 16
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,22}")
LONGEST_SYMBOL = 1000


class ProgramPoint(NamedTuple):
    """A point: its name, the program or library, and a function, `usdt:PROVIDER:NAME` or 0xADDRESS."""

    name: str
    binary: str
    symbol: str


def parse_points(text: str) -> list[ProgramPoint]:
    """Parse points, one a line, as NAME=BINARY:SYMBOL. Raises ValueError with the reason."""
    points = [_point(line) for line in text.split(SEPARATOR)]
    names = [point.name for point in points]
    if not LEAST_POINTS <= len(points) <= MOST_POINTS:
        raise ValueError(f"give {LEAST_POINTS} to {MOST_POINTS} points; a part runs from one to the next")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"two points are named {repeated}; give each its own name")
    return points


def _point(text: str) -> ProgramPoint:
    name, equals, place = text.partition("=")
    binary, colon, symbol = place.partition(":")
    if not equals or not colon or not symbol or _NAME.fullmatch(name) is None:
        raise ValueError(
            f"'{text[:80]}' is not a point: give NAME=BINARY:SYMBOL, such as read=/opt/control:read_sensors; "
            "a name has at most 23 lower-case letters, digits, - and _"
        )
    if not binary.startswith("/") or not text.isprintable() or " " in binary or len(text) > LONGEST_SYMBOL:
        raise ValueError(f"'{binary[:80]}' is not the whole path of a program or library, without spaces")
    return ProgramPoint(name, binary, symbol)


ENGINE = ""
"""Stands for the engine's own program and the place in it at which the cost of a point is measured."""
_COST = "cost"


def _event(name: str) -> str:
    """Return the name of an event in the kernel, of which each run has its own."""
    return f"{TRACE_INSTANCE.replace('-', '_')}_{name}"


def point_events(text: str | None) -> dict[str, tuple[str, str]]:
    """Return event -> (program, symbol) of points, and of the one at which their cost is measured."""
    if text is None:
        return {}
    places = {_event(str(at)): (point.binary, point.symbol) for at, point in enumerate(parse_points(text))}
    return {**places, _event(_COST): (ENGINE, "")}


def point_options(text: str | None) -> dict[str, str]:
    """Return the engine's options for points."""
    if text is None:
        return {}
    points = parse_points(text)
    return {
        "points": ",".join(_event(str(at)) for at in range(len(points))),
        "parts": ",".join(point.name for point in points[:-1]),
        "point_cost": _event(_COST),
    }
