# SPDX-License-Identifier: MIT
"""The recorded trace of a step's largest latencies: moments.ndjson.gz (docs/formats/record.md).

It is written during the step, without interpretation.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from rtgauge.errors import RecordError
from rtgauge.input_file import MIB, open_regular, parse_json
from rtgauge.record.files import new_file, whole_file
from rtgauge.record.record_folder import Identity, Source, damaged, identity_of, open_source

if TYPE_CHECKING:
    from rtgauge.record.stream import SymbolsLine, TraceFormatsLine

MOMENTS = "moments.ndjson.gz"
MOST_BYTES = 1024 * MIB
MOST_LINE = 128 * MIB
"""Most bytes of one moment: 16 MiB of ring buffer on each of several CPUs, in base64."""
MOST_MOMENTS = 10_000


@dataclass(frozen=True)
class MomentFile:
    """A step's moments, read from its file.

    `formats`: the stream's line `trace_formats`. `identity`: identifies the file that was read.
    """

    source: Source
    identity: Identity
    formats: dict[str, Any] = field(compare=False)

    @classmethod
    def open(cls, source: Source) -> MomentFile:
        """Open a step's moments. Raises RecordError if the file is damaged."""
        with _opened(source) as file:
            document = next(_lines(file), dict[str, Any]())
            if document.get("type") != "trace_formats":
                raise RecordError(
                    f"{source} does not begin with the formats of its events: the record is damaged"
                )
            return cls(source, identity_of(file), document)

    def moments(self) -> Iterator[dict[str, Any]]:
        """Yield the stream's `moment` lines one by one, because they may not all fit in memory. Raises
        RecordError.
        """
        with _opened(self.source) as file:
            for number, document in enumerate(_lines(file)):
                if number > MOST_MOMENTS:
                    raise RecordError(
                        f"{self.source} has the events of more than {MOST_MOMENTS} latencies: the record is "
                        "damaged"
                    )
                if document.get("type") == "moment":
                    yield document


@contextmanager
def _opened(source: Source) -> Generator[BinaryIO]:
    """Open the compressed file. Raises RecordError if it cannot be read."""
    try:
        with open_source(source, MOST_BYTES) as file:
            yield file
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise damaged(source, error) from None


def _lines(compressed: BinaryIO) -> Iterator[dict[str, Any]]:
    with gzip.GzipFile(fileobj=compressed) as file:
        while line := file.readline(MOST_LINE):
            if len(line) == MOST_LINE:
                raise ValueError(f"a line is longer than {MOST_LINE / MIB:g} MiB")
            document = parse_json(line)
            if not isinstance(document, dict):
                raise ValueError("a line is not a JSON object")
            yield cast("dict[str, Any]", document)


UNFINISHED = "moments.part"
MOST_WRITTEN = 256 << 20
"""Most bytes of a step's `moment` lines, before compression; an engine sends 85 MiB at most."""


class MomentWriter:
    """Writes a step's moments to disk as they arrive.

    The finished file begins with the event formats and symbols, although they arrive last.
    """

    def __init__(self, folder: Path, formats: TraceFormatsLine) -> None:
        """Create the file in the step's folder. Raises OSError."""
        self._folder, self._formats = folder, formats
        self._symbols: dict[str, str] = {}
        self._bytes = 0
        self._part = new_file(folder / UNFINISHED)
        self._file = gzip.GzipFile(fileobj=self._part, mode="wb", compresslevel=6)

    def add(self, text: bytes) -> None:
        """Add a `moment` line. Raises OSError, or RecordError if there are too many bytes."""
        self._bytes += len(text)
        if self._bytes > MOST_WRITTEN:
            raise RecordError(
                f"the stream has more than {MOST_WRITTEN >> 20} MiB of recorded events, so the engine is "
                "not the one of this rtgauge"
            )
        self._file.write(text)

    def add_symbols(self, line: SymbolsLine) -> None:
        """Add names of kernel addresses."""
        self._symbols |= line.symbols

    def finish(self) -> None:
        """Finish the file. Raises OSError."""
        self._file.close()
        self._part.close()
        head = self._formats.model_dump() | {"symbols": self._symbols}
        part = self._folder / UNFINISHED
        with whole_file(self._folder / MOMENTS) as whole, open_regular(part) as moments:
            whole.write(gzip.compress(json.dumps(head).encode() + b"\n"))
            shutil.copyfileobj(moments, whole)
        part.unlink()
