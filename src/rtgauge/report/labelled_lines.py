# SPDX-License-Identifier: MIT
"""Prints sentences in the terminal: wrapped at WIDEST columns, with commands that can be copied."""

from __future__ import annotations

import re

from rich.console import Console
from rich.text import Text

from rtgauge.report.text import printable

WIDEST = 100
"""Sentences never run beyond this column."""
UNLIMITED = 1000
"""A console of at least this width is not a terminal, so nothing is wrapped."""
LABEL = 8
"""The width of the labels before the lines of an answer."""
COMMAND = re.compile(r"(?:^|(?<=: ))(?=rtgauge )")


def prose_width(console: Console) -> int:
    """Return how wide a sentence may be."""
    return console.width if console.width >= UNLIMITED else min(console.width, WIDEST)


def labelled(
    label: str, text: str, console: Console, *, width: int = LABEL, style: str = "", label_style: str = "bold"
) -> list[Text]:
    """Return the lines of a labelled sentence, with its further lines indented below the first. A command
    at the end of what to do `next` stays on one line, so that it can be copied.
    """
    room = max(20, prose_width(console) - width)
    shown_text = printable(text)
    words, *commands = (
        COMMAND.split(shown_text, maxsplit=1) if label == "next" and len(shown_text) > room else [shown_text]
    )
    wrapped = list(Text(words.rstrip(), style=style).wrap(console, room))
    lines = [*(wrapped if words else []), *(Text(line) for line in commands)]
    starts = [Text(label.ljust(width), style=label_style), *[Text(" " * width)] * (len(lines) - 1)]
    return [Text.assemble(start, line) for start, line in zip(starts, lines, strict=True)]


def print_labelled(
    label: str, text: str, console: Console, *, width: int = LABEL, style: str = "", label_style: str = "bold"
) -> None:
    """Print a labelled sentence as `labelled` returns it."""
    for line in labelled(label, text, console, width=width, style=style, label_style=label_style):
        console.print(line, soft_wrap=True)
