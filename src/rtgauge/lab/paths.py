# SPDX-License-Identifier: MIT
"""The lab's folders: images are in the user's cache, guests and their state in the user's data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from rtgauge.user_cache import cache_folder

INITRD = "initrd"
"""The initial RAM disk, in the folder of an image or of a guest."""


def cache() -> Path:
    """Images and their parts."""
    return cache_folder("lab")


def home() -> Path:
    """Added guests, the lab's ssh key, running guests and their disks."""
    folder = os.environ.get("XDG_DATA_HOME", "")
    return (Path(folder) if folder.startswith("/") else Path.home() / ".local/share") / "rtgauge" / "lab"


def folder_of(name: str) -> Path:
    """A guest's folder: disk, console, known host key."""
    return home() / "machines" / name


def open_lock(path: Path) -> IO[str]:
    """The lock file `path`, created if missing, never through a link. Raises OSError."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w")
