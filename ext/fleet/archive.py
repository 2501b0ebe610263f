# SPDX-License-Identifier: MIT
"""Sends a record to a fleet's archive: a folder, or one over SSH. The record arrives whole or not at all.

The archive gets a tar stream and the SHA-256 sums of its files. A shell there unpacks the stream into a new
folder, checks the sums and renames the folder. If the stream ends early, the shell removes what it unpacked.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

from rtgauge.errors import InputError, MeasureError
from rtgauge.record.files import LEFTOVER
from rtgauge.record.model import Run
from rtgauge.record.reader import PAGE, PARTIAL, RUN, Record, opened_folder, read_model
from rtgauge.record.record_folder import RecordFolder, damaged
from rtgauge.target.address import parse_address
from rtgauge_ext.store.labels import LABELS
from rtgauge_ext.store.record_check import check_files

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,200}")
PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,200}(?:/[A-Za-z0-9][A-Za-z0-9._+-]{0,200}){0,4}")
SSH_PLACE = re.compile(r"(?P<target>ssh://[^/]+)/(?P<path>.+)")
MOST_FILES = 100_000
LOOK = """cd "$1" 2>/dev/null || exit 10
[ -e "$2" ] || [ -L "$2" ] || exit 10
[ -d "$2" ] && [ ! -L "$2" ] && [ -z "$(find "$2" ! -type f ! -type d)" ] || exit 11
cd "$2" && sha256sum -c >/dev/null 2>&1 || exit 11
"""
"""A script that checks whether the record exists (10: no, 11: the name is taken), by the sums on its standard
input.
"""
PUT = """set -eu
umask 022
mkdir -p "$1"
cd "$1"
aside=".$2.$3.incoming"
mkdir "$aside"
trap 'cd "$1" && rm -rf "$aside"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$aside/$2"
cd "$aside/$2"
tar -x -f - -o
sha256sum -c .sums >/dev/null
rm .sums
find . -exec sync {} +
cd ../..
[ ! -e "$2" ]
mv "$aside/$2" .
sync .
"""
"""A shell script that reads a record as a tar stream from standard input and puts it into the folder $1 as
$2. $3 is a random text. If another sender puts a record there at the same time, the rename fails, because
`mv` cannot replace a folder with content.
"""


class Sent(StrEnum):
    """The outcome of sending a record."""

    SENT = "sent"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Parcel:
    """A record to send. `sums`: file name -> SHA-256."""

    name: str
    folder: RecordFolder
    sums: Mapping[str, str]

    @classmethod
    def of(cls, path: Path) -> Parcel:
        """Return the record in a folder, after reading and checking all its files. Raises RecordError,
        InputError.
        """
        folder = opened_folder(path)
        run = read_model(folder.file(RUN), Run)
        if path.name.endswith(PARTIAL):
            raise InputError(f"{path} is incomplete; continue it with: rtgauge resume {path}")
        if NAME.fullmatch(run.id) is None:
            raise InputError(
                f"{path} cannot be sent, because its name is not the name of a record ({run.id[:60]})"
            )
        check_files(Record.of(folder))
        try:
            sums: dict[str, str] = {}
            for name in _files(folder):
                with folder.file(name).open() as file:
                    sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise damaged(path, error) from None
        return cls(run.id, folder, sums)

    def list(self, names: Iterable[str]) -> bytes:
        """Return the sums of these files in the form that `sha256sum -c` reads."""
        return "".join(f"{self.sums[name]}  {name}\n" for name in names).encode()

    @property
    def measured(self) -> list[str]:
        """Return the record's files, except the files that users may change."""
        return [name for name in self.sums if name not in (LABELS, PAGE)]

    def write_tar(self, into: IO[bytes]) -> None:
        """Write the record as a tar stream, with the sums as its first file. Raises OSError, RecordError."""
        with tarfile.open(fileobj=into, mode="w|") as archive, TemporaryFile() as sums:
            sums.write(self.list(self.sums))
            sums.flush()
            _add(archive, ".sums", sums)
            for name, sum_ in self.sums.items():
                with self.folder.file(name, sum_).open() as file:
                    _add(archive, name, file)


def _add(archive: tarfile.TarFile, name: str, file: IO[bytes]) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = os.fstat(file.fileno()).st_size, 0o644
    about.mtime = int(os.fstat(file.fileno()).st_mtime)
    file.seek(0)
    archive.addfile(about, file)


