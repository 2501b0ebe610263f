# SPDX-License-Identifier: MIT
"""The machine's lock and journal for one process and its children, so that workers of xdist do not wait for each
other's measurements.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

PLACES = ("/run/rtgauge", "/var/lib/rtgauge")
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def own_lock() -> None:
    """Cover the places of the lock and the journal in a mount namespace of this thread and what it starts.

    For root. Raises OSError if the kernel refuses. What a test changes on the machine itself, such as a sysctl, all
    workers see: only tests of one file may change it, or the test is `alone`.
    """
    library = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *arguments: object) -> None:
        if getattr(library, name)(*arguments):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)

    call("unshare", CLONE_NEWNS)
    call("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    for place in PLACES:
        Path(place).mkdir(mode=0o755, parents=True, exist_ok=True)
        call("mount", b"tmpfs", place.encode(), b"tmpfs", ctypes.c_ulong(0), b"mode=755")
