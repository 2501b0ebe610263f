# SPDX-License-Identifier: MIT
"""Opens folders whose files decide what rtgauge later runs, writes or deletes, such as a search or a fleet.

Only this user may have made such a folder and its files. The folder is opened once. Every file in it is
opened through no link, and must be regular, of limited size and this user's, without a second name.
tools/check_record_access.py keeps the packages that use such folders from accessing them in another way.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import BinaryIO, Self

from rtgauge.input_file import READING, read_at_most, regular
from rtgauge.record.files import check_own, whole_file
from rtgauge.record.record_folder import RecordFolder, open_beneath, parent_of

OTHERS_CAN_WRITE = "others can write to it (prevent that with chmod go-w)"


def _check_others_cannot_write(about: os.stat_result, path: str) -> None:
    """Refuse what other users can change. A file system without owners has no permissions either.

    A user's own group may have the permission, because many systems give each user such a group.
    """
    if about.st_uid != os.geteuid():
        return
    shared = stat.S_IWOTH if about.st_gid == os.getegid() else stat.S_IWOTH | stat.S_IWGRP
    if about.st_mode & shared:
        raise PermissionError(errno.EPERM, OTHERS_CAN_WRITE, path)


class OwnFolder(RecordFolder):
    """A folder that only this user can change, which stays open as long as it is referenced.

    Every method raises OSError: ELOOP means a link, EPERM a file or folder that another user made or can
    change.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Take over the descriptor, and check the folder."""
        super().__init__(path, descriptor)
        try:
            check_own(descriptor)
            _check_others_cannot_write(os.fstat(descriptor), str(path))
        except OSError:
            self.close()
            raise

    @classmethod
    def made(cls, path: Path) -> Self:
        """Open the folder `path`, which is made first if it is missing."""
        for part in reversed((path, *path.parents)):
            if not part.exists():
                with suppress(FileExistsError):
                    part.mkdir(0o755)
        return cls.existing(path)

    @classmethod
    def existing(cls, path: Path) -> Self:
        """Open the folder `path`, which may not be a link."""
        if path.is_symlink():
            raise OSError(errno.ELOOP, "it is a link", str(path))
        return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))

    def inner(self, name: str) -> OwnFolder:
        """Open a folder inside this one, which is made first if it is missing."""
        self.make_folder(name, 0o755, exist_ok=True)
        return OwnFolder(self.path / name, open_beneath(self.descriptor, name, os.O_RDONLY | os.O_DIRECTORY))

    def check_content(self) -> None:
        """Check everything inside, for a reader that opens files in other ways. Refuses links and pipes."""
        for inside, folders, files, descriptor in os.fwalk(dir_fd=self.descriptor, follow_symlinks=False):
            for name in (*folders, *files):
                path = str(self.path / inside / name)
                about = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode):
                    self._check(about, path)
                elif stat.S_ISREG(about.st_mode):
                    self._check_file(about, path)
                else:
                    raise OSError(errno.EINVAL, "it is not a regular file", path)

    def _check(self, about: os.stat_result, path: str) -> None:
        if about.st_uid != os.fstat(self.descriptor).st_uid:
            raise PermissionError(errno.EPERM, "it belongs to another user", path)
        _check_others_cannot_write(about, path)

    def _check_file(self, about: os.stat_result, path: str) -> None:
        if about.st_nlink > 1:
            raise PermissionError(
                errno.EPERM, "it has a second name (a hard link), through which others might change it", path
            )
        self._check(about, path)

    def open_own(self, name: str, most_bytes: int) -> BufferedReader:
        """Open a file of this user of at most `most_bytes`."""
        file = regular(open_beneath(self.descriptor, name, READING), self.path / name, most_bytes)
        try:
            self._check_file(os.fstat(file.fileno()), str(self.path / name))
        except OSError:
            file.close()
            raise
        return file

    def read_own(self, name: str, most_bytes: int) -> bytes:
        """Return the content of a file of this user of at most `most_bytes`."""
        with self.open_own(name, most_bytes) as file:
            return read_at_most(file, self.path / name, most_bytes)

    def open_log(self, name: str, *, append: bool = False) -> BufferedWriter:
        """Open a file of this user for writing, which is made first if it is missing.

        `append`: whether to keep its content.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with parent_of(self.descriptor, name) as (parent, last):
                handle = os.open(last, flags | (os.O_APPEND if append else 0), 0o644, dir_fd=parent)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "it is a link", str(self.path / name)) from None
            raise
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", str(self.path / name))
            self._check_file(about, str(self.path / name))
            if not append:
                os.ftruncate(handle, 0)
        except OSError:
            os.close(handle)
            raise
        return open(handle, "wb")  # noqa: PTH123 - a descriptor

    @contextmanager
    def whole_file(self, name: str) -> Generator[BinaryIO]:
        """Open a new file for writing that replaces `name`, as `files.whole_file` does."""
        with (
            parent_of(self.descriptor, name) as (parent, last),
            whole_file(Path(last), folder=parent, mode=0o644) as file,
        ):
            yield file

    @contextmanager
    def lock(self, name: str, *, wait: bool = True) -> Generator[int]:
        """Hold the lock file `name` and yield its descriptor, which child processes may inherit.

        Raises BlockingIOError if another process holds it and `wait` is false.
        """
        with self.open_log(name, append=True) as file:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield file.fileno()
