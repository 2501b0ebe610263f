# SPDX-License-Identifier: MIT
"""Reads the samples of a CSV file of any size in blocks of bounded memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rtgauge.errors import InputError
from rtgauge.instrument.csv_layout import CsvLayout
from rtgauge.instrument.edges import open_edges

BLOCK_BYTES = 32 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024
MOST_VOLTS = 1e30
"""The largest level, so that levels can be subtracted. A row with a larger one is unreadable."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """A block of samples: `times_ns` of shape (n,) and `values` of shape (channels, n).

    `unreadable`: rows that were left out because a field was not a number.
    """

    times_ns: Floats
    values: Floats
    unreadable: int


def _blocks(
    path: Path, skip_lines: int, block_bytes: int, progress: Callable[[int], None] | None
) -> Iterator[bytes]:
    """Yield whole lines in blocks of about `block_bytes`."""
    with open_edges(path) as file:
        for _ in range(skip_lines):
            file.readline()
        rest = b""
        while data := file.read(block_bytes):
            if progress is not None:
                progress(file.tell())
            end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            if end == 0:
                rest += data
                if len(rest) > max(MAX_LINE_BYTES, 2 * block_bytes):
                    raise InputError(
                        f"{path.name} has a line of more than {len(rest)} bytes, so it is not a CSV file"
                    )
                continue
            yield rest + data[:end]
            rest = data[end:]
        if rest.strip():
            yield rest


def read_samples(
    path: Path,
    layout: CsvLayout,
    channels: Sequence[int],
    *,
    block_bytes: int = BLOCK_BYTES,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Samples]:
    """Yield the samples of these channels (indices in `layout.channels`).

    `progress` is called with the bytes read. Raises InputError if the file cannot be read.
    """
    places = [layout.channels[channel].place for channel in channels]
    scales = [layout.channels[channel].scale for channel in channels]
    wanted = [*([] if layout.time_place is None else [layout.time_place]), *places]
    names = [f"c{place}" for place in range(layout.fields)]
    text = layout.spaces or layout.quoted
    row = 0
    for block in _blocks(path, layout.skip_lines, block_bytes, progress):
        if b"\0" in block:
            raise InputError(f"{path.name} is damaged: it has zero bytes where there should be text")
        try:
            frame = pl.read_csv(
                io.BytesIO(block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")),
                has_header=False,
                new_columns=names,
                columns=sorted(set(wanted)),
                separator=layout.separator,
                decimal_comma=layout.decimal == "," and not text,
                schema_overrides=dict.fromkeys(names, pl.String if text else pl.Float64),
                ignore_errors=True,
                truncate_ragged_lines=True,
                encoding="utf8-lossy",
                quote_char='"' if layout.quoted else None,
                infer_schema=False,
            )
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{path.name} cannot be read as CSV: {str(error).splitlines()[0]}") from error
        frame.columns = [names[place] for place in sorted(set(wanted))]
        if text:
            column = pl.all().str.strip_chars(' "')
            column = column.str.replace(",", ".", literal=True) if layout.decimal == "," else column
            frame = frame.with_columns(column.cast(pl.Float64, strict=False))
        table = frame.select(names[place] for place in wanted).to_numpy().T.astype(np.float64)
        count = table.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # what becomes infinite is unreadable
            if layout.time_place is None:
                times_ns = layout.start_ns + (layout.increment_ns or 0.0) * np.arange(
                    row, row + count, dtype=np.float64
                )
                values = table
            else:
                times_ns = table[0] * layout.time_scale_ns
                values = table[1:]
            volts = values * np.asarray(scales)[:, None]
        row += count
        readable = np.isfinite(times_ns) & (np.abs(volts) < MOST_VOLTS).all(axis=0)
        yield Samples(
            times_ns[readable],
            volts[:, readable],
            int(count - np.count_nonzero(readable)),
        )
