# SPDX-License-Identifier: MIT
"""Accesses the files of a record. It opens the folder once; all reads and writes start from there and follow
no link.

So the file that was checked is the file that is used. If someone replaces a folder or a file meanwhile,
nothing outside the record is read or overwritten. tools/check_record_access.py keeps the packages that handle
records from accessing files in another way.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import resource
import shutil
import stat
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any, BinaryIO

from rtgauge.errors import RecordError
from rtgauge.input_file import READING, open_regular, read_at_most, regular
from rtgauge.record.files import below_descriptor, new_file, remove_leftovers, sync_tree, whole_file

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last changes (ns): the same as long as the file is unchanged."""
LOCK_S, RETRY_S = 30.0, 0.02
"""How long, and how often (s), a program tries to get a folder's lock. Any user who can read the folder can
hold it.
"""


def identity_of(file: BinaryIO) -> Identity:
    """Identify an open file. Raises OSError."""
    about = os.fstat(file.fileno())
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _is_locked(handle: int) -> bool:
    """Try to lock an open folder; return whether it is locked, or cannot be."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
    return True


def _open_folder(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 2 * descriptor > soft != hard:
        # Comparing a thousand records takes a descriptor for each. The low soft limit exists for programs
        # that use select.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return descriptor


class RecordFolder:
    """A record's folder, or a folder in it, which stays open as long as it is referenced.

    Names are paths below it, such as `steps/01-wakeup-idle/step.json`. `path` is the user's name for it, for
    display only. Every method raises OSError; ELOOP means a link.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Take over the descriptor, which `close` closes."""
        self.path = path
        self.descriptor = descriptor
        self.seen: dict[tuple[str, str], Identity] = {}
        """Maps (name, kind of check) to the file that passed the check."""
        self._close: weakref.finalize[[int], RecordFolder] = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path, *, follow: bool = True) -> RecordFolder:
        """Open a record's folder.

        `follow`: whether `path` itself may be a link; when writing, it may not.
        """
        return cls(path, _open_folder(path, FOLDER if follow else FOLDER | os.O_NOFOLLOW))

    def close(self) -> None:
        """Close the folder, which cannot be used afterwards."""
        self._close()

    @property
    def place(self) -> Path:
        """A path into the folder that this user's other processes can use until it is closed here."""
        return below_descriptor(self.descriptor)

    def below(self, name: str) -> RecordFolder:
        """Open a folder inside this one."""
        return RecordFolder(self.path / name, open_beneath(self.descriptor, name, FOLDER))

    def file(self, name: str, sha256: str | None = None) -> RecordFile:
        """Refer to a file inside the folder. If `sha256` is given, opening the file checks its content."""
        return RecordFile(self, name, sha256)

    def has(self, name: str) -> bool:
        """Return whether the name exists, even as a link or an unreadable file."""
        try:
            with parent_of(self.descriptor, name) as (parent, last):
                os.stat(last, dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            return error.errno == errno.ELOOP
        return True

    def names(self, name: str | None = None) -> list[str]:
        """Return the sorted names in the folder, or in a folder inside it; empty if that does not exist."""
        try:
            descriptor = (
                os.dup(self.descriptor) if name is None else open_beneath(self.descriptor, name, FOLDER)
            )
        except FileNotFoundError:
            return []
        try:
            return sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor
        finally:
            os.close(descriptor)

    def about(self, name: str) -> os.stat_result:
        """Return the status of a file or folder inside this one. Links are not followed."""
        with parent_of(self.descriptor, name) as (parent, last):
            return os.stat(last, dir_fd=parent, follow_symlinks=False)

    def make_folder(self, name: str, mode: int, *, exist_ok: bool = False) -> None:
        """Make a folder inside this one."""
        with parent_of(self.descriptor, name) as (parent, last):
            try:
                os.mkdir(last, mode, dir_fd=parent)
            except FileExistsError:
                if not exist_ok or not stat.S_ISDIR(
                    os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode
                ):
                    raise

    @contextmanager
    def whole_file(self, name: str) -> Generator[BinaryIO]:
        """Open a new file for writing that replaces `name`, as `files.whole_file` does. Files that killed
        writers left there are removed.
        """
        with parent_of(self.descriptor, name) as (parent, last):
            remove_leftovers(parent)
            with whole_file(Path(last), folder=parent) as file:
                yield file

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the folder's lock, so that no other program changes a file between reading and writing it.

        Raises TimeoutError if another program holds the lock for LOCK_S. A file system without locks for
        folders (NFS) goes without.
        """
        handle = os.open(".", FOLDER, dir_fd=self.descriptor)
        try:
            end = time.monotonic() + LOCK_S
            while not _is_locked(handle):
                if time.monotonic() > end:
                    raise TimeoutError(
                        errno.ETIMEDOUT, f"another program has kept it locked for {LOCK_S:g} s"
                    )
                time.sleep(RETRY_S)
            yield
        finally:
            os.close(handle)

    def new_file(self, name: str) -> BufferedWriter:
        """Open a new file for data that arrives during a step."""
        with parent_of(self.descriptor, name) as (parent, last):
            return new_file(Path(last), folder=parent)

    def write(self, name: str, data: bytes) -> None:
        """Replace a file with `data`, so that it is whole or absent."""
        with self.whole_file(name) as file:
            file.write(data)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder inside this one. It stays in the same parent folder."""
        with (
            parent_of(self.descriptor, old) as (parent, last),
            parent_of(self.descriptor, new) as (same, name),
        ):
            os.rename(last, name, src_dir_fd=parent, dst_dir_fd=same)

    def remove(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove a file, a link, or a folder with its content."""
        try:
            with parent_of(self.descriptor, name) as (parent, last):
                if stat.S_ISDIR(os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode):
                    shutil.rmtree(last, dir_fd=parent)
                else:
                    os.unlink(last, dir_fd=parent)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def sync(self, name: str | None = None) -> None:
        """Sync the entries of this folder, or of one inside it, to disk."""
        descriptor = self.descriptor if name is None else open_beneath(self.descriptor, name, FOLDER)
        try:
            os.fsync(descriptor)
        finally:
            if name is not None:
                os.close(descriptor)

    def sync_all(self) -> None:
        """Sync everything inside the folder to disk."""
        sync_tree(self.place)


@dataclass(frozen=True)
class RecordFile:
    """A file of a record.

    Its checksum is computed from the opened file, and again only if the file changes.
    """

    folder: RecordFolder
    name: str
    sha256: str | None = None

    def __str__(self) -> str:
        """Return the user's path of the file."""
        return str(self.path)

    @property
    def path(self) -> Path:
        """The user's path of the file, only for messages."""
        return self.folder.path / self.name

    def open(self, most_bytes: int | None = None) -> BufferedReader:
        """Open the file for reading.

        Raises OSError for a link, a file that is not regular, or one larger than `most_bytes`, and
        RecordError if its checksum differs.
        """
        file = regular(open_beneath(self.folder.descriptor, self.name, READING), self.path, most_bytes)
        key = (self.name, self.sha256 or "")
        try:
            if self.sha256 is not None and self.folder.seen.get(key) != identity_of(file):
                identity = identity_of(file)
                if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                    raise RecordError(f"{self} does not match its checksum: the record is damaged")
                self.folder.seen[key] = identity
                file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def read(self, most_bytes: int) -> bytes:
        """Read the whole content. Raises the errors of `open`."""
        with self.open(most_bytes) as file:
            return read_at_most(file, self.path, most_bytes)


Source = Path | RecordFile
"""A file of a record, a file that a running measurement writes, or a file of the user's own."""


def open_source(source: Source, most_bytes: int | None = None) -> BufferedReader:
    """Open a file for reading. Raises OSError or RecordError."""
    return source.open(most_bytes) if isinstance(source, RecordFile) else open_regular(source, most_bytes)


def damaged(file: object, error: Exception) -> RecordError:
    """Return the one-line error for a record's file that cannot be read."""
    reason: Any = getattr(error, "strerror", None) or error
    return RecordError(f"{file} cannot be read ({reason}): the record is damaged")


def checksum(source: Source) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal. Raises OSError."""
    with open_source(source) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        # If a folder was requested, a link gives ENOTDIR instead of ELOOP.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, folder)):
            raise OSError(errno.ELOOP, "it is a link", name) from None
        raise


@contextmanager
def parent_of(folder: int, name: str) -> Generator[tuple[int, str]]:
    """Open the folder that contains `name`, and yield (descriptor, last part of the name). Raises OSError;
    ELOOP means a link on the way.
    """
    *folders, last = name.split("/")
    if any(part in {"", "..", "."} for part in (*folders, last)):
        raise ValueError(f"'{name}' must be a relative path without empty, '.' or '..' parts")
    opened: list[int] = []
    try:
        for part in folders:
            opened.append(_open_part(part, FOLDER, opened[-1] if opened else folder))
        yield (opened[-1] if opened else folder), last
    finally:
        for descriptor in opened:
            os.close(descriptor)


def open_beneath(folder: int, name: str, flags: int) -> int:
    """Open `name`, a path below the open folder. Raises OSError; ELOOP means a link in the path."""
    with parent_of(folder, name) as (parent, last):
        return _open_part(last, flags, parent)