def _files(folder: RecordFolder) -> list[str]:
    """Return the name of every file of a record, except what a killed writer left. Raises OSError; InputError
    for a name or a kind that no record has.
    """
    listed: list[str] = []

    def look(inside: str) -> None:
        for each in folder.names(inside or None):
            if LEFTOVER.fullmatch(each):
                continue
            name = f"{inside}/{each}" if inside else each
            kind = folder.about(name).st_mode
            if PART.fullmatch(name) is None:
                raise InputError(
                    f"{folder.path} was not sent, because {name[:80]!r} does not belong to a record; move it "
                    "out of that folder"
                )
            if len(listed) > MOST_FILES:
                raise InputError(
                    f"{folder.path} was not sent, because it has more than {MOST_FILES:,} files; copy it "
                    "without rtgauge"
                )
            if stat.S_ISDIR(kind):
                look(name)
            elif stat.S_ISREG(kind):
                listed.append(name)
            else:
                raise InputError(
                    f"{folder.path} was not sent, because {name} is not a regular file; remove it"
                )

    look("")
    return listed


@dataclass(frozen=True)
class Archive:
    """A folder on this machine or, if `before` is an ssh command in words, on another with a POSIX shell."""

    shown: str
    folder: str
    before: Sequence[str] = ()

    def send(self, parcel: Parcel) -> Sent:
        """Send the record. Raises InputError if another record with its name is there, MeasureError if
        sending fails, RecordError.
        """
        looked = self._run(LOOK, parcel, lambda file: file.write(parcel.list(parcel.measured)))
        if looked.returncode == 0:
            return Sent.UNCHANGED
        if looked.returncode == 11:
            raise InputError(_other(parcel, self.shown))
        if looked.returncode != 10:
            raise MeasureError(_failed(parcel, self.shown, looked.stderr))
        put = self._run(PUT, parcel, parcel.write_tar)
        if put.returncode:
            raise MeasureError(_failed(parcel, self.shown, put.stderr))
        return Sent.SENT

    def _run(self, script: str, parcel: Parcel, write: Writing) -> subprocess.CompletedProcess[bytes]:
        words = ["sh", "-c", script, "sh", self.folder, parcel.name, secrets.token_hex(8)]
        command = [*self.before, shlex.join(words)] if self.before else words
        with TemporaryFile() as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            assert process.stdin is not None  # noqa: S101
            try:
                with process.stdin as stream:
                    write(stream)
            except BrokenPipeError:
                pass  # the output says why
            except BaseException:
                process.kill()
                raise
            finally:
                status = process.wait()
            errors.seek(0)
            return subprocess.CompletedProcess(command, status, b"", errors.read()[-4096:])


class Writing(Protocol):
    """Writes the standard input of a command."""

    def __call__(self, file: IO[bytes], /) -> object:
        """Write the whole input to the file. Raises OSError."""
        ...


def _other(parcel: Parcel, shown: str) -> str:
    return (
        f"{parcel.folder.path} was not sent, because {shown} has another record {parcel.name}; remove one of "
        "them"
    )


def _failed(parcel: Parcel, shown: str, error_output: bytes) -> str:
    lines = [line.strip() for line in error_output.decode(errors="replace").splitlines() if line.strip()]
    reason = f" ({lines[-1][:300]})" if lines else ""
    remedy = "remove the cause, then try again" if lines else "try again"
    return f"{parcel.name} could not be sent to {shown}{reason}, and no part of it arrived; {remedy}"


def archive_of(text: str) -> Archive:
    """Return the archive that a plan names: a folder, or `ssh://[USER@]HOST[:PORT]/PATH`.

    Raises InputError if the text names no place.
    """
    over_ssh = text.startswith("ssh://")
    is_elsewhere = ":" in text.partition("/")[0] and not over_ssh
    if not text.isprintable() or text.startswith("-") or not text.strip() or is_elsewhere:
        raise InputError(f"archive: {text!r} cannot be used; name a folder, or ssh://[USER@]HOST/PATH")
    if over_ssh:
        match = SSH_PLACE.fullmatch(text)
        address = parse_address(match["target"]) if match else None
        if match is None or address is None:
            raise InputError(
                f"archive: {text} cannot be used; name a folder, such as ssh://[USER@]HOST/srv/records"
            )
        words = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=30"]
        words += ["-p", str(address.port)] if address.port is not None else []
        words += ["-l", address.user] if address.user is not None else []
        path = match["path"]
        folder = f"./{path[2:]}" if path.startswith("~/") else f"/{path}"
        return Archive(text, folder, [*words, "--", address.host])
    return Archive(text, str(Path(text).absolute()))


def send(path: Path, to: Archive) -> Sent:
    """Send the record in a folder.

    Raises RecordError for a damaged record, InputError for an incomplete one or if another record has its
    name, MeasureError if sending fails.
    """
    return to.send(Parcel.of(path))
