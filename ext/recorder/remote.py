# SPDX-License-Identifier: MIT
"""Installs a recorder on a target without Python, as a systemd service that is the engine alone, and removes
it again.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rtgauge.errors import InputError, MeasureError, RtgaugeError
from rtgauge.target.address import parse_address
from rtgauge_ext.last_boot import ring
from rtgauge_ext.recorder.installing import FOLDERS, UNITS, unit_name, unit_text

if TYPE_CHECKING:
    from collections.abc import Generator

    from rtgauge.target.ssh_connection import CommandOutput, SshConnection
    from rtgauge.target.ssh_folder import InstalledEngine
    from rtgauge_ext.recorder.folder import Settings
    from rtgauge_ext.recorder.recorder import Options

ENGINES = "/usr/local/lib/rtgauge"
"""The folder of the engines of services on a target."""
PER_SESSION = ("--pid=", "--trace-instance=", "--explain-instance=", "--explain-buffer-kb=", "--drain-ns=")
"""Options of `watch` that the engine's `record` itself chooses."""
NOT_ROOT, NO_SYSTEMD, THERE, NOT_WRITTEN, NOT_STARTED, NOT_BOOTED, CHANGED, NOTHING, NOT_ROOTS = range(10, 19)

ONLY_ROOTS = """
only_roots() {
	for at in "$1" "$(cd "$1" && pwd -P)"; do
		part=folder
		while :; do
			set -- $(ls -ldn "$at/.")
			case "$1 $3 $part" in
			d????-??-?*" 0 "*) ;;
			d????????[tT]*" 0 above") ;;
			*) echo "${at:-/}"; return 1 ;;
			esac
			[ -n "$at" ] || break
			at=${at%/*} part=above
		done
	done
}
"""
"""Returns whether only root can change a folder and every folder above it, as actions.check_roots_file does;
prints the first that others can change. Sticky folders above it may be shared.
"""
INSTALL = f"""
{ONLY_ROOTS}
umask 022
unit={UNITS}/$1 link={UNITS}/multi-user.target.wants/$1 engine={ENGINES}/$2
[ "$(id -u)" = 0 ] || exit {NOT_ROOT}
[ -d {UNITS} ] || exit {NO_SYSTEMD}
mkdir -p {ENGINES} || exit {NOT_WRITTEN}
only_roots {ENGINES} || {{ rmdir {ENGINES} 2>/dev/null; exit {NOT_ROOTS}; }}
for place in "$unit" "$link" "$engine"; do
	[ ! -e "$place" ] && [ ! -L "$place" ] ||
		{{ echo "$place"; rmdir {ENGINES} 2>/dev/null; exit {THERE}; }}
done
mkdir -p {UNITS}/multi-user.target.wants &&
	cp "$3" "$engine" && chmod 755 "$engine" && cat >"$unit" && ln -s "../$1" "$link" && sync ||
	{{ rm -f "$unit" "$link" "$engine"; rmdir {ENGINES} 2>/dev/null; exit {NOT_WRITTEN}; }}
[ -d /run/systemd/system ] || exit {NOT_BOOTED}
systemctl daemon-reload
systemctl start "$1" || exit {NOT_STARTED}
"""
UNINSTALL = f"""
unit={UNITS}/$1 link={UNITS}/multi-user.target.wants/$1 engine={ENGINES}/$2 folder={FOLDERS}/$3
[ "$(id -u)" = 0 ] || exit {NOT_ROOT}
[ -e "$unit" ] || [ -L "$link" ] || [ -e "$engine" ] || [ -d "$folder" ] || exit {NOTHING}
if [ -e "$unit" ]; then
	sum=$(sed 1d "$unit" | sha256sum)
	case $(sed q "$unit") in *": ${{sum%% *}}") ;; *) exit {CHANGED} ;; esac
	[ ! -d /run/systemd/system ] || systemctl stop "$1"
fi
for place in "$unit" "$link" "$engine"; do
	if [ -e "$place" ] || [ -L "$place" ]; then rm -f "$place" && echo "removed $place"; fi
done
rmdir {ENGINES} 2>/dev/null
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ -d "$folder" ] || exit 0
if [ "$4" = with-folder ]; then
	rm -rf "$folder" && echo "removed $folder"
	rmdir {FOLDERS} {FOLDERS.parent} 2>/dev/null
else
	echo "$folder stays with what was recorded; remove it with --folder"
fi
exit 0
"""


@contextmanager
def _connected(target: str) -> Generator[tuple[SshConnection, InstalledEngine]]:
    """Yield a connection to a target, on which the engine is until the end. Raises InputError or
    MeasureError.
    """
    from rtgauge.target.open_target import installed_on

    address = parse_address(target)
    assert address is not None  # noqa: S101 - the caller has no use for this machine
    with installed_on(address) as connection:
        yield connection


