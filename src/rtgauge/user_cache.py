# SPDX-License-Identifier: MIT
"""Finds the user's cache, and checks that only this user could have written its contents.

The cache holds engines, kernel modules and their headers, and images. rtgauge runs much of this, often as
root. `sudo` may keep the HOME of a user who is not root; then the cache belongs to that user.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rtgauge.errors import MeasureError

WRITABLE = "others can write to"
"""How the reason begins if the owner can take the permission away."""


def cache_folder(name: str) -> Path:
    """Return the folder `name` in $XDG_CACHE_HOME/rtgauge, or in ~/.cache/rtgauge. It may not exist yet."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".cache") / "rtgauge" / name


def open_to_others(path: Path) -> str | None:
    """Say why another user could change the contents of `path`, even by replacing a folder or link on the way
    to it. None if only this user and root could.

    Raises OSError if `path` does not exist.
    """
    # The root folder's owner can change anything, but is unknown in a user namespace.
    owners = {os.geteuid(), 0, os.lstat("/").st_uid}
    for chain in dict.fromkeys((path.absolute(), path.resolve(strict=True))):
        for part in (chain, *chain.parents):
            about = part.lstat()
            if about.st_uid not in owners:
                return f"{part} belongs to another user"
            # In a sticky folder such as /tmp, users can replace only their own files.
            sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX and part != chain
            if (
                about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                and not sticky
                and not stat.S_ISLNK(about.st_mode)
            ):
                return f"{WRITABLE} {part}"
    return None


def check_private(path: Path) -> Path:
    """Return `path` if only this user and root can change anything there.

    Raises MeasureError if other users can, OSError if it does not exist.
    """
    reason = open_to_others(path)
    if reason is not None:
        remove = "remove that permission (chmod go-w), or " if reason.startswith(WRITABLE) else ""
        raise MeasureError(
            f"{path} is not used, because {reason}; {remove}set XDG_CACHE_HOME, XDG_DATA_HOME and "
            "XDG_STATE_HOME to folders of your own"
        )
    return path


def private_folder(path: Path) -> Path:
    """Return the folder `path`. Missing folders on the way are made for this user alone.

    Raises MeasureError if other users could change it, OSError if it cannot be made.
    """
    for part in reversed((path, *path.parents)):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    return check_private(path)
