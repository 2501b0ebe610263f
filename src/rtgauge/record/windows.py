# SPDX-License-Identifier: MIT
"""The frame of windows that windows.parquet holds (docs/formats/record.md)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rtgauge.record.stream import Window

SCHEMA = {
    "series": pl.UInt32,
    "phase": pl.String,
    "index": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "count": pl.UInt64,
    "missed": pl.UInt64,
    "min_ns": pl.Int64,
    "max_ns": pl.Int64,
    "sum_ns": pl.Int64,
    "m2_ns2": pl.Float64,
    "bins": pl.List(pl.Int32),
    "counts": pl.List(pl.UInt64),
    "missed_bins": pl.List(pl.UInt32),
    "missed_counts": pl.List(pl.UInt64),
}


PACK_EVERY = 256
"""So many windows are kept as objects before they are packed: a day of them then takes megabytes and not gigabytes."""


class WindowTable:
    """The windows of a step, gathered one by one."""

    def __init__(self) -> None:
        self._packed: list[pl.DataFrame] = []
        self._loose: list[Window] = []

    def add(self, window: Window) -> None:
        """Take one more."""
        self._loose.append(window)
        if len(self._loose) >= PACK_EVERY:
            self._pack()

    def frame(self) -> pl.DataFrame:
        """All of them, in the order in which they came."""
        self._pack()
        return pl.concat(self._packed)

    def _pack(self) -> None:
        self._packed.append(windows_frame(self._loose))
        self._loose = []


def windows_frame(windows: Sequence[Window]) -> pl.DataFrame:
    """One row a window, in the order given."""
    rows = [
        {
            **window.model_dump(exclude={"type", "bins", "missed_bins"}),
            "bins": [at for at, _ in window.bins],
            "counts": [count for _, count in window.bins],
            "missed_bins": [at for at, _ in window.missed_bins],
            "missed_counts": [count for _, count in window.missed_bins],
        }
        for window in windows
    ]
    return pl.DataFrame(rows, schema=SCHEMA)
