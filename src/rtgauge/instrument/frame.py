# SPDX-License-Identifier: MIT
"""Frames on the instrument's serial line, COBS with CRC-32 (docs/formats/instrument.md)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

HEADER = struct.Struct("<BBH")
CRC = struct.Struct("<I")
# Longer than this is no frame of the instrument's, whatever it is.
MAX_ENCODED = 255


@dataclass(frozen=True)
class Frame:
    """`token`: of the command it answers, 0 of frames nobody asked for; `sequence`: mod 2^16."""

    kind: int
    token: int
    sequence: int
    body: bytes


def cobs_encode(raw: bytes) -> bytes:
    """Without zeros (Cheshire and Baker, Consistent Overhead Byte Stuffing, 1997).

    For up to 254 bytes, as all frames are.
    """
    if len(raw) > 254:
        raise ValueError("a frame has at most 254 bytes")
    return b"".join(bytes([len(part) + 1]) + part for part in raw.split(b"\0"))


def cobs_decode(encoded: bytes) -> bytes | None:
    """What `cobs_encode` was given; None if it cannot be."""
    parts: list[bytes] = []
    at = 0
    while at < len(encoded):
        distance = encoded[at]
        part = encoded[at + 1 : at + distance]
        if distance == 0 or len(part) != distance - 1 or 0 in part:
            return None
        parts.append(part)
        at += distance
    return b"\0".join(parts)


def encode(frame: Frame) -> bytes:
    """The frame as it goes over the line, with the zero at its end."""
    raw = HEADER.pack(frame.kind, frame.token, frame.sequence) + frame.body
    return cobs_encode(raw + CRC.pack(zlib.crc32(raw))) + b"\0"


def decode(encoded: bytes) -> Frame | None:
    """A frame without the zero at its end; None if it is damaged."""
    raw = cobs_decode(encoded)
    if raw is None or len(raw) < HEADER.size + CRC.size:
        return None
    content, checksum = raw[: -CRC.size], raw[-CRC.size :]
    if CRC.unpack(checksum)[0] != zlib.crc32(content):
        return None
    kind, token, sequence = HEADER.unpack_from(content)
    return Frame(kind, token, sequence, content[HEADER.size :])


class FrameParser:
    """Takes bytes as they come and gives whole frames; never raises, whatever comes, and holds no more than
    one frame's bytes.

    `damaged`: stretches between two zeros that were no frame. `missing`: frames that were not among those
    that came, by their sequence numbers (mod 2^16; a number that goes back, as after a restart of the device,
    counts as such a gap).
    """

    def __init__(self) -> None:
        self.damaged = 0
        self.missing = 0
        self._partial = bytearray()
        self._overlong = False
        self._next_sequence: int | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete, in order."""
        frames: list[Frame] = []
        *ends, rest = data.split(b"\0")
        for part in ends:
            self._append(part)
            frame = None if self._overlong else decode(bytes(self._partial))
            if frame is not None:
                self._count(frame)
                frames.append(frame)
            elif self._partial or self._overlong:
                self.damaged += 1
            self._partial.clear()
            self._overlong = False
        self._append(rest)
        return frames

    def _append(self, part: bytes) -> None:
        if self._overlong or len(self._partial) + len(part) > MAX_ENCODED:
            self._overlong = True
            self._partial.clear()
        else:
            self._partial += part

    def _count(self, frame: Frame) -> None:
        if self._next_sequence is not None:
            self.missing += (frame.sequence - self._next_sequence) % 2**16
        self._next_sequence = (frame.sequence + 1) % 2**16
