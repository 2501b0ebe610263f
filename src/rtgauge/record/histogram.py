# SPDX-License-Identifier: MIT
"""Histograms, their bins (docs/formats/histogram.md), and the Base64 VLQ numbers of the engine's stream
(docs/formats/stream.md).

A bin below 200 ns has a single value. From there to 10 s, the width of a bin is at most 1 % of its smallest
value, and up to 10 ms it is at most 1 us.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rtgauge.errors import RecordError

Integers = npt.NDArray[np.int64]

# The (first value, width) of each segment in ns. A segment ends where the next one begins.
SEGMENTS = (
    (0, 1), (200, 2), (500, 5),
    (1_000, 10), (2_000, 20), (5_000, 50),
    (10_000, 100), (20_000, 200), (50_000, 500),
    (100_000, 1_000),
    (10_000_000, 100_000), (20_000_000, 200_000), (50_000_000, 500_000),
    (100_000_000, 1_000_000), (200_000_000, 2_000_000), (500_000_000, 5_000_000),
    (1_000_000_000, 10_000_000), (2_000_000_000, 20_000_000), (5_000_000_000, 50_000_000),
)  # fmt: skip
OVERFLOW_NS = 10_000_000_000

_ENDS = (*(first for first, _ in SEGMENTS[1:]), OVERFLOW_NS)

EDGES_NS: Integers = np.concatenate(
    [
        np.arange(first, end, width, dtype=np.int64)
        for (first, width), end in zip(SEGMENTS, _ENDS, strict=True)
    ]
    + [np.array([OVERFLOW_NS], dtype=np.int64)]
)
"""The lower edge of every bin, with the overflow bin last; shape (12101,), ns."""

OVERFLOW_BIN = len(EDGES_NS) - 1
NO_INTEGERS: Integers = np.empty(0, dtype=np.int64)


class Histogram(NamedTuple):
    """The filled bins (docs/formats/histogram.md) in ascending order, and their counts."""

    bins: Integers
    counts: Integers

    @property
    def total(self) -> int:
        """The number of values in the histogram."""
        return int(self.counts.sum())

    def plus(self, other: Histogram) -> Histogram:
        """Return the sum of both histograms."""
        return add_bins(np.concatenate([self.bins, other.bins]), np.concatenate([self.counts, other.counts]))


NO_BINS = Histogram(NO_INTEGERS, NO_INTEGERS)


def add_bins(bins: npt.ArrayLike, counts: npt.ArrayLike) -> Histogram:
    """Return the histogram of these bins and their counts. A bin may occur several times, in any order."""
    distinct_bins, indices = np.unique(np.asarray(bins, dtype=np.int64), return_inverse=True)
    sums = np.zeros(len(distinct_bins), dtype=np.int64)
    np.add.at(sums, indices, np.asarray(counts, dtype=np.int64))
    return Histogram(distinct_bins[sums > 0], sums[sums > 0])


def bin_of(values_ns: npt.ArrayLike) -> Integers:
    """Return the bin of each value (ns), in the same shape. Raises ValueError for a negative value."""
    values = np.asarray(values_ns, dtype=np.int64)
    if np.any(values < 0):
        raise ValueError("a negative latency does not fit into any bin")
    return _bin(values)


def signed_bin_of(values_ns: npt.ArrayLike) -> Integers:
    """Return the bin of each value (ns). A negative value gets -b if its magnitude is in bin b."""
    values = np.asarray(values_ns, dtype=np.int64)
    return np.sign(values) * _bin(np.abs(values))


def _bin(values: Integers) -> Integers:
    return np.searchsorted(EDGES_NS, values, side="right").astype(np.int64) - 1


def upper_ns(bins: npt.ArrayLike) -> Integers:
    """Return the largest value (ns) of each bin; for the overflow bin, its lower edge. Bin -b holds the
    negatives of bin b.
    """
    index = np.asarray(bins, dtype=np.int64)
    return np.where(index < 0, -_lowest(-index), _highest(index))


def lower_ns(bins: npt.ArrayLike) -> Integers:
    """Return the smallest value (ns) of each bin; for the negative overflow bin, its edge, an upper bound."""
    index = np.asarray(bins, dtype=np.int64)
    return np.where(index < 0, -_highest(-index), _lowest(index))


def _lowest(index: Integers) -> Integers:
    return EDGES_NS[np.clip(index, 0, OVERFLOW_BIN)]


def _highest(index: Integers) -> Integers:
    return np.where(index >= OVERFLOW_BIN, OVERFLOW_NS, EDGES_NS[np.clip(index + 1, 0, OVERFLOW_BIN)] - 1)


ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
MOST_DIGITS = 12
"""The most digits of a number: 60 bits, one of them the sign."""
DIGITS_OF_32_BITS = 6
NO_DIGIT = 255

_DIGITS = np.full(256, NO_DIGIT, dtype=np.uint8)
_DIGITS[np.frombuffer(ALPHABET, dtype=np.uint8)] = np.arange(64, dtype=np.uint8)


class Decoded(NamedTuple):
    """All numbers in one array, and the count of numbers in each text."""

    numbers: npt.NDArray[np.int64 | np.int32]
    lengths: Integers


def decode(texts: Sequence[str]) -> Decoded:
    """Decode all texts.

    If no number has more than 6 digits, the numbers are 32 bits wide, which takes half the memory and half
    the time. Raises RecordError for a text that is not Base64 VLQ.
    """
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    digits = _DIGITS[np.frombuffer("".join(texts).encode("ascii", "replace"), dtype=np.uint8)]
    behind = np.cumsum(lengths)
    if np.any(digits == NO_DIGIT) or np.any(digits[behind[lengths > 0] - 1] & 32):
        raise RecordError("the bins of a window are not in Base64 VLQ")
    last = np.flatnonzero(digits < 32)
    first = np.empty_like(last)
    first[:1] = 0
    np.add(last[:-1], 1, out=first[1:])
    numbers = np.diff(np.searchsorted(last, behind), prepend=0)
    longer = np.flatnonzero(last > first)
    start, size = first[longer], last[longer] - first[longer] + 1
    most = int(size.max(initial=1))
    if most > MOST_DIGITS:
        raise RecordError("the bins of a window contain a number of more than 59 bits")
    values = digits[first].astype(np.int32 if most <= DIGITS_OF_32_BITS else np.int64)
    values &= 31
    for place in range(1, most):
        has = size > place
        values[longer[has]] |= (digits[start[has] + place] & 31).astype(values.dtype) << (5 * place)
    negative = np.flatnonzero(values & 1)
    values >>= 1
    values[negative] *= -1
    return Decoded(values, numbers)


def encode_bins(bins: Integers, counts: Integers) -> str:
    """Encode a window's bins and counts: each bin as its distance from the previous one, then its count."""
    return encode(np.stack([np.diff(bins, prepend=0), counts], axis=1).ravel().tolist())


def encode(numbers: Sequence[int]) -> str:
    """Encode numbers as one text; the inverse of `decode`."""
    text = bytearray()
    for number in numbers:
        rest = -number << 1 | 1 if number < 0 else number << 1
        while rest > 31:
            text.append(ALPHABET[32 | rest & 31])
            rest >>= 5
        text.append(ALPHABET[rest])
    return text.decode()
