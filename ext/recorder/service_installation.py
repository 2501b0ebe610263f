# SPDX-License-Identifier: MIT
"""Installs a recorder as a systemd service, on this machine or on a target, and removes it again. A target
needs no Python, because the engine alone records there. A unit that somebody has changed stays.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rtgauge.cli.kept_settings import Keeper
from rtgauge.cli.shared_options import target_option
from rtgauge.errors import InputError, MeasureError, RtgaugeError
from rtgauge.target.address import LOCAL, parse_address
from rtgauge_ext.last_boot import ring
from rtgauge_ext.recorder.unit import NAME, RUNTIME, unit_name, unit_text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rtgauge.target.ssh_connection import CommandOutput, SshConnection
    from rtgauge.target.ssh_folder import InstalledEngine
    from rtgauge_ext.recorder.folder import Settings
    from rtgauge_ext.recorder.recorder import Options

FOLDERS = Path("/var/lib/rtgauge/recorder")
"""The folders of recorders, one for each service or program."""
UNITS = Path("/etc/systemd/system")
SYSTEMD = Path("/run/systemd/system")
"""Exists if systemd runs (sd_booted(3))."""
ENGINES = Path("/usr/local/lib/rtgauge")
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
PLACES = """
name=$1 units=$2 systemd=$3 engines=$4 folders=$5
unit=$units/rtgauge-recorder-$name.service folder=$folders/$name engine=$engines/recorder-$name
link=$units/multi-user.target.wants/${unit##*/}
"""
MAY_WRITE = f"""
[ -w "$units" ] || {{
	[ "$(id -u)" = 0 ] || exit {NOT_ROOT}
	echo "$units is read-only" >&2
	exit {NOT_WRITTEN}
}}
"""
INSTALL = f"""
{ONLY_ROOTS}
{PLACES}
umask 022
[ -d "$units" ] || exit {NO_SYSTEMD}
{MAY_WRITE}
clean() {{ [ -z "$copied" ] || rmdir "$engines" 2>/dev/null; }}
copied=$6
if [ -n "$copied" ]; then
	mkdir -p "$engines" || exit {NOT_WRITTEN}
	only_roots "$engines" || {{ clean; exit {NOT_ROOTS}; }}
fi
for place in "$unit" "$link" "$engine"; do
	[ ! -e "$place" ] && [ ! -L "$place" ] || {{ echo "$place"; clean; exit {THERE}; }}
done
mkdir -p "${{link%/*}}" && {{ [ -z "$copied" ] || {{ cp "$copied" "$engine" && chmod 755 "$engine"; }}; }} &&
	cat >"$unit.new" && sync && mv "$unit.new" "$unit" && ln -s "../${{unit##*/}}" "$link" && sync ||
	{{ rm -f "$unit.new" "$unit" "$link" "$engine"; clean; exit {NOT_WRITTEN}; }}
[ -d "$systemd" ] || exit {NOT_BOOTED}
systemctl daemon-reload
systemctl start "${{unit##*/}}" || exit {NOT_STARTED}
"""
"""Its standard input is the unit; $6 is the engine to copy, empty for none. A unit is whole, or not there:
half of one would look as if somebody had changed it, and stay.
"""
UNINSTALL = f"""
{PLACES}
[ -e "$unit" ] || [ -e "$unit.new" ] || [ -L "$link" ] || [ -e "$engine" ] || [ -d "$folder" ] ||
	exit {NOTHING}
{MAY_WRITE}
if [ -e "$unit" ]; then
	sum=$(sed 1d "$unit" | sha256sum)
	case $(sed q "$unit") in *": ${{sum%% *}}") ;; *) exit {CHANGED} ;; esac
	[ ! -d "$systemd" ] || systemctl stop "${{unit##*/}}"
fi
for place in "$link" "$unit" "$unit.new" "$engine"; do
	if [ -e "$place" ] || [ -L "$place" ]; then rm -f "$place" && echo "removed $place"; fi
done
rmdir "$engines" 2>/dev/null
[ ! -d "$systemd" ] || systemctl daemon-reload
[ -d "$folder" ] || exit 0
if [ "$6" = with-folder ]; then
	rm -rf "$folder" && echo "removed $folder"
	rmdir "$folders" "${{folders%/*}}" 2>/dev/null
else
	echo "$folder stays with what was recorded; remove it with --folder"
