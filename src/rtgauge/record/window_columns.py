# SPDX-License-Identifier: MIT
"""Windows of the stream as columns of numpy: enough for the figures of a short step, without polars, whose
import takes longer than those.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rtgauge.errors import RecordError
from rtgauge.record.histogram import OVERFLOW_BIN
from rtgauge.record.vlq import decode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from rtgauge.record.stream import Bins, Window

    Integers = npt.NDArray[np.int64]

INTEGERS = ("series", "index", "start_ns", "end_ns", "count", "missed", "sum_ns")
EXTREMES = ("min_ns", "max_ns")


@dataclass(frozen=True)
class BinLists:
    """A list of bins and one of their counts for each window: all of them one after the other, and how many
    each window has.
    """

    bins: Integers
    counts: npt.NDArray[np.int64 | np.int32]
    lengths: Integers

    def of(self, chosen: npt.NDArray[np.bool_]) -> tuple[Integers, Integers]:
        """(bins, counts) of the chosen windows, one window after the other."""
        where = np.repeat(chosen, self.lengths)
        return self.bins[where], self.counts[where].astype(np.int64)


@dataclass(frozen=True)
class WindowColumns:
    """One entry per window, in the given order; columns as in docs/formats/record.md."""

    integers: dict[str, Integers]
    phase: npt.NDArray[np.str_]
    extremes: dict[str, list[int | None]]
    m2_ns2: npt.NDArray[np.float64]
    lists: dict[str, BinLists]
    """Of "bins" and "missed_bins"."""

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.phase)

    @classmethod
    def of(cls, windows: Sequence[Window]) -> WindowColumns:
        """Raises RecordError if the bins are none or a number has more than 64 bits."""
        try:
            integers = {
                name: np.array([getattr(window, name) for window in windows], dtype=np.int64)
                for name in INTEGERS
            }
            extremes = {
                name: [cast("int | None", getattr(window, name)) for window in windows] for name in EXTREMES
            }
            for values in extremes.values():
                np.array([value for value in values if value is not None], dtype=np.int64)
        except OverflowError as error:
            raise RecordError(f"not windows of the engine's stream: {error}") from None
        return cls(
            integers,
            np.array([window.phase for window in windows], dtype=np.str_),
            extremes,
            np.array([window.m2_ns2 for window in windows], dtype=np.float64),
            {
                "bins": _bin_lists([window.bins for window in windows]),
                "missed_bins": _bin_lists([window.missed_bins for window in windows]),
            },
        )

    def chosen(self, series: int | Collection[int] | None, phase: str) -> npt.NDArray[np.bool_]:
        """Whether each window is of one of these series (None: of any) and of the phase."""
        in_phase = self.phase == phase
        return (
            in_phase
            if series is None
            else in_phase
            & np.isin(self.integers["series"], series if isinstance(series, int) else list(series))
        )

    def numbers(self, names: Sequence[str], chosen: npt.NDArray[np.bool_]) -> dict[str, list[Any]]:
        """These columns, of the chosen windows."""
        return {name: list(compress(self._column(name), chosen)) for name in names}

    def _column(self, name: str) -> list[Any]:
        if name in self.extremes:
            return self.extremes[name]
        return (self.m2_ns2 if name == "m2_ns2" else self.integers[name]).tolist()


def _bin_lists(texts: Sequence[Bins]) -> BinLists:
    """The bins and the counts of each window."""
    if all(isinstance(text, str) for text in texts):
        values, numbers = decode([text for text in texts if isinstance(text, str)])
        if np.any(numbers & 1):
            raise RecordError("a window has a bin without a count")
        pairs = numbers // 2
        bins, counts = _from_gaps(values[0::2], pairs), values[1::2]
    else:
        flat = [
            list(chain.from_iterable(text)) if not isinstance(text, str) else _pairs(text) for text in texts
        ]
        pairs = np.fromiter((len(row) // 2 for row in flat), dtype=np.int64, count=len(flat))
        values = np.fromiter(chain.from_iterable(flat), dtype=np.int64, count=int(2 * pairs.sum()))
        bins, counts = values[0::2], values[1::2]
    first = np.cumsum(pairs) - pairs
    falls = np.flatnonzero(bins[1:] <= bins[:-1]) + 1
    if (
        not np.isin(falls, first).all()
        or bins.max(initial=0) > OVERFLOW_BIN
        or bins.min(initial=0) < -OVERFLOW_BIN
        or counts.min(initial=1) <= 0
    ):
        raise RecordError("the bins of a window are not in rising order, out of range or empty")
    return BinLists(bins, counts, pairs)


def _from_gaps(gaps: npt.NDArray[np.int64 | np.int32], pairs: Integers) -> Integers:
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
