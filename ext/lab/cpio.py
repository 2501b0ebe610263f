# SPDX-License-Identifier: MIT
"""Writes cpio archives for the initramfs (Documentation/driver-api/early-userspace/buffer-format.rst)."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath
from typing import BinaryIO

LONGEST_NAME = 4096


class CpioWriter:
    """Writes one archive. A file may contain several archives, and the kernel unpacks all of them.

    All entries belong to root and have modification time 0, so the same content gives the same bytes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = 0
        self._folders: set[str] = set()

    def folder(self, name: str, mode: int = 0o755) -> None:
        """Add a folder and its parents."""
        if name in self._folders or not name:
            return
        self.folder(name.rpartition("/")[0])
        self._folders.add(name)
        self._entry(name, stat.S_IFDIR | mode, b"")

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Add a regular file."""
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name: str, points_to: str) -> None:
        """Add a symbolic link."""
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFLNK | 0o777, points_to.encode())

    def tree(self, root: Path, place: str = "") -> None:
        """Add all folders, regular files and links below `root` to the folder `place`.

        Files keep their modes, except write permission for group and others; folders get mode 0755.
        """
        for path in sorted(root.rglob("*")):
            name = str(PurePosixPath(place, path.relative_to(root)))
            if path.is_symlink():
                self.link(name, str(path.readlink()))
            elif path.is_dir():
                self.folder(name)
            elif path.is_file():
                self.file(name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode) & 0o755)

    def close(self) -> None:
        """Write the trailer."""
        self._number = -1
        self._entry("TRAILER!!!", 0, b"")

    def _entry(self, name: str, mode: int, content: bytes) -> None:
        encoded = name.encode(errors="surrogateescape") + b"\0"
        if len(encoded) > LONGEST_NAME or len(content) >= 1 << 32:
            raise ValueError(f"{name[:80]} is too large for a cpio archive")
        self._number += 1
        fields = [self._number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        self._file.write(_padded(header + encoded))
        self._file.write(_padded(content))


def _padded(content: bytes) -> bytes:
    """Return the content padded to a multiple of 4 bytes."""
    return content + b"\0" * (-len(content) % 4)
