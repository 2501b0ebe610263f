# SPDX-License-Identifier: MIT
"""A guest's ssh key: the guest says it on its console, which nobody else writes to, and ssh trusts no
other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.record.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

READY = re.compile(rb"rtgauge-lab: ready (ssh-ed25519 [A-Za-z0-9+/=]{40,200})\r?\n")


def key_on(console: bytes) -> str | None:
    """The key of the guest's last boot, by its console; None: it has not come up."""
    keys: list[bytes] = READY.findall(console)
    return keys[-1].decode() if keys else None


def trust(folder: Path, key: str) -> None:
    """Let ssh know the key of the guest with this folder. Raises OSError."""
    write_whole(folder / "known_hosts", f"rtgauge-lab-{folder.name} {key}\n".encode())


def trust_last_boot(folder: Path) -> None:
    """The same by its console: a guest whose disk is in memory makes a key at each boot, also after a reset.

    Raises OSError.
    """
    key = key_on((folder / "console.log").read_bytes())
    if key is not None:
        trust(folder, key)
