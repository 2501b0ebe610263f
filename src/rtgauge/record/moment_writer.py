# SPDX-License-Identifier: MIT
"""Writes moments.ndjson.gz while a step is measured (docs/formats/record.md)."""

from __future__ import annotations

import gzip
import json
import shutil
from typing import TYPE_CHECKING

from rtgauge.errors import RecordError
from rtgauge.input_file import open_regular
from rtgauge.record.files import new_file, whole_file
from rtgauge.record.moments import MOMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from rtgauge.record.stream import SymbolsLine, TraceFormatsLine

UNFINISHED = "moments.part"
MOST_BYTES = 256 << 20
"""Of the lines of a step, which are kept compressed; an engine sends 85 MiB at most."""


class MomentWriter:
    """The moments of a step.

    They are on disk as they come; the file that a record has begins with their formats and the symbols, which
    come last.
    """

    def __init__(self, folder: Path, formats: TraceFormatsLine) -> None:
        """Begin it in the step's folder. Raises OSError."""
        self._folder, self._formats = folder, formats
        self._symbols: dict[str, str] = {}
        self._bytes = 0
        self._part = new_file(folder / UNFINISHED)
        self._file = gzip.GzipFile(fileobj=self._part, mode="wb", compresslevel=6)

    def add(self, text: bytes) -> None:
        """Add a line `moment`. Raises OSError, RecordError if they are too many."""
        self._bytes += len(text)
        if self._bytes > MOST_BYTES:
            raise RecordError(
                f"the engine's stream has more than {MOST_BYTES >> 20} MiB of moments: it is not this "
                f"engine's"
            )
        self._file.write(text)

    def add_symbols(self, line: SymbolsLine) -> None:
        """Names of addresses."""
        self._symbols |= line.symbols

    def finish(self) -> None:
        """No more come. Raises OSError."""
        self._file.close()
        self._part.close()
        head = self._formats.model_dump() | {"symbols": self._symbols}
        part = self._folder / UNFINISHED
        with whole_file(self._folder / MOMENTS) as whole, open_regular(part) as moments:
            whole.write(gzip.compress(json.dumps(head).encode() + b"\n"))
            shutil.copyfileobj(moments, whole)
        part.unlink()
