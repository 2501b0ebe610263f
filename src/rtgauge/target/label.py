# SPDX-License-Identifier: MIT
"""What a guard is called, for whoever is told that the machine is held."""

from __future__ import annotations

LABEL_BYTES = 256
"""The longest label that the guard takes."""


def plain_label(text: str) -> str:
    """One line that a guard takes as its label: printable, and cut where it is too long."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain.encode()) <= LABEL_BYTES else plain.encode()[: LABEL_BYTES - 3].decode(errors="ignore") + "..."
