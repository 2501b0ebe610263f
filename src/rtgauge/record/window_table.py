# SPDX-License-Identifier: MIT
"""Collects a step's windows in bounded memory: it writes parts to files, and merges long steps in time."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.record.files import whole_file
from rtgauge.record.histogram import Integers
from rtgauge.record.windows import NO_WINDOWS, UNKNOWN, Bins, Windows

if TYPE_CHECKING:
    from rtgauge.record.stream import Window

PACK_EVERY = 2_048
"""How many windows are kept as objects before they are packed into columns."""
FIRST_PART, MOST_PART, PART_BYTES = 4_096, 8_192, 4 << 20
"""The number of windows in the first part file and in a later one, and the memory (bytes) of a part.

A part of wide windows has fewer windows, because its memory is limited. A part takes about 0.5 MB on disk.
"""
MOST_WINDOWS, MOST_BYTES = 32_768, 40 << 20
"""A step with more windows or bytes is long: its windows stay in part files, and readers get blocks."""
MOST_BLOCKS = 8_192
"""The most blocks of a step. With 1,000 bins each, they take 100 MB of memory."""
SPANS = (2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
"""The possible numbers of windows in a block, chosen so that a block lasts a round time."""
SLICE = 2_048
"""How many windows are merged at once."""
GROUPS = 64
"""The number of blocks whose bins are counted at once."""


def no_parts() -> None:
    """Do nothing when a part is on disk: the default for `written`."""


class WindowTable:
    """The windows of a step, or of one of its two roles.

    `folder`: where part files go; if None, everything stays in memory. `name`: what their names begin with.
    `written` is called when a part is on disk.
    """

    def __init__(
        self, folder: Path | None = None, name: str = "windows", written: Callable[[], None] = no_parts
    ) -> None:
        self.count = self.bytes = 0
        self._folder, self._name, self._written = folder, name, written
        self._parts: list[Path] = []
        self._packed: list[Windows] = []
        self._unpacked: list[Window] = []
        self._first_series, self._added_ns = 0, 0

    def place(self, first_series: int, added_ns: int) -> None:
        """From now on, number series from `first_series`, and add `added_ns` to times, for the other role."""
        self._pack()
        self._first_series, self._added_ns = first_series, added_ns

    def add(self, window: Window) -> None:
        """Add a window. Raises RecordError if its bins are invalid, OSError if a part cannot be written."""
        self._unpacked.append(window)
        self.count += 1
        if len(self._unpacked) >= PACK_EVERY:
            self._pack()
            enough = (
                sum(map(len, self._packed)) >= min(FIRST_PART * (1 + len(self._parts)), MOST_PART)
                or sum(windows.nbytes for windows in self._packed) >= PART_BYTES
            )
            if self._folder is not None and enough:
                self._write_part(self._folder)

    def expect(self, count: float) -> None:
        """Prepare for about `count` windows: if needed, import the part writer before measuring begins."""
        if count >= PACK_EVERY:
            importlib.import_module("rtgauge.record.windows_file")

    def is_long(self, other: WindowTable | None = None) -> bool:
        """Return whether these windows make a long step together with the windows of the other role."""
        tables = [self] if other is None else [self, other]
        if self._folder is None or sum(table.count for table in tables) < PACK_EVERY:
            return False
        for table in tables:
            table._pack()
        return (
            sum(table.count for table in tables) > MOST_WINDOWS
            or sum(table.bytes for table in tables) > MOST_BYTES
        )

    def windows(self, other: WindowTable | None = None) -> Windows:
        """Return this table's windows: in order of arrival, or merged into blocks if the step is long.
        `other`: the table of the other role, whose windows count too, because both tables must have blocks of
        one length.
        """
        self._pack()
        if self._folder is None or not self.is_long(other):
            windows = Windows.together([NO_WINDOWS, *self._in_parts(), *self._packed])
            for part in self._parts:
                part.unlink()
            self._parts = []
            return windows
        if self._packed:
            self._write_part(self._folder)
        count = self.count + (other.count if other is not None else 0)
        merged = in_blocks(self._in_parts(), block_span(count))
        most = MOST_BYTES if other is None else MOST_BYTES // 2
        while merged.nbytes > most and merged.index.max():
            merged = in_blocks([merged], 2)
        return merged

    def _in_parts(self) -> Iterable[Windows]:
        if self._parts:
            from rtgauge.record.windows_file import slices_of

            for part in self._parts:
                yield from slices_of(part)

    def _pack(self) -> None:
        if not self._unpacked:
            return
        windows = Windows.of(self._unpacked).moved(self._first_series, self._added_ns)
        self._packed.append(windows)
        self.bytes += windows.nbytes
        self._unpacked = []

    def _write_part(self, folder: Path) -> None:
        from rtgauge.record.windows_file import write_windows

        part = folder / f"{self._name}-{len(self._parts):05}.parquet"
        with whole_file(part) as file:
            write_windows(Windows.together(self._packed), file)
        self._parts.append(part)
        self._packed = []
        self._written()


def block_span(windows: int) -> int:
    """Return how many windows of a series make a block if the step has `windows` windows."""
    return next((span for span in SPANS if windows <= span * MOST_BLOCKS), SPANS[-1])


def in_blocks(windows: Iterable[Windows], span: int) -> Windows:
    """Merge every `span` windows of a series and phase, in time order, into a block. `index` counts the
    blocks of a series and phase.

    Only resolution in time is lost: a block has the exact histogram, count, extremes and sums of its windows.
    """
    closed: list[Windows] = [NO_WINDOWS]
    open_blocks = NO_WINDOWS
    for many in windows:
        for first in range(0, len(many), SLICE):
            part = many.chosen(slice(first, first + SLICE))
            numbered = replace(part, index=part.index // span)
            merged = _merge_alike(Windows.together([open_blocks, numbered]))
            newest = _is_newest(merged)
            closed.append(merged.chosen(~newest))
            open_blocks = merged.chosen(newest)
    return Windows.together([*closed, open_blocks])


def _of_series(windows: Windows) -> Integers:
    """Return a number for each window's combination of series and phase."""
    return 2 * windows.series + windows.measured


