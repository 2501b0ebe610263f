# SPDX-License-Identifier: MIT
"""Reads levels from a CSV file of any size in blocks of bounded memory.

The first line is `time_s,NAME,...`. Each following line has a time in seconds, and the level (0 or 1) of each
channel from this time on.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rtgauge.errors import InputError
from rtgauge_ext.instrument.edges import open_edges

TIME = "time_s"
BLOCK_BYTES = 32 * 1024 * 1024
LINE_BYTES = 64 * 1024
"""The longest line."""
MOST_S = 100 * 365 * 86_400
"""The latest time, so that times and their distances in ns fit into 64 bits."""


class Levels(NamedTuple):
    """A block of rows: `times_ns` of shape (rows,) and `high` of shape (channels, rows)."""

    times_ns: NDArray[np.int64]
    high: NDArray[np.bool_]


def read_names(path: Path) -> list[str]:
    """Return the names of the channels. Raises InputError if the first line is not that of such a file."""
    with open_edges(path) as file:
        line = file.readline(LINE_BYTES)
    first, *names = (name.strip() for name in line.decode("utf-8-sig", "replace").split(","))
    if first != TIME or not names or not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"{path.name} is neither VCD nor CSV that begins with the line {TIME},CHANNEL,...; see 'Files "
            "of oscilloscopes and logic analysers' in ext/instrument/README.md"
        )
    return names


def _blocks(path: Path, block_bytes: int, progress: Callable[[int], None] | None) -> Iterator[bytes]:
    """Yield whole lines in blocks of about `block_bytes`."""
    with open_edges(path) as file:
        file.readline()
        while data := file.read(block_bytes):
            data += file.readline(LINE_BYTES)
            if progress is not None:
                progress(file.tell())
            yield data


def read_levels(
    path: Path,
    channels: Sequence[int],
    *,
    block_bytes: int = BLOCK_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Levels]:
    """Yield the rows, with the levels of these channels (indices in `read_names`).

    `progress` is called with the bytes read. Raises InputError if a row is not as the module says.
    """
    schema = {TIME: pl.Float64, **dict.fromkeys(read_names(path), pl.Float64)}
    last_ns = -np.inf
    for block in _blocks(path, block_bytes, progress):
        try:
            table = pl.read_csv(io.BytesIO(block), has_header=False, schema=schema).to_numpy().T
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise InputError(
                f"{path.name} has a row that cannot be read: {str(error).splitlines()[0]}"
            ) from None
        times_s, levels = table[0], table[1:]
        if not ((levels == 0) | (levels == 1)).all():
            raise InputError(f"{path.name} has a level that is neither 0 nor 1; export digital levels")
        if not (np.abs(times_s) <= MOST_S).all():
            raise InputError(f"{path.name} has a time that is missing or beyond 100 years; export it again")
        times_ns = np.rint(times_s * 1e9)
        if (np.diff(times_ns, prepend=last_ns) < 0).any():
            raise InputError(
                f"the times in {path.name} run backwards; export each segment to a file of its own"
            )
        last_ns = times_ns[-1] if len(times_ns) else last_ns
        yield Levels(times_ns.astype(np.int64), levels[list(channels)] == 1)
