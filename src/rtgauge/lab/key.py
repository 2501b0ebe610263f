# SPDX-License-Identifier: MIT
"""The key that opens the lab's guests, and nothing else; made where it is missing."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from rtgauge.errors import MeasureError
from rtgauge.lab import places

if TYPE_CHECKING:
    from pathlib import Path


def private_key() -> Path:
    """The file that ssh takes as its identity. Raises MeasureError where it cannot be made."""
    path = places.private(places.home()) / "key"
    if path.is_file() and path.with_suffix(".pub").is_file():
        return path
    path.unlink(missing_ok=True)
    try:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rtgauge-lab", "-f", str(path)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MeasureError("the program ssh-keygen is missing on this machine: install it (apt-get install openssh-client)") from None
    if done.returncode:
        raise MeasureError(f"no key for the lab can be made in {path.parent}: {done.stderr.strip()[:200]}")
    return path


def public_key() -> str:
    """One line for a guest's authorized_keys."""
    return private_key().with_suffix(".pub").read_text()
