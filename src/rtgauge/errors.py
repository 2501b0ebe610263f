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
    """An error whose message is one escaped line: the cause and the way out. `status`: the exit status."""

    status = EXIT_CANNOT_MEASURE

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(one_line(message))
        if status is not None:
            self.status = status

    def reword(self, message: str) -> Self:
        """Give this error another message, and keep its other fields."""
        self.args = (one_line(message),)
        return self


class InputError(RtgaugeError):
    """The input is wrong."""

    status = EXIT_INPUT


class MeasureError(RtgaugeError):
    """Measuring is impossible or failed."""

    status = EXIT_CANNOT_MEASURE


class HungError(MeasureError):
    """A program that changes a setting did not end, and was killed."""


class SilentError(MeasureError):
    """A program that measures has said nothing for longer than it can take."""


class LockedError(MeasureError):
    """Another run, or another part of this one, holds the machine.

    `run` is that run's id; None if the machine does not say.
    """

    run: str | None = None


class RecordError(RtgaugeError):
    """A record, stream or samples file is damaged, or is not one at all."""

    status = EXIT_INPUT
