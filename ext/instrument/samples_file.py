# SPDX-License-Identifier: MIT
"""Writes a file of raw samples (docs/formats/stream.md) while they arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from rtgauge.record.files import new_file
from rtgauge.record.samples import HEADER, SAMPLE, SamplesHeader


class SamplesFile:
    """A file of timed samples that grows as they arrive. Use it as a context manager. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = new_file(path)
        self._file.write(bytes(HEADER.size))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: npt.NDArray[np.int64]) -> None:
        """Append rows of (time, value), ns; shape (n, 2)."""
        self._file.write(np.ascontiguousarray(rows, dtype=SAMPLE).tobytes())

    def finish(self, header: SamplesHeader) -> None:
        """Write the header, which makes this a valid sample file."""
        self._file.seek(0)
        self._file.write(header.pack())
