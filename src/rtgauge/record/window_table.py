# SPDX-License-Identifier: MIT
"""Collects the windows of a step as they come, in bounded memory: what grows beyond it goes to files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from rtgauge.record.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from rtgauge.record.stream import Window
    from rtgauge.record.window_columns import WindowColumns

PACK_EVERY = 2_048
"""Windows kept as objects before they are packed into a frame."""
FIRST_PART, MOST_PART, PART_BYTES = 4_096, 8_192, 16 << 20
"""Windows in a part file; the first is smaller.

It has fewer where they are wide: so many bytes in memory, which are about 1 MB on disk.
"""
MOST_WINDOWS, MOST_BYTES = 32_768, 40 << 20
"""A step of more windows, or of a larger table, is a long one: its windows stay in part files, and readers
get them merged in time (`record.blocks`).
"""


def no_parts() -> None:
    """For a table that keeps no journal."""


class WindowTable:
    """The windows of a step, or of one of its two ends.

    `folder`: where parts go; None: all stays in memory. `written`: called when a part is on disk.
    """

    def __init__(
        self, folder: Path | None = None, name: str = "windows", written: Callable[[], None] = no_parts
    ) -> None:
        self.count = self.bytes = 0
        self._folder, self._name, self._written = folder, name, written
        self._parts: list[Path] = []
        self._packed: list[pl.DataFrame] = []
        self._packed_count = self._packed_bytes = 0
        self._unpacked: list[Window] = []
        self._first_series, self._added_ns = 0, 0

    def place(self, first_series: int, added_ns: int) -> None:
        """From now on series are counted from `first_series`, and `added_ns` is added to their times: of the
        other end of a step.
        """
        self._pack()
        self._first_series, self._added_ns = first_series, added_ns

    def add(self, window: Window) -> None:
        """Add a window.

        Raises RecordError if its bins are none, OSError where a part cannot be written.
        """
        self._unpacked.append(window)
        self.count += 1
        if len(self._unpacked) >= PACK_EVERY:
            self._pack()
            enough = (
                self._packed_count >= min(FIRST_PART * (1 + len(self._parts)), MOST_PART)
                or self._packed_bytes >= PART_BYTES
            )
            if self._folder is not None and enough:
                self._write_part(self._folder)

    def expect(self, count: float) -> None:
        """Get ready for about so many windows: what packs them is imported before they are measured, not
        meanwhile.
        """
        if count >= PACK_EVERY:
            importlib.import_module("rtgauge.record.window_frame")

    def is_long(self, other: WindowTable | None = None) -> bool:
        """Whether these, with those of the step's other end, are the windows of a long step."""
        tables = [self] if other is None else [self, other]
        if self._folder is None or sum(table.count for table in tables) < PACK_EVERY:
            return False
        for table in tables:
            table._pack()
        return (
            sum(table.count for table in tables) > MOST_WINDOWS
            or sum(table.bytes for table in tables) > MOST_BYTES
        )

    def windows(self) -> WindowColumns | pl.DataFrame:
        """As `frame`; if there are few, as columns, which need no polars."""
        from rtgauge.record.window_columns import WindowColumns

        few = len(self._unpacked) == self.count and not (self._first_series or self._added_ns)
        return WindowColumns.of(self._unpacked) if few else self.frame()

    def frame(self, other: WindowTable | None = None) -> pl.DataFrame:
        """The windows in order of arrival; of a long step (with those of its `other` end) merged in time, and
        all in part files.
        """
        import polars as pl

        from rtgauge.record.blocks import block_span, in_blocks
        from rtgauge.record.window_frame import SCHEMA
        from rtgauge.record.windows_file import slices_of

        self._pack()
        if self._folder is None or not self.is_long(other):
            frame = (
                pl.concat([*(part for path in self._parts for part in slices_of(path)), *self._packed])
                if self.count
                else pl.DataFrame(schema=SCHEMA)
            )
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
        import polars as pl

        from rtgauge.record.window_frame import SCHEMA, windows_frame

        frame = windows_frame(self._unpacked)
        if self._first_series or self._added_ns:
            moved = [
                (pl.col("series") + self._first_series).cast(SCHEMA["series"]),
                pl.col("start_ns", "end_ns") + self._added_ns,
            ]
            frame = frame.with_columns(moved)
        self._packed.append(frame)
        self._packed_count += len(frame)
        self._packed_bytes += frame.estimated_size()
        self.bytes += frame.estimated_size()
        self._unpacked = []

    def _write_part(self, folder: Path) -> None:
        import polars as pl

        from rtgauge.record.windows_file import write_windows

        part = folder / f"{self._name}-{len(self._parts):05}.parquet"
        with whole_file(part) as file:
            write_windows(pl.concat(self._packed), file)
        self._parts.append(part)
        self._packed, self._packed_count, self._packed_bytes = [], 0, 0
        self._written()
