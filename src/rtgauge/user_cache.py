# SPDX-License-Identifier: MIT
"""The user's cache, and whether only this user could have written what is in it: engines, kernel modules and
their headers, images, drawing code.

rtgauge runs much of that, often as root. `sudo` may keep the HOME of a user who is not root, and then the
cache is that user's.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rtgauge.errors import MeasureError


def cache_folder(name: str) -> Path:
    """The folder of this name in $XDG_CACHE_HOME/rtgauge, or in ~/.cache/rtgauge. It need not be there."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".cache") / "rtgauge" / name


def open_to_others(path: Path) -> str | None:
    """Why another user could change what is at `path`, also by replacing a folder or a link that leads there;
    None: nobody but this user and root could.

    Raises OSError where there is nothing.
    """
    # Whoever has the root folder has all; in a user namespace that is no user who is known there.
    owners = {os.geteuid(), 0, os.lstat("/").st_uid}
    for chain in dict.fromkeys((path.absolute(), path.resolve(strict=True))):
        for part in (chain, *chain.parents):
            about = part.lstat()
            if about.st_uid not in owners:
                return f"{part} belongs to another user"
            # In a sticky folder, as /tmp, others replace nothing that is not theirs.
            sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX and part != chain
            if (
                about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                and not sticky
                and not stat.S_ISLNK(about.st_mode)
            ):
                return f"others can write to {part}"
    return None


def check_private(path: Path) -> Path:
    """`path`, of which nobody but this user and root can change anything.

    Raises MeasureError, OSError where there is nothing.
    """
    reason = open_to_others(path)
    if reason is not None:
        raise MeasureError(
            f"{path} is not used: {reason}; set XDG_CACHE_HOME and XDG_DATA_HOME to folders of your "
            "own, or remove that permission (chmod go-w)"
        )
    return path


def private_folder(path: Path) -> Path:
    """The folder `path`; what of it is missing is made for this user alone.

    Raises MeasureError where others could change it, OSError.
    """
    for part in reversed((path, *path.parents)):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    return check_private(path)