def _engine_name(name: str) -> str:
    return f"recorder-{name}"


def service_command(name: str, options: Options, settings: Settings) -> list[str]:
    """Return what the service runs."""
    from rtgauge_ext.recorder.session import engine_arguments

    wanted = options.wanted
    watch = engine_arguments(options.watch, 1, "trace", "explain")[1:]
    return [
        f"{ENGINES}/{_engine_name(name)}",
        "record",
        f"--folder={FOLDERS / name}",
        f"--keep-bytes={settings.keep_bytes}",
        f"--for-ns={options.for_ns or 0}",
        f"--program={wanted.name}" if wanted.name is not None else f"--unit={_unit_of(str(wanted.unit))}",
        f"--settings={json.dumps(settings.model_dump(), separators=(',', ':'))}",
        "--",
        *(word for word in watch if not word.startswith(PER_SESSION)),
    ]


def _unit_of(unit: str) -> str:
    return unit if "." in unit else f"{unit}.service"


def install(target: str, name: str, options: Options, settings: Settings) -> list[str]:
    """Install the service on a target, and start it. Return lines on what was done.

    Raises InputError or MeasureError; then nothing is installed.
    """
    from rtgauge_ext.recorder.spool import MOST_BYTES

    if options.wanted.pid is not None:
        raise InputError("a service finds its program again after a reboot: give --program or --unit")
    if settings.keep_bytes > MOST_BYTES:
        raise InputError(
            f"--keep: `recorder import` reads at most {MOST_BYTES >> 20} MiB from a target; give "
            f"--keep {MOST_BYTES >> 20}MiB or less"
        )
    unit = unit_name(name)
    command = service_command(name, options, settings)
    with _connected(target) as (connection, installed):
        has_ring = _has_ring(connection, installed)
        before = [command[0], *ring.ARM] if has_ring else []
        text = unit_text(name, command, before)
        answer = connection.run(INSTALL, [unit, _engine_name(name), installed.engine], text.encode())
    check(answer, target, name)
    booted = answer.status != NOT_BOOTED
    summary = (
        f"installed and started {unit} on {target}; see what it records with: rtgauge recorder import "
        f"{FOLDERS / name} --target {target}"
        if booted
        else f"installed {unit} on {target}; it starts at the next boot with systemd"
    )
    return [summary, ring.service_words(has_ring=has_ring, target=target)]


def _has_ring(connection: SshConnection, installed: InstalledEngine) -> bool:
    from rtgauge.target.ssh_target import read_files

    files = read_files(connection, installed.engine, ring.INFO).files
    return any(files.exists(path) for path in ring.INFO)


def check(answer: CommandOutput, target: str, name: str) -> None:
    """Raise InputError or MeasureError if a script has failed."""
    unit = unit_name(name)
    last = next(iter(answer.stderr.strip().splitlines()[-1:]), f"status {answer.status}")[:200]
    place = answer.stdout.decode(errors="replace").strip()[:200]
    remove = f"rtgauge recorder uninstall {name} --target {target}"
    errors: dict[int, RtgaugeError] = {
        NOT_ROOT: InputError(
            f"a service needs root on the target; log in as root, such as {_as_root(target)}"
        ),
        NO_SYSTEMD: InputError(
            f"{target} has no {UNITS}, so systemd does not run there; let its init start "
            "`rtgauge-engine record`"
        ),
        THERE: InputError(f"{place} already exists on {target}; remove it first: {remove}"),
        NOT_ROOTS: InputError(
            f"users other than root can change {place} on {target}, so root does not run an engine from "
            f"{ENGINES}; let only root change it: chown root {place} && chmod go-w {place}"
        ),
        CHANGED: InputError(
            f"{UNITS / unit} on {target} stays, because rtgauge did not write it, or somebody has changed it"
        ),
        NOTHING: InputError(f"{unit} is not installed on {target}"),
        NOT_STARTED: MeasureError(
            f"{unit} is installed, but did not start ({last}); see there: systemctl status {unit}, and "
            f"remove it with: {remove}",
            on=target,
        ),
    }
    if answer.status not in {0, NOT_BOOTED}:
        raise errors.get(answer.status) or MeasureError(f"the service was not changed ({last})", on=target)


def _as_root(target: str) -> str:
    return f"ssh://root@{target.partition('://')[2].rpartition('@')[2] or 'board'}"


def uninstall(target: str, name: str, *, with_folder: bool) -> list[str]:
    """Stop the service on a target and remove what `install` wrote there. Return lines on what was done.

    Raises InputError or MeasureError.
    """
    words = [unit_name(name), _engine_name(name), name, "with-folder" if with_folder else ""]
    with _connected(target) as (connection, _):
        answer = connection.run(UNINSTALL, words)
    check(answer, target, name)
    return answer.stdout.decode(errors="replace").splitlines()
