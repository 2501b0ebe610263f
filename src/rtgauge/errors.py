# SPDX-License-Identifier: MIT
"""Defines the errors that end a command with one clear line and an exit status."""

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
    """An error whose message is one escaped line: the cause and the remedy. `status`: the exit status.
    `on`: the target that the message names.
    """

    status = EXIT_CANNOT_MEASURE

    def __init__(self, message: str, status: int | None = None, *, on: str | None = None) -> None:
        super().__init__(one_line(message if on is None else f"{on}: {message}"))
        self.on = on
        if status is not None:
            self.status = status

    def reword(self, message: str) -> Self:
        """Give this error another message, and return it. Its other fields stay the same."""
        self.args = (one_line(message),)
        return self


class InputError(RtgaugeError):
    """The input is wrong."""

    status = EXIT_INPUT


class MeasureError(RtgaugeError):
    """Measuring is impossible, or has failed."""

    status = EXIT_CANNOT_MEASURE


class HungError(MeasureError):
    """A verb of the engine that answers immediately did not end in time, so it was killed."""


class SilentError(MeasureError):
    """A measuring program has been silent for longer than it should ever be."""


class LockedError(MeasureError):
    """Another run, or another part of this run, holds the machine.

    `run`: the id of the run that holds it; None if unknown.
    """

    run: str | None = None


class RecordError(RtgaugeError):
    """A record, stream or samples file is damaged, or is something else."""

    status = EXIT_INPUT
