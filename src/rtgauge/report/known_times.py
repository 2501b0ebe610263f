# SPDX-License-Identifier: MIT
"""Times that a reader knows, drawn beside what was measured: how long a message takes on its wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.units import parse_duration_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_NAME = 60
MOST = 20


@dataclass(frozen=True)
class Marker:
    """A named time (ns)."""

    name: str
    ns: int


SERIAL = Marker("12 serial bytes at 115200 baud", round(12 * 10 / 115_200 * 10**9))
"""The marker of figures 3 and 5 of Brown & Martin (2010): 12 bytes of 10 bits each, 1041.7 us."""


def parse_marker(text: str) -> Marker:
    """`"CAN frame=130us"` -> a marker. Raises InputError."""
    name, sign, value = text.rpartition("=")
    name = name.strip()
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    shown, value = text[:80], text.rpartition("=")[2]
    if not sign or not name:
        raise InputError(f"--marker '{shown}': write NAME=TIME, like \"CAN frame=130us\"")
    if len(name) > LONGEST_NAME or not name.isprintable() or len(value) > LONGEST_NAME:
        raise InputError(
            f"--marker '{shown}': a name has at most {LONGEST_NAME} printable characters, a time no more"
        )
    try:
        ns = parse_duration_ns(value)
    except ValueError as error:
        raise InputError(f"--marker '{shown}': {error}") from None
    if ns <= 0:
        raise InputError(f"--marker '{shown}': the time must be longer than 0")
    return Marker(name, ns)


def parse_markers(texts: Sequence[str] | None) -> tuple[Marker, ...]:
    """The paper's marker and those of the command line; a name that is there twice keeps its last time.

    Raises InputError.
    """
    named = {marker.name: marker for marker in (SERIAL, *map(parse_marker, texts or ()))}
    if len(named) > MOST:
        raise InputError(f"{len(named)} markers: more than {MOST} cannot be distinguished in a figure")
    return tuple(named.values())
