# SPDX-License-Identifier: MIT
"""A file to which entries are only appended, each with its length and checksum, so that a kill or a power cut
can damage only the last one. Opening the file cuts a damaged end.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtgauge.record.own_folder import OwnFolder

HEAD = struct.Struct("<II")
"""Before each entry: its length in bytes, and its CRC-32."""
MOST_ENTRY = 64 << 20
MOST_FILE = 1 << 30


def framed(entry: bytes) -> bytes:
    """Return an entry as the file holds it."""
    return HEAD.pack(len(entry), zlib.crc32(entry)) + entry


def entries(content: bytes) -> Iterator[bytes]:
    """Yield the entries up to the first damaged one."""
    at = 0
    while at + HEAD.size <= len(content):
        length, checksum = HEAD.unpack_from(content, at)
        entry = content[at + HEAD.size : at + HEAD.size + length]
        if length > MOST_ENTRY or len(entry) < length or zlib.crc32(entry) != checksum:
            return
        yield entry
        at += HEAD.size + length


class AppendLog:
    """An open log. Every method raises OSError; the file then has no part of the new entries."""

    def __init__(self, folder: OwnFolder, name: str, *, writes: bool = True) -> None:
        """Open the file, which is made first if it is missing, and cut its damaged end. Unless it `writes`,
        leave the file as it is: a recorder may be writing to it.
        """
        self._file = folder.open_log(name, append=True) if writes else None
        content = folder.read_own(name, MOST_FILE) if writes or folder.has(name) else b""
        self.found = list(entries(content))
        """The entries that the file had when it was opened."""
        self.size = sum(HEAD.size + len(entry) for entry in self.found)
        """The bytes of the file."""
        self.cut = len(content) - self.size
        """The bytes of the damaged end."""
        if self.cut and writes:
            os.ftruncate(self._handle, self.size)

    @property
    def _handle(self) -> int:
        assert self._file is not None  # noqa: S101 - a log that is only read has no changes
        return self._file.fileno()

    def append(self, new: Sequence[bytes]) -> None:
        """Append entries, and wait until the disk has them."""
        data = b"".join(map(framed, new))
        try:
            written = 0
            while written < len(data):
                written += os.write(self._handle, data[written:])
            os.fdatasync(self._handle)
        except OSError:
            os.ftruncate(self._handle, self.size)
            raise
        self.size += len(data)

    def clear(self) -> None:
        """Remove all entries."""
        os.ftruncate(self._handle, 0)
        self.size = 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
