# SPDX-License-Identifier: MIT
"""Makes and finds the temporary folder on a target that holds the engine and its output."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import rtgauge
from rtgauge.errors import MeasureError
from rtgauge.target.engine_path import engine_for

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.target.ssh_connection import CommandOutput, SshConnection

PLACES = ("tmp", "/var/tmp", "home")  # noqa: S108 - a folder of our own, 0700, with a name that nobody knows before
ENGINE = "engine"
ENGINES = "opt/rtgauge"
"""The folder of engines in a guest that has only serial lines. The engines' names are SHA-256 sums."""
INSTALL_S = 600.0
"""Time limit (s) for copying the engine. Over a serial line this takes a minute or more."""

NO_FOLDER, NO_ROOM, NO_EXEC, NOT_KEPT = 10, 11, 12, 13
REASONS = {
    NO_FOLDER: "the folder cannot be created",
    NO_ROOM: "there is no room",
    NO_EXEC: ("the folder does not allow programs to run"),
}

UNAME = "uname -m"
INSTALL = f"""
case $1 in
tmp) base=${{TMPDIR:-/tmp}} ;;
home) base=$HOME ;;
*) base=$1 ;;
esac
folder=$base/$2
echo "$folder"
umask 077
mkdir "$folder" || exit {NO_FOLDER}
if [ -n "$3" ]; then
	cat "/{ENGINES}/$3" >"$folder/{ENGINE}" && [ "$(sha256sum <"$folder/{ENGINE}")" = "$3  -" ] ||
		{{ rm -rf "$folder"; exit {NOT_KEPT}; }}
else
	cat >"$folder/{ENGINE}" || {{ rm -rf "$folder"; exit {NO_ROOM}; }}
fi
chmod 700 "$folder/{ENGINE}" || {{ rm -rf "$folder"; exit {NO_ROOM}; }}
"$folder/{ENGINE}" version || {{ rm -rf "$folder"; exit {NO_EXEC}; }}
"""
FIND = f"""
umask 077
for base in "${{TMPDIR:-/tmp}}" /var/tmp "$HOME"; do
	folder=$base/$1
	[ -d "$folder" ] && [ ! -L "$folder" ] || continue
	set -- "$1" $(ls -ldn -- "$folder")
	case $2 in drwx------*) ;; *) continue ;; esac
	[ "$4" = "$(id -u)" ] || continue
	cat >"$folder/{ENGINE}.new" && chmod 700 "$folder/{ENGINE}.new" &&
		mv -f "$folder/{ENGINE}.new" "$folder/{ENGINE}" || exit {NO_ROOM}
	echo "$folder"
	exit 0
done
exit {NO_FOLDER}
"""
"""Finds the folder of a session that another process began. The folder must not be a link, must belong to
this user, and must be closed to others. rtgauge copies its engine again, so it runs only files that it sent.
"""
REMOVE = 'rm -rf "$1"'
NAME = re.compile(r"rtgauge-[0-9a-f]{16}")
"""The name of a session's folder. It is random, so it identifies the session."""


@dataclass(frozen=True)
class InstalledEngine:
    """The engine's folder on the target, and the target's `uname -m`."""

    folder: str
    machine: str

    @property
    def name(self) -> str:
        """The name of the folder, without its path."""
        return self.folder.rpartition("/")[2]

    @property
    def engine(self) -> str:
        """The engine's path on the target."""
        return f"{self.folder}/{ENGINE}"


def _check_version(version_line: str, name: str) -> None:
    version = version_line.removeprefix("rtgauge-engine ")
    if version != rtgauge.__version__:
        raise MeasureError(
            f"the engine has version {version[:40] or '(none)'}, but this rtgauge has "
            f"{rtgauge.__version__}; unset RTGAUGE_ENGINE, or install rtgauge again as you installed it",
            on=name,
        )


