# SPDX-License-Identifier: MIT
"""ssh to guests: the lab's key, options and command line."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab import paths

if TYPE_CHECKING:
    from pathlib import Path

SSH_S = 10.0
"""Limit of a connection and of a short command."""


def private_key() -> Path:
    """The lab's private key, created if missing. Raises MeasureError if that fails."""
    path = paths.private(paths.home()) / "key"
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


def ssh_options(name: str) -> dict[str, str]:
    """ssh options that trust only this guest and ignore the user's configuration."""

    def quoted(path: Path) -> str:
        return '"' + str(path).replace("%", "%%") + '"'

    return {
        "IdentityFile": quoted(private_key()),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": quoted(paths.folder_of(name) / "known_hosts"),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlias": f"rtgauge-lab-{name}",
        "CheckHostIP": "no",
        "BatchMode": "yes",
    }


def ssh_command(name: str, port: int) -> list[str]:
    """The ssh client's command line for the guest `name` behind `port`, without a remote command."""
    options = {**ssh_options(name), "LogLevel": "ERROR", "ConnectTimeout": str(round(SSH_S))}
    return ["ssh", "-F", "none", *(word for key, value in options.items() for word in ("-o", f"{key}={value}")), "-p", str(port), "root@127.0.0.1"]
