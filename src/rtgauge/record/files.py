# SPDX-License-Identifier: MIT
"""Names a record's files, and writes each file so that it is whole or absent, even after a power cut."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from rtgauge.errors import InputError, MeasureError
from rtgauge.input_file import READING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LEFTOVER = re.compile(r"\.[0-9a-f]{32}\.tmp")
"""The name of a file that `whole_file` has not renamed yet, or that it left when it was killed."""
NEW_S = 60.0
"""How long (s) an empty file may still belong to a writer that has not locked it yet."""


def check_name(path: Path) -> None:
    """Refuse a path that is not UTF-8, which JSON and Parquet's reader cannot handle. Raises InputError."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode(errors="surrogateescape").decode(errors="replace")
        raise InputError(f"the name {shown} is not UTF-8; choose another folder") from None


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


@contextmanager
def open_folder(path: Path, *, follow: bool = True) -> Generator[int]:
    """Open a folder. Paths relative to its descriptor stay inside, even if someone renames or replaces it.

    `follow`: whether the path may be a link. Raises OSError; ELOOP means a link that may not be followed.
    """
    if not follow and path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link", str(path))
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        yield folder
    finally:
        os.close(folder)


def below_descriptor(folder: int) -> Path:
    """Return a path to an open folder. This user's other processes can use it until the folder is closed
    here.
    """
    return Path(f"/proc/{os.getpid()}/fd/{folder}")


def shown(path: Path) -> Path:
    """Turn a path from `below_descriptor` into one that the user knows. Other paths stay unchanged."""
    if len(path.parts) < 5 or path.parts[1] != "proc" or path.parts[3] != "fd":
        return path
    try:
        return Path(*path.parts[:5]).readlink().joinpath(*path.parts[5:])
    except OSError:
        return path


def _aside() -> str:
    return f".{secrets.token_hex(16)}.tmp"


def remove_leftovers(folder: int) -> None:
    """Remove from an open folder what writers left when they were killed. Files that a writer still holds
    stay.
    """
    for name in filter(LEFTOVER.fullmatch, os.listdir(folder)):
        with suppress(OSError):
            handle = os.open(name, READING | os.O_NOFOLLOW, dir_fd=folder)
            try:
                about = os.fstat(handle)
                # A writer creates the file before it locks it.
                is_new = not about.st_size and time.time() - about.st_mtime < NEW_S
                if stat.S_ISREG(about.st_mode) and not is_new:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(handle)


def check_own(folder: int) -> None:
    """Refuse a folder of another user, who could replace its content. Raises PermissionError.

    On a file system without owners (vfat, a squashed NFS) the folder counts as ours if a file that we create
    in it gets the same owner.
    """
    owner = os.fstat(folder).st_uid
    if owner == os.geteuid():
        return
    aside = _aside()
    handle = os.open(
        aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        ours = os.fstat(handle).st_uid == owner
    finally:
        os.close(handle)
        os.unlink(aside, dir_fd=folder)
    if not ours:
        raise PermissionError(errno.EPERM, "it belongs to another user")


def _check_replaceable(folder: int, name: str) -> None:
    """Refuse to replace a folder, a device or a pipe with a file. Raises OSError."""
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    # /dev/stdout is a link into /proc.
    descriptor = stat.S_ISLNK(kind) and os.readlink(name, dir_fd=folder).startswith("/proc/")
    if descriptor or not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        raise OSError(errno.EINVAL, "it is not a regular file", name)


@contextmanager
def whole_file(path: Path, *, folder: int | None = None, mode: int = 0o666) -> Generator[BinaryIO]:
    """Open a new file for writing that replaces `path` when the block ends. Readers see either the old
    content or all of the new, even after a power cut.

    The new file is written next to `path` under an unpredictable name, never through a link. The folder is
    opened once. If you pass an open `folder`, only the last part of `path` is used. A link at `path` is
    replaced, not followed. Raises OSError and leaves nothing behind.
    """
    if folder is None:
        with open_folder(path.parent) as opened, whole_file(path, folder=opened, mode=mode) as file:
            yield file
        return
    _check_replaceable(folder, path.name)
    aside = _aside()
    handle = os.open(
        aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder
    )
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(handle)
        os.rename(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise
    os.fsync(folder)


def write_whole(path: Path, data: bytes, *, folder: int | None = None, mode: int = 0o666) -> None:
    """Replace a file with `data`, as `whole_file` does. Raises OSError."""
    with whole_file(path, folder=folder, mode=mode) as file:
        file.write(data)


def new_file(path: Path, *, folder: int | None = None) -> BufferedWriter:
    """Create a file for writing, or empty an existing one. `folder`: an open folder that belongs to this
    user; `path` is then relative to it. Never follows a link. Raises OSError.
    """
    handle = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder
    )
    return open(handle, "wb")  # noqa: PTH123 - a descriptor


class _Writer(io.BufferedIOBase):
    """A file that remembers the first write error."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def for_polars(file: BinaryIO) -> Generator[BinaryIO]:
    """Give polars an open file, and raise the OSError of a failed write that polars would hide."""
    writer = _Writer(file)
    try:
        yield cast("BinaryIO", writer)
    except Exception:
        if writer.error is not None:
            raise writer.error from None
        raise


@contextmanager
def clear_errors(
    path: Path, record: Path | None = None, option: str = "--out", kind: Literal["folder", "file"] = "folder"
) -> Generator[None]:
    """Turn an OSError for `path` into a one-line error.

    `record`: the folder with the results so far. `option`: the option for another folder or file.

    Raises MeasureError for a full disk and InputError for a path that cannot be written.
    """
    try:
        yield
    except OSError as error:
        path = shown(path)
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            saved = "" if record is None else f"; the results so far are in {shown(record)}"
            raise MeasureError(
                f"the disk is full: {path} cannot be written; free space, or choose another {kind} with "
                f"{option}{saved}"
            ) from None
        if error.errno == errno.EISDIR:
            raise InputError(f"{path} is a folder: name a file with {option}") from None
        if error.errno in {errno.ENOTDIR, errno.EEXIST} and kind == "folder":
            raise InputError(f"{path} is not a folder: choose another folder with {option}") from None
        raise InputError(
            f"{path} cannot be written ({error.strerror or error}): choose another {kind} with {option}"
        ) from None


def clean_name(text: str) -> str:
    """Make a valid file name from a host's or plan's name: letters, digits, `.`, `_` and `-`, at most 40."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:40].strip("-.") or "unnamed"


def check_file(path: Path, option: str) -> None:
    """Check before measuring that the file `path` can be written; if not, raise InputError with the option's
    name.
    """
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{option} {path}: the folder {path.parent} cannot be written to ({error.strerror})"
        ) from None
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{option} {path} cannot be written; name another file")


def check_folder(path: Path, option: str = "--out") -> None:
    """Check before measuring that the folder `path` can be written, or made. Raises as `clear_errors`."""
    with clear_errors(path, option=option):
        there = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
