# SPDX-License-Identifier: MIT
"""Opens what lies below an open folder: through no link, and nothing outside of it, whoever changes the
folder meanwhile.

Each part of the name is opened relative to the one before, with O_NOFOLLOW. openat2 with RESOLVE_BENEATH and
RESOLVE_NO_SYMLINKS promises the same, but
Python reaches it only through ctypes, whose import costs `rtgauge show` more than all its files, and a kernel
before 5.6 needs this way in any case.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open_part(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        # A link is ELOOP, but ENOTDIR where a folder was asked for.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, folder)):
            raise OSError(errno.ELOOP, "it is a link", name) from None
        raise


@contextmanager
def parent_of(folder: int, name: str) -> Generator[tuple[int, str]]:
    """(descriptor of the folder that `name`, a path below `folder`, is directly in; the last part of the
    name).

    Raises OSError; ELOOP for a link on the way.
    """
    *folders, last = name.split("/")
    if any(part in {"", "..", "."} for part in (*folders, last)):
        raise ValueError(f"'{name}' is not the name of something below a folder")
    opened: list[int] = []
    try:
        for part in folders:
            opened.append(_open_part(part, FOLDER, opened[-1] if opened else folder))
        yield (opened[-1] if opened else folder), last
    finally:
        for descriptor in opened:
            os.close(descriptor)


def open_beneath(folder: int, name: str, flags: int) -> int:
    """The descriptor of `name`, a path below the open folder.

    Raises OSError; ELOOP where a part of it is a link.
    """
    with parent_of(folder, name) as (parent, last):
        return _open_part(last, flags, parent)
