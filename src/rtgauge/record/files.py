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
    """Refuse a path whose bytes are no UTF-8, which neither JSON nor Parquet's reader takes. Raises InputError."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="surrogateescape").decode(errors="replace")
        raise InputError(f"the name {shown} is not UTF-8: choose another place") from None


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(path: Path) -> None:
    """Make every file and every name below a folder durable. Raises OSError."""
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
    """Write a file aside, sync it and put it in its place: a reader sees the old one or the new one. Raises OSError."""
    aside = path.with_name(f".{path.name}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def clear_errors(what: Path, kept: Path | None = None, option: str = "--out") -> Generator[None]:
    """Turn an OSError about `what` into one line for a person; `kept` is where what was measured so far can be found,
    `option` what names another place.

    Raises MeasureError for a full disk and InputError for a place that cannot be written.
    """
    try:
        yield
    except OSError as error:
        # polars tells the number in its text only
        told = re.search(r"\(os error ([0-9]{1,4})\)", str(error))
        number = error.errno if error.errno is not None or told is None else int(told[1])
        if number in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            saved = "" if kept is None else f"; what was measured is in {kept}"
            raise MeasureError(f"disk full: {what} cannot be written; free space or choose another place with {option}{saved}") from None
        if number in {errno.ENOTDIR, errno.EEXIST}:
            raise InputError(f"{what} is not a folder: choose another place with {option}") from None
        raise InputError(f"{what} cannot be written ({error.strerror or error}): choose another place with {option}") from None


def clean_name(text: str) -> str:
    """A host's or plan's name as part of a file name: letters, digits, `.`, `_` and `-`, at most 40."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:40].strip("-.") or "unnamed"
