# SPDX-License-Identifier: MIT
"""The systemd unit of a recorder: its name and its text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from rtgauge.errors import EXIT_INPUT, InputError

RUNTIME = "rtgauge-recorder-"
"""The service can make sockets only in the folder of this name and its own in /run."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}")
SUM = "# rtgauge recorder wrote the lines below. Their SHA-256: "
"""Begins the first line of a unit. Only a unit whose sum is right is removed."""
CAPABILITIES = (
    "CAP_DAC_READ_SEARCH CAP_IPC_LOCK CAP_KILL CAP_SYS_ADMIN CAP_SYS_NICE CAP_SYS_PTRACE CAP_SYS_RAWIO "
    "CAP_SYSLOG"
)
FOR_SOCKET = "CAP_CHOWN"
"""Only a service with --socket needs it: the socket belongs to the program's user."""
HARDENING = (
    *("NoNewPrivileges=yes", "PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX", "PrivateTmp=yes"),
    *("ProtectSystem=strict", "ProtectHome=read-only", "ProtectControlGroups=yes", "ProtectClock=yes"),
    *("ProtectKernelModules=yes", "ProtectHostname=yes", "LockPersonality=yes", "RestrictNamespaces=yes"),
    *("RestrictSUIDSGID=yes", "SystemCallArchitectures=native", "UMask=0077", "KeyringMode=private"),
    *("LimitCORE=0", "TasksMax=64", "MemoryMax=1G", "IPAddressDeny=any"),
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
    has_socket = any(word.partition("=")[0] == "--socket" for word in command)
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
        f"CapabilityBoundingSet={CAPABILITIES}{f' {FOR_SOCKET}' if has_socket else ''}",
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
