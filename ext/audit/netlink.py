# SPDX-License-Identifier: MIT
"""Reads the kernel's answers about network interfaces: netlink messages (include/uapi/linux/netlink.h) of
rtnetlink and of the families `ethtool` and `netdev` (Documentation/netlink/specs).

The engine's verb `read` asks (docs/formats/agent.md). No content raises an error: what is damaged is missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_MESSAGE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
GENERIC_BYTES = 4
"""The length of a generic netlink message's own header."""
LINK_BYTES, ROUTE_BYTES = 16, 12
"""The lengths of `struct ifinfomsg` and `struct rtmsg`."""
_TYPE_BITS = 0x3FFF
"""Without the flags for a nest and for network byte order."""
_ALIGN = 4


class Attribute(NamedTuple):
    """An attribute: its number, and its content."""

    number: int
    content: bytes


def messages(data: bytes) -> Iterator[bytes]:
    """Yield the content of each message, without the headers of netlink."""
    at = 0
    while at + _MESSAGE.size <= len(data):
        length = int(_MESSAGE.unpack_from(data, at)[0])
        if length < _MESSAGE.size or at + length > len(data):
            return
        yield data[at + _MESSAGE.size : at + length]
        at += _aligned(length)


def attributes(data: bytes) -> Iterator[Attribute]:
    """Yield the attributes of a message or of a nest, in order."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, number = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > len(data):
            return
        yield Attribute(number & _TYPE_BITS, data[at + _ATTRIBUTE.size : at + length])
        at += _aligned(length)


def _aligned(length: int) -> int:
    return (length + _ALIGN - 1) // _ALIGN * _ALIGN


class Nest:
    """The attributes of a message or of a nest by number. If a number occurs twice, the last one counts."""

    def __init__(self, data: bytes) -> None:
        self._contents: Mapping[int, bytes] = dict(attributes(data))

    def number(self, attribute: int) -> int | None:
        """Return an unsigned number of 1, 2, 4 or 8 bytes; None if there is none."""
        content = self._contents.get(attribute, b"")
        formats = {1: "=B", 2: "=H", 4: "=I", 8: "=Q"}
        form = formats.get(len(content))
        return None if form is None else int(struct.unpack(form, content)[0])

    def switch(self, attribute: int) -> bool | None:
        """Return whether a switch is on; None if it is not there."""
        number = self.number(attribute)
        return None if number is None else number != 0

    def text(self, attribute: int) -> str | None:
        """Return a text up to its first NUL; None if there is none, or it is not printable."""
        content = self._contents.get(attribute)
        text = None if content is None else content.partition(b"\0")[0].decode(errors="replace")
        return text if text and text.isprintable() else None

    def nest(self, attribute: int) -> Nest:
        """Return the attributes in an attribute; empty if it is not there."""
        return Nest(self._contents.get(attribute, b""))

    def bits(self, attribute: int) -> list[str] | None:
        """Return the names of the bits that are set in a bit set of ethtool without a mask; None if there is
        no such set.
        """
        content = self._contents.get(attribute)
        if content is None:
            return None
        bits = Nest(content)._contents.get(3, b"")  # ETHTOOL_A_BITSET_BITS
        named = (Nest(bit.content).text(2) for bit in attributes(bits))  # ETHTOOL_A_BITSET_BIT_NAME
        return [name for name in named if name is not None]
