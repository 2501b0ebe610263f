# SPDX-License-Identifier: MIT
"""Opens a file of an oscilloscope or a logic analyser: a regular one, since it is read more than once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rtgauge.errors import InputError
from rtgauge.input_file import open_regular

if TYPE_CHECKING:
    from collections.abc import Generator
    from io import BufferedReader
    from pathlib import Path


@contextmanager
def open_edges(path: Path) -> Generator[BufferedReader]:
    """The file, for reading.

    Raises InputError for one that cannot be read or is no regular file; a pipe is not waited for.
    """
    try:
        with open_regular(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
