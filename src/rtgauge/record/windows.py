# SPDX-License-Identifier: MIT
"""Holds a step's windows (docs/formats/record.md) in numpy columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from rtgauge.errors import RecordError
from rtgauge.record.histogram import NO_INTEGERS, OVERFLOW_BIN, Histogram, Integers, decode

if TYPE_CHECKING:
    from rtgauge.record import stream

Chosen = npt.NDArray[np.bool_]

UNKNOWN = int(np.iinfo(np.int64).min)
"""Stands for an unknown number in a column of integers."""
MOST_NUMBER = 1 << 32
"""The upper limit of series numbers and indices."""
SLICE = 512
"""The number of windows whose bins are counted at once. Counting all at once would take several times the
memory of the bins.
"""
INTEGERS = (
    "series", "index", "start_ns", "end_ns", "count", "missed", "min_ns", "max_ns", "sum_ns",
)  # fmt: skip
COLUMNS = ("phase", "m2_ns2", *INTEGERS)
HISTOGRAMS = {"bins": "counts", "missed_bins": "missed_counts"}
"""The pairs of columns in windows.parquet that hold bins and their counts."""


@dataclass(frozen=True, eq=False)
class Bins:
    """The histogram of each window. `bins` and `counts` contain the values of all windows, one window after
    another.
    """

    bins: npt.NDArray[np.int32]
    counts: Integers
    lengths: Integers
    """How many bins each window has."""

    @cached_property
    def ends(self) -> Integers:
        """The offset of each window's first bin, and the end of the last window's bins."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def sums(self) -> Integers:
        """The sum of each window's counts."""
        return np.diff(np.concatenate([[0], np.cumsum(self.counts)])[self.ends])

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.bins.nbytes + self.counts.nbytes + self.lengths.nbytes

    def of(self, window: int) -> Histogram:
        """Return the histogram of one window."""
        part = slice(self.ends[window], self.ends[window + 1])
        return Histogram(self.bins[part].astype(np.int64), self.counts[part])

    def chosen(self, windows: Chosen | slice) -> Self:
        """Select the histograms of these windows. A slice must not have a step."""
        if isinstance(windows, slice):
            first, end, _ = windows.indices(len(self.lengths))
            part = slice(self.ends[first], self.ends[max(first, end)])
        else:
            part = np.repeat(windows, self.lengths)
        return replace(self, bins=self.bins[part], counts=self.counts[part], lengths=self.lengths[windows])

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return the histograms of all parts, one part after the other."""
        return cls(
            np.concatenate([part.bins for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    def are_rising(self) -> bool:
        """Return whether the bins of each window ascend."""
        falls = np.flatnonzero(self.bins[1:] <= self.bins[:-1]) + 1
        return bool(np.isin(falls, self.ends).all())

    def total(self, windows: Chosen) -> Histogram:
        """Return the sum of these windows' histograms."""
        totals = np.zeros(2 * OVERFLOW_BIN + 1, dtype=np.int64)
        for first in range(0, len(windows), SLICE):
            here = slice(first, first + SLICE)
            if windows[here].any():
                part = self.chosen(here).chosen(windows[here])
                np.add.at(totals, part.bins + OVERFLOW_BIN, part.counts)
        filled = np.flatnonzero(totals)
        return Histogram(filled - OVERFLOW_BIN, totals[filled])


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows as columns: one entry per window, in order of arrival."""

    series: Integers
    measured: Chosen
    """Whether each window is in the measured phase instead of the warm-up."""
    index: Integers
    start_ns: Integers
    end_ns: Integers
    count: Integers
    missed: Integers
    min_ns: Integers
    max_ns: Integers
    sum_ns: Integers
    m2_ns2: npt.NDArray[np.float64]
    """NaN if unknown."""
    bins: Bins
    missed_bins: Bins

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.series)

    @classmethod
    def of(cls, lines: Sequence[stream.Window]) -> Self:
        """Make windows from lines of the stream. Raises RecordError for an invalid line."""
        histograms = {name: _stream_bins([getattr(line, name) for line in lines]) for name in HISTOGRAMS}
        return cls._of({name: [getattr(line, name) for line in lines] for name in COLUMNS}, histograms)

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Make windows from rows with the columns of windows.parquet. Raises RecordError for an
        invalid row.
        """
        try:
            histograms = {
                name: Bins(
                    np.array([at for row in rows for at in row[name]], dtype=np.int32),
                    np.array([count for row in rows for count in row[counts]], dtype=np.int64),
                    np.array([len(row[name]) for row in rows], dtype=np.int64),
                )
                for name, counts in HISTOGRAMS.items()
            }
        except OverflowError as error:
            raise _no_windows(error) from None
        return cls._of({name: [row[name] for row in rows] for name in COLUMNS}, histograms)

    @classmethod
    def _of(cls, columns: Mapping[str, Sequence[Any]], histograms: Mapping[str, Bins]) -> Self:
        try:
            integers = {
                name: np.array(
                    [UNKNOWN if value is None else value for value in columns[name]], dtype=np.int64
                )
                for name in INTEGERS
            }
        except OverflowError as error:
            raise _no_windows(error) from None
        for name in ("series", "index"):
            if len(integers[name]) and not 0 <= integers[name].min() <= integers[name].max() < MOST_NUMBER:
                raise _no_windows(f"{name} is out of range")
        return cls(
            **integers,
            measured=np.array([phase == "measure" for phase in columns["phase"]], dtype=np.bool_),
            m2_ns2=np.array(columns["m2_ns2"], dtype=np.float64),
            bins=histograms["bins"],
            missed_bins=histograms["missed_bins"],
        )

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """Return the windows of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("measured", "m2_ns2", *INTEGERS)
        }
        return cls(
            **columns,
            bins=Bins.together([part.bins for part in parts]),
            missed_bins=Bins.together([part.missed_bins for part in parts]),
        )

    @cached_property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return sum(getattr(self, column.name).nbytes for column in fields(self))

    def chosen(self, windows: Chosen | slice) -> Self:
        """Return these windows: the ones that the mask selects, or a slice without a step."""
        columns: dict[str, Any] = {
            name: getattr(self, name)[windows] for name in ("measured", "m2_ns2", *INTEGERS)
        }
        return replace(
            self, **columns, bins=self.bins.chosen(windows), missed_bins=self.missed_bins.chosen(windows)
        )

    def are_of(self, series: int | Collection[int] | None, *, measured: bool = True) -> Chosen:
        """Return whether each window belongs to these series (None: any) and to the measured phase or, if not
        `measured`, the warm-up.
        """
        in_phase = self.measured == measured
        if series is None:
            return in_phase
        return in_phase & np.isin(self.series, series if isinstance(series, int) else list(series))

    def moved(self, first_series: int, added_ns: int) -> Self:
        """Return a copy with series numbered from `first_series` and with `added_ns` added to the times."""
        return replace(
            self,
            series=self.series + first_series,
            start_ns=self.start_ns + added_ns,
            end_ns=self.end_ns + added_ns,
        )


def known(numbers: Integers) -> Integers:
    """Return the known numbers."""
    return numbers[numbers != UNKNOWN]


def least(numbers: Integers) -> int | None:
    """Return the smallest known number; None if none is known."""
    return int(numbers.min()) if len(numbers := known(numbers)) else None


def largest(numbers: Integers) -> int | None:
    """Return the largest known number; None if none is known."""
    return int(numbers.max()) if len(numbers := known(numbers)) else None


def _no_windows(why: object) -> RecordError:
    return RecordError(f"its counts and times per window are damaged: {why}")


def _stream_bins(texts: Sequence[str]) -> Bins:
    """Decode each window's bins and counts. Raises RecordError if they are damaged."""
    values, numbers = decode(texts)
    if np.any(numbers & 1):
        raise RecordError("a bin of a window lacks its count")
    lengths = numbers // 2
    bins, counts = _from_gaps(values[0::2], lengths), values[1::2].astype(np.int64)
    result = Bins(bins.astype(np.int32), counts, lengths)
    if np.abs(bins).max(initial=0) > OVERFLOW_BIN or counts.min(initial=1) <= 0 or not result.are_rising():
        raise RecordError("the bins of a window are empty, out of range or not in rising order")
    return result


def _from_gaps(gaps: npt.NDArray[np.int64 | np.int32], lengths: Integers) -> Integers:
    """Return bin numbers from the distances between them. `lengths`: how many bins each window has."""
    if not len(gaps):
        return NO_INTEGERS
    bins = np.cumsum(gaps, dtype=np.int64)
    behind = np.cumsum(lengths)
    bins -= np.repeat(np.where(behind > lengths, bins[behind - lengths - 1], 0), lengths)
    return bins


NO_WINDOWS = Windows.of([])
