# SPDX-License-Identifier: MIT
"""The frozen trace of a step's largest latencies: moments.ndjson.gz (docs/formats/record.md).

Nothing is interpreted here.
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from rtgauge.errors import RecordError
from rtgauge.input_file import MIB, parse_json
from rtgauge.record.record_folder import Identity, Source, damaged, identity_of, open_source

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MOMENTS = "moments.ndjson.gz"
MOST_BYTES = 1024 * MIB
MOST_LINE = 128 * MIB
"""Bytes of one moment: 16 MiB of ring on each of some CPUs, in base64."""
MOST_MOMENTS = 10_000


@dataclass(frozen=True)
class MomentFile:
    """The moments of one step.

    `formats`: its line `trace_formats` of the stream; `identity`: of the file that it was read from.
    """

    source: Source
    identity: Identity
    formats: dict[str, Any] = field(compare=False)

    @classmethod
    def open(cls, source: Source) -> MomentFile:
        """Raises RecordError."""
        with _opened(source) as file:
            document = next(_lines(file), dict[str, Any]())
            if document.get("type") != "trace_formats":
                raise RecordError(
                    f"{source} does not begin with the formats of its events: the record is damaged"
                )
            return cls(source, identity_of(file), document)

    def moments(self) -> Iterator[dict[str, Any]]:
        """The lines `moment` of the stream, one after the other: they need not fit into memory together.

        Raises RecordError.
        """
        with _opened(self.source) as file:
            for number, document in enumerate(_lines(file)):
                if number > MOST_MOMENTS:
                    raise RecordError(
                        f"{self.source} has more than {MOST_MOMENTS} moments: the record is damaged"
                    )
                if document.get("type") == "moment":
                    yield document


@contextmanager
def _opened(source: Source) -> Generator[BinaryIO]:
    """The compressed file. Raises RecordError."""
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
                raise ValueError("a line is not an object")
            yield cast("dict[str, Any]", document)
