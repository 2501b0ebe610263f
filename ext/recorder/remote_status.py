# SPDX-License-Identifier: MIT
"""Shows a recorder on a target: one with Python, or an engine that records alone."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rtgauge.errors import InputError, MeasureError
from rtgauge.target.file_batch import Files
from rtgauge_ext.recorder.folder import FROZEN, HOURS, MINUTES, MOMENTS, SETTINGS, SOURCES, RecorderFolder
from rtgauge_ext.recorder.service_installation import FOLDERS
from rtgauge_ext.recorder.spool import SETTINGS as SPOOL_SETTINGS
from rtgauge_ext.recorder.spool import played_by
from rtgauge_ext.recorder.status import (
    NEWEST,
    RecorderHere,
    ShownRecorder,
    Status,
    holders,
    place_of,
    spool_status,
    status_in,
)

if TYPE_CHECKING:
    from rtgauge.target.ssh_connection import SshConnection
    from rtgauge.target.ssh_folder import InstalledEngine

LOOK = r"""
ls -id "$1" "$1/lock" 2>/dev/null
ls -lnR "$1" 2>/dev/null
printf '\0'
cat /proc/locks 2>/dev/null
"""
"""Prints the inodes that a recorder may hold, what changes with the folder, and after a NUL all locks."""
CAT = 'cat -- "$1"'


class RecorderThere:
    """A recorder's folder on a target."""

    def __init__(self, connection: SshConnection, installed: InstalledEngine, path: Path) -> None:
        """`path`: the folder there. Raises InputError if it is none."""
        self._connection, self._installed, self._path = connection, installed, path
        files = self._read(map(str, (path / SPOOL_SETTINGS, path / SETTINGS, FOLDERS)))
        self._is_spool = files.exists(str(path / SPOOL_SETTINGS))
        if self._is_spool or files.exists(str(path / SETTINGS)):
            return
        why = files.error(str(path / SETTINGS)) or "the file is missing"
        known = ", ".join(sorted(files.entries(str(FOLDERS))))
        raise InputError(
            f"{path} on {connection.address.name} is not a recorder's folder ({SETTINGS}: {why})"
            + (f"; there are: {known}" if known else "")
        )

    def signature(self) -> object:
        """Return what is different after each change of the folder."""
        listing, runs = self._look()
        return listing, runs

    def status(self) -> Status:
        """Read the folder. Raises InputError, MeasureError or RecordError."""
        _, runs = self._look()
        if self._is_spool:
            with played_by(self._installed.machine, self._read, self._path) as folder:
                return spool_status(folder, runs=runs)
        with self._copied() as copy:
            folder = RecorderFolder.open(copy, NEWEST)
            try:
                return status_in(folder, runs=runs)
            finally:
                folder.close()

    def _read(self, paths: Iterable[str]) -> Files:
        from rtgauge.target.ssh_target import read_files

        return read_files(self._connection, self._installed.engine, paths).files

    def _look(self) -> tuple[str, bool]:
        """Return what is in the folder, and whether a recorder holds it."""
        answer = self._connection.run(LOOK, [str(self._path)])
        listing, _, locks = answer.stdout.decode(errors="replace").partition("\0")
        inodes = re.findall(r"^ *([0-9]+) /", listing, re.MULTILINE)
        return listing, any(holders(int(inode), locks) for inode in inodes)

    @contextmanager
    def _copied(self) -> Generator[Path]:
        """Yield a copy of the folder of a recorder with Python, with the newest moments and no sources."""
        names = [SETTINGS, FROZEN, MOMENTS]
        files = self._read(str(self._path / name) for name in names)
        newest = sorted(name for name in files.entries(str(self._path / MOMENTS)) if name.isdigit())[-NEWEST:]
        moments = [f"{MOMENTS}/{name}" for name in newest]
        files |= self._read(str(self._path / name) for name in moments)
        with TemporaryDirectory(prefix="rtgauge-") as place:
            copy = Path(place)
            for part in (MOMENTS, SOURCES):
                (copy / part).mkdir()
            for name in (SETTINGS, FROZEN, *moments):
                if (content := self._content(files, str(self._path / name))) is not None:
                    (copy / name).write_bytes(content)
            for name in (HOURS, MINUTES):
                (copy / name).write_bytes(self._cat(str(self._path / name)))
            yield copy

    def _cat(self, path: str) -> bytes:
        """Return what a file of any size has. Raises MeasureError."""
        answer = self._connection.run(CAT, [path])
        if answer.status:
            raise MeasureError(f"{path} cannot be read ({answer.stderr.strip()[:200]})")
        return answer.stdout

    def _content(self, files: Files, path: str) -> bytes | None:
        """Return what a file has; None if it could not be read."""
        file = files.get(path, {})
        try:
            if file.get("truncated"):  # it is larger than 1 MiB
                return self._cat(path)
            return str(file["text"]).encode() if "text" in file else base64.b64decode(str(file["base64"]))
        except (KeyError, ValueError, MeasureError):  # the recorder may have removed it
            return None


@contextmanager
def shown_recorder(target: str, name: str) -> Generator[ShownRecorder]:
    """Yield the recorder of this name, or in this folder, of a target or of this machine.

    Raises InputError or MeasureError.
    """
    from rtgauge.target.address import parse_address
    from rtgauge.target.open_target import installed_on

    address = parse_address(target)
    if address is None:
        yield RecorderHere(place_of(name))
        return
    with installed_on(address) as (connection, installed):
        yield RecorderThere(connection, installed, Path(name) if "/" in name else FOLDERS / name)
