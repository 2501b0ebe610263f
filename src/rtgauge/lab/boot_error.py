# SPDX-License-Identifier: MIT
"""A guest that does not come up, with what it wrote on its console.

The runner knows it without what boots guests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rtgauge.errors import MeasureError

if TYPE_CHECKING:
    from pathlib import Path


class BootError(MeasureError):
    """The guest was booted but does not answer."""

    guest = ""
    console: bytes | None = None
    """The end of its console: another boot starts a new file."""
    _problem = _last_lines = ""

    @classmethod
    def of(cls, guest: str, problem: str) -> Self:
        """The error for a guest, with the end of its console."""
        from rtgauge.lab.running_guests import console_of, end_of_console, last_console_lines

        last_lines = last_console_lines(guest)
        error = cls(_message(problem, console_of(guest), last_lines))
        error.guest, error.console, error._problem, error._last_lines = (
            guest,
            end_of_console(guest),
            problem,
            last_lines,
        )
        return error

    def with_console(self, console: Path) -> str:
        """The message with the path of a copy of the console."""
        return _message(self._problem, console, self._last_lines)


def _message(problem: str, console: Path, last_lines: str) -> str:
    return f"{problem}; its console is in {console} and ends with: {last_lines}"