def _engine_of(connection: SshConnection) -> tuple[str, Path]:
    """Return the target's `uname -m`, and the engine for it. Raises MeasureError if no engine fits."""
    name = connection.address.name
    uname = connection.run(UNAME)
    machine = uname.stdout.decode(errors="replace").strip()
    if uname.status or not machine:
        none = f"the target has no shell that can be used (`uname -m` ended with status {uname.status})"
        raise MeasureError(none, on=name)
    try:
        return machine, engine_for(machine)
    except MeasureError as error:
        raise MeasureError(str(error), on=name) from None


def find_again(connection: SshConnection, folder_name: str) -> InstalledEngine | None:
    """Find the folder of a session that an earlier process began, and copy the engine into it again. Return
    None if there is no such private folder.

    Raises MeasureError if its disk is full, ConnectionBroken if the target does not answer.
    """
    machine, path = _engine_of(connection)
    with path.open("rb") as engine:
        answer = connection.run(FIND, [folder_name], engine, INSTALL_S)
    folder = answer.stdout.decode(errors="replace").rstrip("\n")
    if answer.status == NO_ROOM:
        reason = _plain(answer.stderr.splitlines())
        full = f"the engine cannot be copied into {folder_name} ({reason}); free space there"
        raise MeasureError(full, on=connection.address.name)
    candidates = (
        answer.status == 0
        and folder.startswith("/")
        and folder.endswith(f"/{folder_name}")
        and "\n" not in folder
    )
    return InstalledEngine(folder, machine) if candidates else None


def install(connection: SshConnection) -> InstalledEngine:
    """Copy the engine that fits the target into a new folder there, and return where it is.

    Tries the target's $TMPDIR or /tmp, /var/tmp and the home folder. Raises MeasureError if none is usable,
    ConnectionBroken if the target does not answer.
    """
    name = connection.address.name
    machine, path = _engine_of(connection)
    refused: list[str] = []
    token = f"rtgauge-{secrets.token_hex(8)}"
    for place in PLACES:
        answer = _send(connection, path, [place, token])
        folder, _, version_line = answer.stdout.decode(errors="replace").rstrip("\n").partition("\n")
        if answer.status == 0 and folder.startswith("/") and folder.endswith(f"/{token}"):
            try:
                _check_version(version_line, name)
            except MeasureError:
                connection.run(REMOVE, [folder])
                raise
            return InstalledEngine(folder, machine)
        reason = answer.stderr.strip().splitlines()
        if answer.status == NO_EXEC and not any("ermission denied" in line for line in reason):
            how = (
                "unset RTGAUGE_ENGINE, which names it"
                if os.environ.get("RTGAUGE_ENGINE")
                else "check whether `uname -m` on the target prints the architecture of its programs"
            )
            why = f"the engine for {machine} does not run there ({_plain(reason)}); {how}"
            raise MeasureError(why, on=name)
        base = folder.removesuffix(f"/{token}")
        refused.append(
            f"{base}: {REASONS.get(answer.status, f'status {answer.status}')} "
            f"({_plain(reason).rpartition(': ')[2]})"
        )
    how = "free space there, or set TMPDIR on the target to a folder that is writable and not mounted noexec"
    raise MeasureError(
        f"the engine cannot be installed in any folder of the target ({'; '.join(refused)}); {how}", on=name
    )


def _send(connection: SshConnection, path: Path, words: list[str]) -> CommandOutput:
    """Copy the engine into the folder that `words` names. If the target already has the same engine, it
    copies that one.
    """
    if connection.address.has_engines:
        answer = connection.run(INSTALL, [*words, hashlib.sha256(path.read_bytes()).hexdigest()])
        if answer.status != NOT_KEPT:
            return answer
    with path.open("rb") as engine:
        return connection.run(INSTALL, [*words, ""], engine, INSTALL_S)


def _plain(lines: list[str]) -> str:
    """Return the last line, or its end if the line is long."""
    return lines[-1][-160:] if lines else "no message"
