# SPDX-License-Identifier: MIT
"""Prints tables and progress. Colours reach the terminal, but escape sequences in texts do not."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import rich.console
from rich.segment import Segment

from rtgauge.escape import escaped


class Console(rich.console.Console):
    """A console on standard output, or on standard error."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(file=getattr(stream, "unescaped", stream), stderr=stderr)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape all text. Everything that rich prints goes through this method."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)
