# SPDX-License-Identifier: MIT
"""Keeps the log of a program that prints without end small: only its last part is read."""

from __future__ import annotations

import fcntl
import os
from typing import BinaryIO

MOST_LOG = 32 << 20
KEPT_LOG = 1 << 20
"""Bytes of a program's output that are looked at, and that stay of a log that is too long."""
LEFT_OUT = b"... (what it had printed before is left out)\n"


def append_only(log: BinaryIO) -> None:
    """What is written to this open file, by whom ever it is shared with, goes to its end."""
    fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)


def bound_log(log: BinaryIO) -> None:
    """Cut a file that is `append_only` and has more than `MOST_LOG` bytes to its last `KEPT_LOG`; lines that
    come meanwhile may be lost.

    Raises OSError.
    """
    size = os.fstat(log.fileno()).st_size
    if size <= MOST_LOG:
        return
    last = os.pread(log.fileno(), KEPT_LOG, size - KEPT_LOG)
    os.ftruncate(log.fileno(), 0)
    os.write(log.fileno(), LEFT_OUT + last)
