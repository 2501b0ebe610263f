# SPDX-License-Identifier: MIT
"""Prints tables and progress. Colours reach the terminal, but escape sequences in texts do not."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable

import rich.console
from rich.segment import Segment

from rtgauge.escape import escaped

UNLIMITED = 1000
"""The width of output that is not a terminal, in which no line is wrapped or cut."""
PADDING = re.compile(r" +$", re.MULTILINE)
SIZE = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


def _environment() -> dict[str, str]:
    """Return the environment without a COLUMNS or LINES that is not a size; 0 means that it is unknown."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"COLUMNS", "LINES"} or SIZE.fullmatch(value)
    }


class Console(rich.console.Console):
    """A console on standard output, or on standard error."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        environment = _environment()
        piped = not stream.isatty() and "COLUMNS" not in environment
        super().__init__(
            file=getattr(stream, "unescaped", stream),
            stderr=stderr,
            width=UNLIMITED if piped else None,
            _environ=environment,
        )

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape all text. Everything that rich prints goes through this method."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Render what is printed. Output that is not a terminal gets no padding at the ends of its lines."""
        text = super()._render_buffer(buffer)
        return text if self.is_terminal else PADDING.sub("", text)
