# SPDX-License-Identifier: MIT
"""Collects the windows of a step as they come, in bounded memory: what grows beyond it goes to files."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rtgauge.errors import RecordError
from rtgauge.record.blocks import block_span, in_blocks
from rtgauge.record.files import whole_file
from rtgauge.record.histogram import OVERFLOW_BIN
from rtgauge.record.vlq import decode
from rtgauge.record.windows import SCHEMA, list_column
from rtgauge.record.windows_file import slices_of, write_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from rtgauge.record.stream import Bins, Window

PACK_EVERY = 512
"""Windows kept as objects before they are packed into a frame."""
FIRST_PART, MOST_PART, PART_BYTES = 4_096, 8_192, 16 << 20
"""Windows in a part file; the first is smaller. It has fewer where they are wide: so many bytes in memory, which are about 1 MB on disk."""
MOST_WINDOWS, MOST_BYTES = 32_768, 40 << 20
"""A step of more windows, or of a larger table, is a long one: its windows stay in part files, and readers get them merged in time (`record.blocks`)."""
COLUMNS = [name for name in SCHEMA if name not in {"bins", "counts", "missed_bins", "missed_counts"}]


def no_parts() -> None:
    """For a table that keeps no journal."""


class WindowTable:
    """The windows of a step, or of one of its two ends. `folder`: where parts go; None: all stays in memory. `written`: called when a part is on disk."""

    def __init__(self, folder: Path | None = None, name: str = "windows", written: Callable[[], None] = no_parts) -> None:
        self.count = self.bytes = 0
        self._folder, self._name, self._written = folder, name, written
        self._parts: list[Path] = []
        self._packed: list[pl.DataFrame] = []
        self._packed_count = self._packed_bytes = 0
        self._unpacked: list[Window] = []
        self._first_series, self._added_ns = 0, 0

    def place(self, first_series: int, added_ns: int) -> None:
        """From now on series are counted from `first_series`, and `added_ns` is added to their times: of the other end of a step."""
        self._pack()
        self._first_series, self._added_ns = first_series, added_ns

    def add(self, window: Window) -> None:
        """Add a window. Raises RecordError where its bins are none, OSError where a part cannot be written."""
        self._unpacked.append(window)
        self.count += 1
        if len(self._unpacked) >= PACK_EVERY:
            self._pack()
            enough = self._packed_count >= min(FIRST_PART * (1 + len(self._parts)), MOST_PART) or self._packed_bytes >= PART_BYTES
            if self._folder is not None and enough:
                self._write_part(self._folder)

    def is_long(self, other: WindowTable | None = None) -> bool:
        """Whether these, with those of the step's other end, are the windows of a long step."""
        tables = [self] if other is None else [self, other]
        for table in tables:
            table._pack()
        return self._folder is not None and (sum(table.count for table in tables) > MOST_WINDOWS or sum(table.bytes for table in tables) > MOST_BYTES)

    def frame(self, other: WindowTable | None = None) -> pl.DataFrame:
        """The windows in order of arrival; of a long step (with those of its `other` end) merged in time, and all in part files."""
        self._pack()
        if self._folder is None or not self.is_long(other):
            frame = pl.concat([*(part for path in self._parts for part in slices_of(path)), *self._packed]) if self.count else pl.DataFrame(schema=SCHEMA)
            for part in self._parts:
                part.unlink()
            self._parts = []
            return frame
        if self._packed:
            self._write_part(self._folder)
        windows = (windows for part in self._parts for windows in slices_of(part))
        merged = in_blocks(windows, block_span(self.count + (other.count if other is not None else 0)))
        most = MOST_BYTES if other is None else MOST_BYTES // 2
        while merged.estimated_size() > most and merged["index"].max():
            merged = in_blocks(merged.iter_slices(), 2)
        return merged

    def _pack(self) -> None:
        if not self._unpacked:
            return
        frame = windows_frame(self._unpacked)
        if self._first_series or self._added_ns:
            moved = [(pl.col("series") + self._first_series).cast(SCHEMA["series"]), pl.col("start_ns", "end_ns") + self._added_ns]
            frame = frame.with_columns(moved)
        self._packed.append(frame)
        self._packed_count += len(frame)
        self._packed_bytes += frame.estimated_size()
        self.bytes += frame.estimated_size()
        self._unpacked = []

    def _write_part(self, folder: Path) -> None:
        part = folder / f"{self._name}-{len(self._parts):05}.parquet"
        with whole_file(part) as file:
            write_windows(pl.concat(self._packed), file)
        self._parts.append(part)
        self._packed, self._packed_count, self._packed_bytes = [], 0, 0
        self._written()


def windows_frame(windows: Sequence[Window]) -> pl.DataFrame:
    """One row per window, in the given order. Raises RecordError where the bins are none."""
    columns: dict[str, Any] = {name: [getattr(window, name) for window in windows] for name in COLUMNS}
    bins, counts = _lists([window.bins for window in windows])
    missed_bins, missed_counts = _lists([window.missed_bins for window in windows])
    columns |= {"bins": bins, "counts": counts, "missed_bins": missed_bins, "missed_counts": missed_counts}
    try:
        return pl.DataFrame(columns, schema_overrides=SCHEMA).cast(SCHEMA)  # pyright: ignore[reportArgumentType] - polars takes the classes of types too
    except (pl.exceptions.PolarsError, OverflowError, TypeError) as error:
        raise RecordError(f"not windows of the engine's stream: {error}") from None


def _lists(texts: Sequence[Bins]) -> tuple[pl.Series, pl.Series]:
    """The bins and the counts of each window."""
    if all(isinstance(text, str) for text in texts):
        values, numbers = decode([text for text in texts if isinstance(text, str)])
        if np.any(numbers & 1):
            raise RecordError("a window has a bin without a count")
        pairs = numbers // 2
        bins, counts = _from_gaps(values[0::2], pairs), values[1::2]
    else:
        flat = [list(chain.from_iterable(text)) if not isinstance(text, str) else _pairs(text) for text in texts]
        pairs = np.fromiter((len(row) // 2 for row in flat), dtype=np.int64, count=len(flat))
        values = np.fromiter(chain.from_iterable(flat), dtype=np.int64, count=int(2 * pairs.sum()))
        bins, counts = values[0::2], values[1::2]
    first = np.cumsum(pairs) - pairs
    falls = np.flatnonzero(bins[1:] <= bins[:-1]) + 1
    if not np.isin(falls, first).all() or bins.max(initial=0) > OVERFLOW_BIN or bins.min(initial=0) < -OVERFLOW_BIN or counts.min(initial=1) <= 0:
        raise RecordError("the bins of a window are not in rising order, out of range or empty")
    return list_column("bins", pl.Series(bins.astype(np.int32)), pairs), list_column("counts", pl.Series(counts.astype(np.uint64)), pairs)


def _from_gaps(gaps: npt.NDArray[np.int64 | np.int32], pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The bins of windows with so many pairs each, from their distances."""
    if not len(gaps):
        return np.empty(0, dtype=np.int64)
    bins = np.cumsum(gaps, dtype=np.int64)
    behind = np.cumsum(pairs)
    bins -= np.repeat(np.where(behind > pairs, bins[behind - pairs - 1], 0), pairs)
    return bins


def _pairs(text: str) -> list[int]:
    values, _ = decode([text])
    bins = np.cumsum(values[0::2])
    return np.stack([bins, values[1::2]], axis=1).ravel().tolist()
