# SPDX-License-Identifier: MIT
"""Logs in to guests with ssh: makes the lab's key and ssh's command line, and reads guests' host keys.

A guest writes its host key to its console, to which nothing else can write. ssh trusts no other key.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from rtgauge.errors import MeasureError
from rtgauge.program_run import run_program
from rtgauge.record.files import write_whole
from rtgauge.user_cache import private_folder
from rtgauge_ext.lab import paths
from rtgauge_ext.lab.guest import BootedGuest

LONGEST_CONTROL_PATH = 88
"""A Unix socket's path has at most 108 bytes, and ssh temporarily adds 17."""
SSH_S = 10.0
"""Time limit for connecting, and for a short command."""


def private_key() -> Path:
    """Return the path of the lab's private key, and make the key first if it is missing.

    Raises MeasureError if the key cannot be made.
    """
    path = private_folder(paths.home()) / "key"
    if path.is_file() and path.with_suffix(".pub").is_file():
        return path
    path.unlink(missing_ok=True)
    try:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rtgauge-lab", "-f", str(path)]
        completed = run_program(command)
    except FileNotFoundError:
        raise MeasureError("ssh-keygen is not installed: apt-get install openssh-client") from None
    if completed.returncode:
        raise MeasureError(
            f"cannot create the ssh key of the lab in {path.parent}: {completed.stderr.strip()[:200]}"
        )
    return path


def public_key() -> str:
    """Return the line for a guest's authorized_keys. Raises MeasureError as `private_key` does."""
    return private_key().with_suffix(".pub").read_text()


def ssh_options(running: BootedGuest) -> dict[str, str]:
    """Return ssh options that trust only this guest and ignore the user's configuration.

    Over a serial line, all commands of all processes share one connection. Raises MeasureError if the path of
    this connection's socket would be too long, or as `private_key` does.
    """
    folder = paths.folder_of(running.name)

    def quoted(path: Path) -> str:
        return '"' + str(path).replace("%", "%%") + '"'

    return {
        "IdentityFile": quoted(private_key()),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": quoted(folder / "known_hosts"),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlias": f"rtgauge-lab-{running.name}",
        "CheckHostIP": "no",
        "BatchMode": "yes",
        **(_over_serial_line(folder) if running.serial else {}),
    }


def _over_serial_line(folder: Path) -> dict[str, str]:
    control = folder / "ssh"
    if len(str(control).encode()) > LONGEST_CONTROL_PATH:
        raise MeasureError(
            f"the path {control} is too long for a socket; set XDG_DATA_HOME to a folder with a shorter path"
        )
    line = f"{shlex.quote(sys.executable)} -P -m rtgauge_ext.lab.serial_line".replace("%", "%%")
    return {
        "ProxyCommand": f"{line} %p {shlex.quote(str(folder)).replace('%', '%%')}",
        "ProxyUseFdpass": "yes",
        "Compression": "yes",
        # A serial line does not end with its guest. A guest that no longer answers is gone, or perhaps only
        # slow.
        "ServerAliveInterval": "20",
        "ServerAliveCountMax": "3",
        "ControlMaster": "auto",
        "ControlPath": str(control).replace("%", "%%"),
        "ControlPersist": "yes",
    }


def ssh_command(running: BootedGuest) -> list[str]:
    """Return ssh's command line for a running guest, without a remote command."""
    options = {**ssh_options(running), "LogLevel": "ERROR", "ConnectTimeout": str(round(SSH_S))}
    return [
        "ssh",
        "-F",
        "none",
        *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
        "-p",
        str(running.port),
        "root@127.0.0.1",
    ]


READY = re.compile(rb"rtgauge-lab: ready (ssh-ed25519 [A-Za-z0-9+/=]{40,200})\r?\n")


def key_on(console: bytes) -> str | None:
    """Return the last host key that the guest wrote to its console; None if it has not come up."""
    keys: list[bytes] = READY.findall(console)
    return keys[-1].decode() if keys else None


def trust(folder: Path, key: str) -> None:
    """Make ssh trust this host key for the guest with this folder. Raises OSError."""
    write_whole(folder / "known_hosts", f"rtgauge-lab-{folder.name} {key}\n".encode())


def trust_last_boot(folder: Path) -> None:
    """Make ssh trust the last host key on the guest's console; without a disk, each boot makes a new key.

    Raises OSError.
    """
    key = key_on(paths.console_end(folder))
    if key is not None:
        trust(folder, key)