fi
exit 0
"""


def _socket(name: str, options: Sequence[str]) -> None:
    """Raise InputError for a --socket at a place where the service cannot make one."""
    given = [word.partition("=")[2] for word in options if word.startswith("--socket=")]
    given += [value for word, value in pairwise(options) if word == "--socket"]
    folder = Path("/run") / f"{RUNTIME}{name}"
    for path in given:
        if Path(path).parent != folder:
            raise InputError(
                f"--socket {path}: the service can make it only in {folder}; give {folder}/trigger"
            )


def _arms_ring() -> Sequence[str]:
    """Return the command that reads the last boot from the kernel's persistent ring and arms it; empty if the
    kernel has none. Raises InputError if others than root can change the engine.
    """
    from rtgauge.target.engine_path import engine_path
    from rtgauge_ext.recorder.actions import check_roots_file

    if not any(Path(info).exists() for info in ring.INFO):
        return ()
    return (str(check_roots_file(engine_path())), *ring.ARM)


def _own_program() -> Path:
    """Return the program `rtgauge`, which only root may be able to change, because the service runs it.

    Raises InputError.
    """
    from rtgauge_ext.recorder.actions import check_roots_file

    beside = Path(sys.executable).parent / "rtgauge"
    program = str(beside) if beside.exists() else shutil.which("rtgauge")
    if program is None:
        raise InputError("the program rtgauge is not in PATH; install it for all users")
    return check_roots_file(Path(program))


def install(name: str, options: Sequence[str]) -> list[str]:
    """Install the service on this machine, and start it if systemd runs. `options`: of `recorder run`, which
    accepts them. Return lines on what was done.

    Raises InputError, or MeasureError.
    """
    unit_name(name)
    if any(word == "--folder" or word.startswith("--folder=") for word in options):
        raise InputError(f"leave out --folder; the service records into {FOLDERS / name}")
    _socket(name, options)
    command = [str(_own_program()), "recorder", "run", *options, "--folder", str(FOLDERS / name)]
    arms = _arms_ring()
    answer = _run_here(INSTALL, [name, *_places(), ""], unit_text(name, command, arms).encode())
    return _installed(answer, name, LOCAL, f"rtgauge show {FOLDERS / name}", has_ring=bool(arms))


def service_command(name: str, options: Options, settings: Settings) -> list[str]:
    """Return what the service runs."""
    from rtgauge_ext.recorder.engine_session import engine_arguments

    wanted = options.wanted
    watch = engine_arguments(options.watch, 1, "trace", "explain")[1:]
    return [
        f"{ENGINES}/recorder-{name}",
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


def install_on(target: str, name: str, options: Options, settings: Settings) -> list[str]:
    """Install the service on a target, and start it. Return lines on what was done.

    Raises InputError or MeasureError.
    """
    from rtgauge.target.ssh_target import read_files
    from rtgauge_ext.recorder.spool import MOST_BYTES

    if options.wanted.pid is not None:
        raise InputError("a service finds its program again after a reboot: give --program or --unit")
    if settings.keep_bytes > MOST_BYTES:
        raise InputError(
            f"--keep: `recorder import` reads at most {MOST_BYTES >> 20} MiB from a target; give "
            f"--keep {MOST_BYTES >> 20}MiB or less"
        )
    unit_name(name)
    command = service_command(name, options, settings)
    with _connected(target) as (connection, installed):
        files = read_files(connection, installed.engine, ring.INFO).files
        has_ring = any(files.exists(path) for path in ring.INFO)
        text = unit_text(name, command, [command[0], *ring.ARM] if has_ring else [])
        answer = connection.run(INSTALL, [name, *_places(), installed.engine], text.encode())
    see = f"rtgauge recorder status {name}{target_option(target)}"
    return _installed(answer, name, target, see, has_ring=has_ring)


def _installed(answer: CommandOutput, name: str, target: str, see: str, *, has_ring: bool) -> list[str]:
    """Return lines on what INSTALL did. `see`: the command that shows what the service records."""
    check(answer, target, name)
    where = "" if target == LOCAL else f" on {target}"
    summary = (
        f"installed {unit_name(name)}{where}; it starts at the next boot with systemd"
        if answer.status == NOT_BOOTED
        else f"installed and started {unit_name(name)}{where}; see what it records with: {see}"
    )
    return [summary, ring.service_words(has_ring=has_ring, target=target)]


def _places() -> list[str]:
    return [str(place) for place in (UNITS, SYSTEMD, ENGINES, FOLDERS)]


def _connected(target: str) -> AbstractContextManager[tuple[SshConnection, InstalledEngine]]:
    """Return a connection to a target, on which the engine is until the end."""
    from rtgauge.target.open_target import installed_on

    address = parse_address(target)
    assert address is not None  # noqa: S101 - it is no name of this machine
    return installed_on(address)


def _run_here(script: str, words: Sequence[str], send: bytes = b"") -> CommandOutput:
    from rtgauge.target.ssh_connection import CommandOutput

    ended = subprocess.run(["sh", "-c", script, "sh", *words], input=send, capture_output=True, check=False)
    return CommandOutput(ended.returncode, ended.stdout, ended.stderr.decode(errors="replace"))


def check(answer: CommandOutput, target: str, name: str) -> None:
    """Raise InputError or MeasureError if a script has failed."""
    unit, where = unit_name(name), "" if target == LOCAL else f" on {target}"
    last = next(iter(answer.stderr.strip().splitlines()[-1:]), f"status {answer.status}")[:200]
    place = answer.stdout.decode(errors="replace").strip()[:200]
    remove = f"rtgauge recorder uninstall {name}{target_option(target)}"
    errors: dict[int, RtgaugeError] = {
        NOT_ROOT: InputError(
            "a service needs root; use sudo"
            if target == LOCAL
            else f"a service needs root on the target; log in as root, such as {_as_root(target)}"
        ),
        NO_SYSTEMD: InputError(
            f"there is no {UNITS}{where}, so systemd does not run there; let its init start "
            "`rtgauge-engine record`"
        ),
        THERE: InputError(f"{place} already exists{where}; remove it first: {remove}"),
        NOT_ROOTS: InputError(
            f"users other than root can change {place}{where}, so root does not run an engine from "
            f"{ENGINES}; let only root change it: chown root {place} && chmod go-w {place}"
        ),
        CHANGED: InputError(
            f"{UNITS / unit}{where} stays, because rtgauge did not write it, or somebody has changed it"
        ),
        NOT_WRITTEN: MeasureError(
            f"the service was not changed, because its files cannot be written ({last})",
            on=None if target == LOCAL else target,
        ),
        NOTHING: InputError(
            f"{unit} is not installed{where}"
            + (f"; installed recorders: {', '.join(installed()) or 'none'}" if target == LOCAL else "")
        ),
        NOT_STARTED: MeasureError(
            f"{unit} is installed, but did not start ({last}); see there: systemctl status {unit}, and "
            f"remove it with: {remove}",
            on=None if target == LOCAL else target,
        ),
    }
    if answer.status not in {0, NOT_BOOTED}:
        raise errors.get(answer.status) or MeasureError(
            f"the service was not changed ({last})", on=None if target == LOCAL else target
        )


def _as_root(target: str) -> str:
    return f"ssh://root@{target.partition('://')[2].rpartition('@')[2] or 'board'}"


def installed() -> list[str]:
    """Return the names of the services on this machine."""
    prefix, suffix = unit_name("x").split("x")
    names = [unit.name.removeprefix(prefix).removesuffix(suffix) for unit in UNITS.glob(f"{prefix}*{suffix}")]
    return sorted(name for name in names if NAME.fullmatch(name))


def uninstall(name: str, target: str = LOCAL, *, with_folder: bool = False) -> list[str]:
    """Stop the service and remove what `install` wrote, and with `with_folder` what it recorded. Return lines
    on what was done.

    Raises InputError if nothing is installed, or if somebody has changed the unit, and MeasureError.
    """
    unit_name(name)
    words = [name, *_places(), "with-folder" if with_folder else ""]
    if target == LOCAL:
        answer = _run_here(UNINSTALL, words)
    else:
        with _connected(target) as (connection, _):
            answer = connection.run(UNINSTALL, words)
    check(answer, target, name)
    return answer.stdout.decode(errors="replace").splitlines()


def uninstall_all() -> bool:
    """Uninstall every service, and print what was done. Return False: no settings were restored."""
    for name in installed():
        try:
            lines = uninstall(name)
        except InputError as error:  # somebody has changed its unit
            lines = [str(error)]
        for line in lines:
            typer.echo(line)
    return False


def _kept() -> list[str]:
    """Return a line for each service."""
    return [
        f"{unit_name(name)} records at each boot; remove it with: rtgauge recorder uninstall {name}"
        for name in installed()
    ]


KEPT = Keeper(uninstall_all, _kept)
