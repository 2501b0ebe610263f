# SPDX-License-Identifier: MIT
"""Bounds the log of a program that prints endlessly: rtgauge reads only the end of a log."""

from __future__ import annotations

import fcntl
import os
from typing import BinaryIO

MOST_LOG = 32 << 20
KEPT_LOG = 1 << 20
"""How many bytes at the end of a program's output are read, and how many a log keeps if it is too long."""
LEFT_OUT = b"... (what it had printed before is left out)\n"


def append_only(log: BinaryIO) -> None:
    """Make all writes to this open file go to its end, no matter who shares the file."""
    fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)


def bound_log(log: BinaryIO) -> None:
    """Cut an `append_only` file of more than `MOST_LOG` bytes to its last `KEPT_LOG`. Lines that are written
    meanwhile may be lost.

    Raises OSError if the file cannot be changed.
    """
    size = os.fstat(log.fileno()).st_size
    if size <= MOST_LOG:
        return
    last = os.pread(log.fileno(), KEPT_LOG, size - KEPT_LOG)
    os.ftruncate(log.fileno(), 0)
    os.write(log.fileno(), LEFT_OUT + last)
