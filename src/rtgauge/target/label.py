# SPDX-License-Identifier: MIT
"""A guard's label: the run's name and its length, for those who find the machine held."""

from __future__ import annotations

from rtgauge.units import NS_PER_S

LABEL_BYTES = 256
"""The longest label that the guard takes."""


def plain_label(text: str) -> str:
    """One line that a guard takes as its label: printable, and cut where it is too long."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return (
        plain
        if len(plain.encode()) <= LABEL_BYTES
        else plain.encode()[: LABEL_BYTES - 3].decode(errors="ignore") + "..."
    )


def session_words(run_id: str, label: str, lease_ns: int, wait_s: float) -> list[str]:
    """The engine's words for the guard of a run, which waits for its machine at most `wait_s`."""
    words = [
        "guard",
        "--run",
        run_id,
        "--label",
        plain_label(label),
        "--lock",
        "--restore",
        "--lease-ns",
        str(lease_ns),
    ]
    return [*words, *(["--wait-ns", str(round(wait_s * NS_PER_S))] if wait_s else [])]


def expect_word(seconds: float) -> bytes:
    """What tells such a guard how much longer the run will need."""
    return b"expect %d\n" % round(seconds * NS_PER_S)
