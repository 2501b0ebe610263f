# SPDX-License-Identifier: MIT
"""Installs a recorder as a systemd service, and removes it again. A file that somebody has changed stays."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import typer

from rtgauge.cli.kept_settings import Keeper
from rtgauge.errors import EXIT_INPUT, InputError, MeasureError
from rtgauge.input_file import MOST_TOML, read_regular
from rtgauge.record.files import write_whole
from rtgauge.target.address import LOCAL
from rtgauge_ext.last_boot import ring

FOLDERS = Path("/var/lib/rtgauge/recorder")
"""The folders of recorders, one for each service or program."""
UNITS = Path("/etc/systemd/system")
RUNTIME = "rtgauge-recorder-"
"""The service can make sockets only in the folder of this name and its own in /run."""
SYSTEMD = Path("/run/systemd/system")
"""Exists if systemd runs (sd_booted(3))."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}")
SUM = "# rtgauge recorder wrote the lines below. Their SHA-256: "
"""Begins the first line of a unit. Only a unit whose sum is right is removed."""
CAPABILITIES = (
    "CAP_DAC_READ_SEARCH CAP_IPC_LOCK CAP_KILL CAP_SYS_ADMIN CAP_SYS_NICE CAP_SYS_PTRACE CAP_SYS_RAWIO "
    "CAP_SYSLOG"
)
HARDENING = (
    *("NoNewPrivileges=yes", "PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX", "PrivateTmp=yes"),
    *("ProtectSystem=strict", "ProtectHome=read-only", "ProtectControlGroups=yes", "ProtectClock=yes"),
    *("ProtectKernelModules=yes", "ProtectHostname=yes", "LockPersonality=yes", "RestrictNamespaces=yes"),
    *("RestrictSUIDSGID=yes", "SystemCallArchitectures=native", "UMask=0077", "KeyringMode=private"),
    *("LimitCORE=0", "TasksMax=64", "MemoryMax=1G", "IPAddressDeny=any"),
    f"CapabilityBoundingSet={CAPABILITIES}",
)
"""What the service may not do. /sys stays writable, because tracefs is there; /proc shows the program."""


def unit_name(name: str) -> str:
    """Return the unit's file name. Raises InputError for a name that is none."""
    if NAME.fullmatch(name) is None:
        raise InputError(f"{name!r} cannot be the name of a service; use letters, digits, - and _")
    return f"rtgauge-recorder-{name}.service"


