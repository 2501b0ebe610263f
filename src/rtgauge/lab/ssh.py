# SPDX-License-Identifier: MIT
"""ssh to guests: the lab's key, options and command line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab import paths
from rtgauge.user_cache import private_folder

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.lab.guest import Running

LONGEST_CONTROL_PATH = 88
"""A Unix socket's path has 108 bytes, and ssh adds 17 for a moment."""
SSH_S = 10.0
"""Limit of a connection and of a short command."""


def private_key() -> Path:
    """The lab's private key, created if missing. Raises MeasureError if that fails."""
    path = private_folder(paths.home()) / "key"
    if path.is_file() and path.with_suffix(".pub").is_file():
        return path
    path.unlink(missing_ok=True)
    try:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rtgauge-lab", "-f", str(path)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MeasureError("ssh-keygen is not installed: apt-get install openssh-client") from None
    if done.returncode:
        raise MeasureError(f"cannot create the lab's ssh key in {path.parent}: {done.stderr.strip()[:200]}")
    return path


def public_key() -> str:
    """The line for a guest's authorized_keys."""
    return private_key().with_suffix(".pub").read_text()


def ssh_options(running: Running) -> dict[str, str]:
    """ssh options that trust only this guest and ignore the user's configuration. Raises MeasureError.

    A serial line has one connection, which all commands share, also those of other processes.
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
            f"the path {control} is too long for a socket: set XDG_DATA_HOME to a shorter folder"
        )
    line = f"{shlex.quote(sys.executable)} -P -m rtgauge.lab.serial_line".replace("%", "%%")
    return {
        "ProxyCommand": f"{line} %p {shlex.quote(str(folder)).replace('%', '%%')}",
        "ProxyUseFdpass": "yes",
        "Compression": "yes",
        # A line has no end: a guest that is gone is one that does not answer. It may be slow.
        "ServerAliveInterval": "20",
        "ServerAliveCountMax": "3",
        "ControlMaster": "auto",
        "ControlPath": str(control).replace("%", "%%"),
        "ControlPersist": "yes",
    }


def ssh_command(running: Running) -> list[str]:
    """The ssh client's command line for a running guest, without a remote command."""
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
