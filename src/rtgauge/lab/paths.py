# SPDX-License-Identifier: MIT
"""The lab's folders: what can be made again is in the cache, what a guest is and does is in the user's data."""

from __future__ import annotations

import os
from pathlib import Path


def _base(variable: str, otherwise: str) -> Path:
    given = os.environ.get(variable, "")
    return (Path(given) if given.startswith("/") else Path.home() / otherwise) / "rtgauge" / "lab"


def cache() -> Path:
    """Images, and the parts that they are made of."""
    return _base("XDG_CACHE_HOME", ".cache")


def home() -> Path:
    """Guests of the user's own, the lab's key, what runs and the guests' disks."""
    return _base("XDG_DATA_HOME", ".local/share")


def folder_of(name: str) -> Path:
    """What belongs to one guest's machine: its disk, its console, its known host key."""
    return home() / "machines" / name


def private(folder: Path) -> Path:
    """The folder, made where it is missing, for nobody else to look into."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
