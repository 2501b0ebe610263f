# SPDX-License-Identifier: MIT
"""The one way to the files of a record: its folder is opened once, and all below it is read and written from
there, through no link.

So what was checked is what is used: whoever exchanges a folder or a file meanwhile shows no file from
elsewhere and has none overwritten. A check of the tree (tools/check_record_access.py) keeps other ways out of
the packages that handle records.
"""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
import stat
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any, BinaryIO

from rtgauge.errors import RecordError
from rtgauge.input_file import READING, open_regular, read_at_most, regular
from rtgauge.record.files import below_descriptor, new_file, sync_tree, whole_file

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last changes (ns): the same if a file is still the same."""


def identity_of(file: BinaryIO) -> Identity:
    """Of an open file. Raises OSError."""
    about = os.fstat(file.fileno())
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _open_folder(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 2 * descriptor > soft != hard:
        # A thousand records may be compared, each with its descriptor: the soft limit is for programs that
        # use select.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return descriptor


class RecordFolder:
    """A record's folder, or one in it, open until nobody refers to it.

    Names are paths below it, as `steps/01-wakeup-idle/step.json`.

    `path`: what the user knows it as; only shown. Every method raises OSError, ELOOP for a link.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Takes the descriptor over."""
        self.path = path
        self.descriptor = descriptor
        self.seen: dict[tuple[str, str], Identity] = {}
        """(name, what was checked) -> the file that it was checked of."""
        self._close: weakref.finalize[[int], RecordFolder] = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path, *, follow: bool = True) -> RecordFolder:
        """Open a record's folder.

        `follow`: whether `path` itself may be a link, which is the user's own; where it will be written to it
        may not.
        """
        return cls(path, _open_folder(path, FOLDER if follow else FOLDER | os.O_NOFOLLOW))

    def close(self) -> None:
        """Nothing more is read from it."""
        self._close()

    @property
    def place(self) -> Path:
        """A path into the folder itself for other processes of this user, while it is open here."""
        return below_descriptor(self.descriptor)

    def below(self, name: str) -> RecordFolder:
        """A folder in it."""
        return RecordFolder(self.path / name, open_beneath(self.descriptor, name, FOLDER))

    def file(self, name: str, sha256: str | None = None) -> RecordFile:
        """A file in it; with `sha256`, what it must contain is checked when it is opened."""
        return RecordFile(self, name, sha256)

    def has(self, name: str) -> bool:
        """Whether there is anything of this name, be it a link or of a kind that cannot be read."""
        try:
            with parent_of(self.descriptor, name) as (parent, last):
                os.stat(last, dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            return error.errno == errno.ELOOP
        return True

    def names(self, name: str | None = None) -> list[str]:
        """What is in it, or in a folder in it, sorted; nothing if there is no such folder."""
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
        """Of a file or folder in it; of a link itself."""
        with parent_of(self.descriptor, name) as (parent, last):
            return os.stat(last, dir_fd=parent, follow_symlinks=False)

    def make_folder(self, name: str, mode: int, *, exist_ok: bool = False) -> None:
        """Make a folder in it."""
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
        """A new file for writing that becomes `name`, as `files.whole_file` makes it."""
        with (
            parent_of(self.descriptor, name) as (parent, last),
            whole_file(Path(last), folder=parent) as file,
        ):
            yield file

    def new_file(self, name: str) -> BufferedWriter:
        """A file for writing while it comes, of a step that is being measured."""
        with parent_of(self.descriptor, name) as (parent, last):
            return new_file(Path(last), folder=parent)

    def write(self, name: str, data: bytes) -> None:
        """Replace a file by `data`; it is whole or not there."""
        with self.whole_file(name) as file:
            file.write(data)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder in it; `new` is in the same folder."""
        with (
            parent_of(self.descriptor, old) as (parent, last),
            parent_of(self.descriptor, new) as (same, name),
        ):
            os.rename(last, name, src_dir_fd=parent, dst_dir_fd=same)

    def remove(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove a file or link, or a folder with everything that is in it."""
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
        """Sync the entries of the folder, or of one in it, to disk."""
        descriptor = self.descriptor if name is None else open_beneath(self.descriptor, name, FOLDER)
        try:
            os.fsync(descriptor)
        finally:
            if name is not None:
                os.close(descriptor)

    def sync_all(self) -> None:
        """Sync everything in it to disk."""
        sync_tree(self.place)


@dataclass(frozen=True)
class RecordFile:
    """A file of a record.

    Its checksum is computed of the file that is then read, once as long as the file stays the same.
    """

    folder: RecordFolder
    name: str
    sha256: str | None = None

    def __str__(self) -> str:
        """As the user knows it."""
        return str(self.path)

    @property
    def path(self) -> Path:
        """As the user knows it; only shown."""
        return self.folder.path / self.name

    def open(self, most_bytes: int | None = None) -> BufferedReader:
        """For reading.

        Raises OSError for a link, for what is no regular file and for one above `most_bytes`; RecordError
        where its checksum is another.
        """
        file = regular(open_beneath(self.folder.descriptor, self.name, READING), self.path, most_bytes)
        key = (self.name, self.sha256 or "")
        try:
            if self.sha256 is not None and self.folder.seen.get(key) != identity_of(file):
                identity = identity_of(file)
                if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                    raise RecordError(
                        f"{self} does not have the checksum in step.json: the record is damaged"
                    )
                self.folder.seen[key] = identity
                file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def read(self, most_bytes: int) -> bytes:
        """The whole content. Raises as `open` does."""
        with self.open(most_bytes) as file:
            return read_at_most(file, self.path, most_bytes)


Source = Path | RecordFile
"""A file of a record, or one that is measured into at the moment, or the user's own."""


def open_source(source: Source, most_bytes: int | None = None) -> BufferedReader:
    """For reading. Raises OSError, RecordError."""
    return source.open(most_bytes) if isinstance(source, RecordFile) else open_regular(source, most_bytes)


def damaged(file: object, error: Exception) -> RecordError:
    """The error of one line for a file of a record that cannot be read."""
    reason: Any = getattr(error, "strerror", None) or error
    return RecordError(f"{file} cannot be read ({reason}): the record is damaged")


def checksum(source: Source) -> str:
    """SHA-256 of a regular file, hexadecimal. Raises OSError."""
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
        # A link is ELOOP, but ENOTDIR where a folder was asked for.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, folder)):
            raise OSError(errno.ELOOP, "it is a link", name) from None
        raise


@contextmanager
def parent_of(folder: int, name: str) -> Generator[tuple[int, str]]:
    """(descriptor of the folder with `name`, its last part). Raises OSError; ELOOP for a link on the way."""
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
    """The descriptor of `name`, a path below the open folder. Raises OSError; ELOOP for a link in it."""
    with parent_of(folder, name) as (parent, last):
        return _open_part(last, flags, parent)
