# SPDX-License-Identifier: MIT
"""Shows how much of a file was read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def file_progress(text: str) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar for reading a file, if standard error is a terminal.

    Yields a function that takes the bytes read so far and the size of the file.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    from rtgauge.cli.console import Console

    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield lambda _read_bytes, _size: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task(Text(text).plain, total=None)
        yield lambda read_bytes, size: bar.update(task, completed=read_bytes, total=size)
