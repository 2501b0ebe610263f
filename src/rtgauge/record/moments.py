# SPDX-License-Identifier: MIT
"""The frozen trace of a step's largest latencies: moments.ndjson.gz (docs/formats/record.md). Nothing is interpreted here."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rtgauge.errors import RecordError
from rtgauge.input_file import MIB, open_regular, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOMENTS = "moments.ndjson.gz"
MOST_BYTES = 1024 * MIB
MOST_LINE = 128 * MIB
"""Bytes of one moment: 16 MiB of ring on each of some CPUs, in base64."""
MOST_MOMENTS = 10_000


@dataclass(frozen=True)
class MomentFile:
    """The moments of one step. `formats`: its line `trace_formats` of the stream."""

    path: Path
    formats: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> MomentFile:
        """Raises RecordError."""
        for document in _lines(path):
            if document.get("type") == "trace_formats":
                return cls(path, document)
            break
        raise RecordError(f"{path} does not begin with the formats of its events: the record is damaged")

    def moments(self) -> Iterator[dict[str, Any]]:
        """The lines `moment` of the stream, one after the other: they need not fit into memory together. Raises RecordError."""
        for number, document in enumerate(_lines(self.path)):
            if number > MOST_MOMENTS:
                raise RecordError(f"{self.path} has more than {MOST_MOMENTS} moments: the record is damaged")
            if document.get("type") == "moment":
                yield document


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_regular(path, MOST_BYTES) as raw, gzip.GzipFile(fileobj=raw) as file:
            while line := file.readline(MOST_LINE):
                if len(line) == MOST_LINE:
                    raise ValueError(f"a line is longer than {MOST_LINE / MIB:g} MiB")
                document = parse_json(line)
                if not isinstance(document, dict):
                    raise ValueError("a line is no object")
                yield cast("dict[str, Any]", document)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise RecordError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error}): the record is damaged") from None
