# SPDX-License-Identifier: MIT
"""Replaces standard output and error, so that text is escaped and a measurement continues if the reader goes
away (`| head -1`, a closed terminal).
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

from rtgauge.escape import escaped

GONE = (errno.EPIPE, errno.EIO)
"""The error numbers of a pipe without a reader and a closed terminal."""


class _Patient(io.FileIO):
    """A descriptor that discards its output once the reader is gone."""

    def write(self, data: object, /) -> int | None:
        """Write like FileIO.write; return the data's length even if the reader is gone."""
        try:
            return super().write(data)  # pyright: ignore[reportArgumentType] - the types that FileIO accepts
        except OSError as error:
            # Buffered output is discarded too, so that the flush at exit does not fail again.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if error.errno not in GONE:
                raise OSError(error.errno, error.strerror, "standard output") from None
            return memoryview(data).nbytes  # pyright: ignore[reportArgumentType]


class Escaping(io.TextIOWrapper):
    """A stream for standard output or error that escapes text, so that no text can control the terminal.

    `unescaped`: the same stream for text that the caller has already escaped (cli/console.py).
    """

    unescaped: TextIO

    def write(self, text: str, /) -> int:
        """Escape and write the text, and return its length."""
        super().write(escaped(text))
        return len(text)


def _patient(stream: TextIO) -> TextIO:
    buffer = io.BufferedWriter(_Patient(stream.fileno(), "w", closefd=False))
    # Characters that the terminal's encoding lacks are shown as `?`.
    options: Any = {"encoding": stream.encoding, "errors": "replace", "line_buffering": True}
    output = Escaping(buffer, **options)
    output.unescaped = io.TextIOWrapper(buffer, **options)
    return output


def make_patient() -> None:
    """Replace sys.stdout and sys.stderr, so that everything printed is escaped from then on.

    Closed descriptors from 0 to 2 are opened as /dev/null, so that no later file gets these numbers.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _patient(sys.stdout or open(1, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - a descriptor; it stays open
    sys.stderr = _patient(sys.stderr or open(2, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
