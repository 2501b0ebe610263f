# SPDX-License-Identifier: MIT
"""Errors that end a command with one clear line and an exit status."""

from __future__ import annotations

from typing import Self

from rtgauge.escape import one_line

EXIT_OK = 0
EXIT_FAILS = 1
EXIT_INPUT = 2
EXIT_CANNOT_MEASURE = 3
EXIT_CANNOT_TELL = 4
EXIT_INTERRUPTED = 130


class RtgaugeError(Exception):
    """A one-line message, escaped: what is wrong and what to do. `status` is the exit status."""

    status = EXIT_CANNOT_MEASURE

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(one_line(message))
        if status is not None:
            self.status = status

    def reword(self, message: str) -> Self:
        """This error, all its fields kept, with another message."""
        self.args = (one_line(message),)
        return self


class InputError(RtgaugeError):
    """The input is wrong."""

    status = EXIT_INPUT


class MeasureError(RtgaugeError):
    """Measuring is impossible or failed."""

    status = EXIT_CANNOT_MEASURE


class LockedError(MeasureError):
    """Another run, or another part of this one, holds the machine.

    `run`: its identity, None where it does not say.
    """

    run: str | None = None


class RecordError(RtgaugeError):
    """A record, stream or samples file is damaged, or not one."""

    status = EXIT_INPUT
