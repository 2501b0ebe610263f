# SPDX-License-Identifier: MIT
"""Parses instrument addresses: `serial:/dev/ttyACM0`, `serial:ID`, `latmon:HOST[:PORT]`."""

from __future__ import annotations

import re

from rtgauge.errors import InputError

SERIAL = "serial:"
LATMON = "latmon:"
LATMON_PORT = 2306
UNIQUE_ID = re.compile(r"[0-9A-Fa-f]{4,16}")


def is_latmon(address: str) -> bool:
    """Return whether the address names a latmon, which is reached over the network."""
    return address.startswith(LATMON)


def latmon_address(address: str) -> tuple[str, int]:
    """Parse `latmon:HOST`, `latmon:HOST:PORT`, `latmon:[2001:db8::1]:2306` into (host, port).

    Raises InputError for other text.
    """
    name = address.removeprefix(LATMON)
    host, port = name, str(LATMON_PORT)
    if name.startswith("[") and "]" in name:
        host, _, rest = name[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif name.count(":") == 1:
        host, port = name.split(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(
            f"'{address}' is not the address of a latmon; give one such as latmon:192.168.1.7 or "
            "latmon:board:2306"
        )
    return host, int(port)


def check_address(address: str) -> str:
    """Return the address unchanged.

    Raises InputError if it is not an instrument's address. It does not check whether the instrument is there.
    """
    if not address.isprintable():
        raise InputError("the address of an instrument may contain only printable characters")
    if address.startswith(LATMON):
        latmon_address(address)
        return address
    name = address.removeprefix(SERIAL)
    if not address.startswith(SERIAL) or not (
        name == "" or name.startswith("/") or UNIQUE_ID.fullmatch(name)
    ):
        raise InputError(
            f"'{address[:100]}' is not the address of an instrument; give one such as serial:/dev/ttyACM0, "
            "serial:E6605838831F2B27 or latmon:192.168.1.7"
        )
    return address