def _is_newest(windows: Windows) -> np.ndarray:
    """Return whether each window has the highest index of its series and phase."""
    _, numbers = np.unique(_of_series(windows), return_inverse=True)
    last = np.zeros(len(windows), dtype=np.int64)
    np.maximum.at(last, numbers, windows.index)
    return windows.index == last[numbers]


def _merge_alike(windows: Windows) -> Windows:
    """Merge windows with the same series, phase and index, in order of first appearance."""
    keys = np.stack([_of_series(windows), windows.index])
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    first, group = first[order], place[group.ravel()]

    def summed(numbers: np.ndarray) -> np.ndarray:
        total = np.zeros(len(first), dtype=numbers.dtype)
        np.add.at(total, group, numbers)
        return total

    def extreme_of(ufunc: np.ufunc, numbers: Integers) -> Integers:
        unknown = np.iinfo(np.int64).max if ufunc is np.minimum else UNKNOWN
        extremes = np.full(len(first), unknown, dtype=np.int64)
        ufunc.at(extremes, group, np.where(numbers == UNKNOWN, unknown, numbers))
        return np.where(extremes == unknown, UNKNOWN, extremes)

    count, sum_ns = summed(windows.count), summed(windows.sum_ns)
    filled = windows.count > 0
    # Chan, Golub and LeVeque (1979), as in windows.merge_moments.
    apart = windows.sum_ns[filled] / windows.count[filled] - (sum_ns / np.maximum(count, 1))[group[filled]]
    between = np.zeros(len(windows))
    between[filled] = windows.count[filled] * apart**2
    return Windows(
        series=windows.series[first],
        measured=windows.measured[first],
        index=windows.index[first],
        start_ns=extreme_of(np.minimum, windows.start_ns),
        end_ns=extreme_of(np.maximum, windows.end_ns),
        count=count,
        missed=summed(windows.missed),
        min_ns=extreme_of(np.minimum, windows.min_ns),
        max_ns=extreme_of(np.maximum, windows.max_ns),
        sum_ns=sum_ns,
        m2_ns2=summed(windows.m2_ns2 + between),
        bins=_merged_bins(windows.bins, group, len(first)),
        missed_bins=_merged_bins(windows.missed_bins, group, len(first)),
    )


def _merged_bins(bins: Bins, group: Integers, groups: int) -> Bins:
    """Return the histograms of the groups 0 to `groups` - 1. `group`: the group of each window."""
    of_bin = np.repeat(group, bins.lengths)
    low, width = (int(bins.bins.min()), int(np.ptp(bins.bins)) + 1) if len(bins.bins) else (0, 1)
    parts: list[Bins] = [NO_WINDOWS.bins]
    for first in range(0, groups, GROUPS):
        here = (of_bin >= first) & (of_bin < first + GROUPS)
        totals = np.zeros((min(GROUPS, groups - first), width), dtype=np.int64)
        np.add.at(totals, (of_bin[here] - first, bins.bins[here] - low), bins.counts[here])
        filled = totals > 0
        at = (np.nonzero(filled)[1] + low).astype(np.int32)
        parts.append(Bins(at, totals[filled], filled.sum(axis=1)))
    return Bins.together(parts)
