# SPDX-License-Identifier: MIT
"""The lab's folders: images are in the user's cache, guests and their state in the user's data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from rtgauge.errors import MeasureError

INITRD = "initrd"
"""The initial RAM disk, in the folder of an image or of a guest."""


def _base(variable: str, default: str) -> Path:
    folder = os.environ.get(variable, "")
    return (Path(folder) if folder.startswith("/") else Path.home() / default) / "rtgauge" / "lab"


def cache() -> Path:
    """Images and their parts."""
    return _base("XDG_CACHE_HOME", ".cache")


def home() -> Path:
    """Added guests, the lab's ssh key, running guests and their disks."""
    return _base("XDG_DATA_HOME", ".local/share")


def folder_of(name: str) -> Path:
    """A guest's folder: disk, console, known host key."""
    return home() / "machines" / name


def private(folder: Path) -> Path:
    """The folder, created if missing, accessible to this user only. Raises MeasureError if it belongs to another user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise MeasureError(f"{folder} belongs to another user: set XDG_CACHE_HOME and XDG_DATA_HOME to folders of your own")
    return folder


def open_lock(path: Path) -> IO[str]:
    """The lock file `path`, created if missing, never through a link. Raises OSError."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w")
