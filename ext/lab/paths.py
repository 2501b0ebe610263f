# SPDX-License-Identifier: MIT
"""Names the lab's folders. Images are in the user's cache, guests and their state in the user's data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from rtgauge.input_file import MIB, open_regular
from rtgauge.user_cache import cache_folder, check_private

CONSOLE = "console.log"
INITRD = "initrd"
"""The initial RAM disk, in the folder of an image or of a guest."""


def _checked(folder: Path) -> Path:
    """Return the folder, which may be missing. Raises MeasureError if another user can change it."""
    return check_private(folder) if folder.exists() else folder


def cache() -> Path:
    """Return the folder of images and their parts. Raises MeasureError if another user can change it."""
    return _checked(cache_folder("lab"))


def home() -> Path:
    """Return the folder of added guests, the lab's ssh key, and the guests' own folders. Raises MeasureError
    if another user can change it.
    """
    folder = os.environ.get("XDG_DATA_HOME", "")
    data = Path(folder) if folder.startswith("/") else Path.home() / ".local/share"
    return _checked(data / "rtgauge" / "lab")


def folder_of(name: str) -> Path:
    """Return the folder of a guest's disk, console and host key."""
    return home() / "machines" / name


def console_end(folder: Path, most_bytes: int = 16 * MIB) -> bytes:
    """Return the end of the console log in a guest's folder, which a guest can make very long. Raises
    OSError.
    """
    with open_regular(folder / CONSOLE) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - most_bytes))
        return file.read(most_bytes)


def open_lock(path: Path) -> IO[str]:
    """Open or create the lock file `path`, without following a link. Raises OSError."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w")
