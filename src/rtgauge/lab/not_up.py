# SPDX-License-Identifier: MIT
"""A guest that does not come up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rtgauge.errors import MeasureError
from rtgauge.lab.running_guests import console_of, end_of_console, last_words

if TYPE_CHECKING:
    from pathlib import Path


class NotUp(MeasureError):  # noqa: N818 - reads as what it is
    """The guest was booted and does not answer."""

    guest = ""
    console: bytes | None = None
    """The end of what it wrote: another boot begins a new file."""
    _what = _ends = ""

    @classmethod
    def of(cls, guest: str, what: str) -> Self:
        """`what` happened to it, and where its console is at this moment."""
        ends = last_words(guest)
        error = cls(_told(what, console_of(guest), ends))
        error.guest, error.console, error._what, error._ends = guest, end_of_console(guest), what, ends
        return error

    def told(self, console: Path) -> str:
        """The same with another place where its console is."""
        return _told(self._what, console, self._ends)


def _told(what: str, console: Path, ends: str) -> str:
    return f"{what}; its console is in {console} and ends with: {ends}"