def unit_text(name: str, command: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return the unit, whose service runs this command. `command`: the program's path and its arguments.
    `before`: a command that runs first, whether it fails or not.
    """
    lines = [
        "[Unit]",
        f"Description=rtgauge recorder {name}",
        "",
        "[Service]",
        "Type=exec",
        *([f"ExecStartPre=-{' '.join(map(_quoted, before))}"] if before else []),
        f"ExecStart={' '.join(map(_quoted, command))}",
        "Restart=on-failure",
        f"RestartPreventExitStatus={EXIT_INPUT}",
        "RestartSec=5",
        "KillMode=mixed",
        f"StateDirectory=rtgauge/recorder/{name}{' rtgauge/last-boot' if before else ''}",
        "StateDirectoryMode=0700",
        f"RuntimeDirectory={RUNTIME}{name}",
        "RuntimeDirectoryMode=0755",
        *HARDENING,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    text = "".join(f"{line}\n" for line in lines)
    return f"{SUM}{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def _quoted(word: str) -> str:
    """Quote a word of ExecStart= (systemd.syntax(7), systemd.service(5)). Raises InputError."""
    if not word.isprintable():
        raise InputError(f"the option {word!r} has characters that a unit cannot have")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


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


def _places(name: str) -> tuple[Path, Path]:
    """Return the unit's file, and the link that starts it at each boot."""
    unit = unit_name(name)
    return UNITS / unit, UNITS / "multi-user.target.wants" / unit


def install(name: str, options: Sequence[str]) -> list[str]:
    """Install the service, and start it if systemd runs. `options`: of `rtgauge recorder run`, which
    accepts them. Return lines on what was done.

    Raises InputError, or MeasureError; then nothing is installed.
    """
    unit, link = _places(name)
    there = [str(place) for place in (unit, link) if os.path.lexists(place)]
    if there:
        raise InputError(f"{there[0]} already exists; remove it first: rtgauge recorder uninstall {name}")
    if any(word == "--folder" or word.startswith("--folder=") for word in options):
        raise InputError(f"leave out --folder; the service records into {FOLDERS / name}")
    _socket(name, options)
    command = [str(_own_program()), "recorder", "run", *options, "--folder", str(FOLDERS / name)]
    arms = _arms_ring()
    after_crash = ring.service_words(has_ring=bool(arms), target=LOCAL)
    try:
        write_whole(unit, unit_text(name, command, arms).encode(), mode=0o644)
        link.parent.mkdir(mode=0o755, exist_ok=True)
        link.symlink_to(f"../{unit.name}")
    except OSError as error:
        unit.unlink(missing_ok=True)
        raise MeasureError(f"the service was not installed: {error}") from None
    if not SYSTEMD.is_dir():
        return [f"installed {unit}; it starts at the next boot with systemd", after_crash]
    subprocess.run(["systemctl", "daemon-reload"], check=False)
    if subprocess.run(["systemctl", "start", unit.name], check=False).returncode:
        return [f"installed {unit}, but it did not start; see: systemctl status {unit.name}", after_crash]
    summary = f"installed and started {unit.name}; see what it records with: rtgauge show {FOLDERS / name}"
    return [summary, after_crash]


def installed() -> list[str]:
    """Return the names of the services on this machine."""
    prefix, suffix = unit_name("x").split("x")
    names = [unit.name.removeprefix(prefix).removesuffix(suffix) for unit in UNITS.glob(f"{prefix}*{suffix}")]
    return sorted(name for name in names if NAME.fullmatch(name))


def uninstall(name: str, *, with_folder: bool = False) -> list[str]:
    """Stop the service and remove what `install` wrote, and with `with_folder` what it recorded. Return lines
    on what was done and what was left.

    Raises InputError if nothing is installed.
    """
    unit, link = _places(name)
    if not os.path.lexists(unit) and not os.path.lexists(link) and not (FOLDERS / name).exists():
        names = installed()
        there = f"installed recorders: {', '.join(names)}" if names else "no recorder is installed here"
        raise InputError(f"{unit.name} is not installed; {there}")
    actions: list[str] = []
    if os.path.lexists(unit) and not _is_own(unit):
        return [f"{unit} stays, because rtgauge did not write it, or somebody has changed it"]
    if SYSTEMD.is_dir():
        subprocess.run(["systemctl", "stop", unit.name], check=False)
    if link.is_symlink() and str(link.readlink()) in {f"../{unit.name}", str(unit)}:
        link.unlink()
        actions.append(f"removed {link}")
    if os.path.lexists(unit):
        unit.unlink()
        actions.append(f"removed {unit}")
    if SYSTEMD.is_dir():
        subprocess.run(["systemctl", "daemon-reload"], check=False)
    folder = FOLDERS / name
    if with_folder and folder.exists():
        shutil.rmtree(folder)
        actions.append(f"removed {folder}")
        for place in (FOLDERS, FOLDERS.parent):
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
    elif folder.exists():
        actions.append(f"{folder} stays with what was recorded; remove it with --folder")
    return actions


def uninstall_all() -> bool:
    """Uninstall every service, and print what was done. Return False: no settings were restored."""
    for line in (line for name in installed() for line in uninstall(name)):
        typer.echo(line)
    return False


def _kept() -> list[str]:
    """Return a line for each service."""
    return [
        f"{unit_name(name)} records at each boot; remove it with: rtgauge recorder uninstall {name}"
        for name in installed()
    ]


KEPT = Keeper(uninstall_all, _kept)


def _is_own(unit: Path) -> bool:
    """Return whether a unit is as rtgauge wrote it."""
    try:
        first, _, rest = read_regular(unit, MOST_TOML).decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return False
    return first == f"{SUM}{hashlib.sha256(rest.encode()).hexdigest()}"
