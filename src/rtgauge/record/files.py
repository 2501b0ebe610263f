# SPDX-License-Identifier: MIT
"""Files of a record: names that a file can have, and writing that leaves a file whole or absent, also after a power cut."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rtgauge.errors import InputError, MeasureError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


def check_name(path: Path) -> None:
    """Refuse a path that is not UTF-8, which JSON and Parquet's reader cannot handle. Raises InputError."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="surrogateescape").decode(errors="replace")
        raise InputError(f"the name {shown} is not UTF-8: choose another folder") from None


def sync_folder(path: Path) -> None:
    """Sync the entries of a folder to disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(path: Path) -> None:
    """Sync everything below a folder to disk. Raises OSError."""
    folders = [path]
    for entry in path.rglob("*"):
        if entry.is_dir():
            folders.append(entry)
        elif entry.is_file():
            handle = os.open(entry, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    for folder in reversed(folders):
        sync_folder(folder)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically and durably: a reader sees the old or the new content. Raises OSError."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def clear_errors(path: Path, record: Path | None = None, option: str = "--out") -> Generator[None]:
    """Turn an OSError for `path` into a one-line error. `record`: the folder with the results so far; `option`: selects another folder.

    Raises MeasureError for a full disk and InputError for a path that cannot be written.
    """
    try:
        yield
    except OSError as error:
        # polars has the errno only in its message
        match = re.search(r"\(os error ([0-9]{1,4})\)", str(error))
        number = error.errno if error.errno is not None or match is None else int(match[1])
        if number in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            saved = "" if record is None else f"; the results so far are in {record}"
            raise MeasureError(f"disk full: {path} cannot be written; free space or choose another folder with {option}{saved}") from None
        if number in {errno.ENOTDIR, errno.EEXIST}:
            raise InputError(f"{path} is not a folder: choose another one with {option}") from None
        raise InputError(f"{path} cannot be written ({error.strerror or error}): choose another folder with {option}") from None


def clean_name(text: str) -> str:
    """A host's or plan's name as part of a file name: letters, digits, `.`, `_` and `-`, at most 40."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:40].strip("-.") or "unnamed"
