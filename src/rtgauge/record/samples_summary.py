# SPDX-License-Identifier: MIT
"""Computes exact statistics of a file of raw samples of any length, in one pass if few values are large.

The file is read through one small buffer. Values below a limit (131 us; up to 2 ms if the first piece has
larger values) are counted in a table with 1 ns per entry; larger values are kept if they are few (`KEPT`);
otherwise further passes narrow down the values at the wanted ranks.

Measured on 100 million samples in the page cache, one core of an AMD EPYC (Zen 4), numpy 2.4: counting a
piece of 2 MiB with np.bincount costs 1.1 ns a sample up to a table of 1 MiB (131 072 entries; the
second-level cache) and 2.7 times that at 8 MiB; with pieces much smaller than the table, adding the table
dominates; pieces of 8 MiB do not fit the cache (1.5 times). readinto costs 0.5 ns, the maxima 0.15 ns,
finding missed activations 0.25 ns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rtgauge.errors import RecordError
from rtgauge.record.histogram import Integers
from rtgauge.record.merged_windows import Moments, merge_moments
from rtgauge.record.model import Distribution, SeriesSummary, WarmUp
from rtgauge.record.quantiles import QUANTILES
from rtgauge.record.record_folder import Source
from rtgauge.record.samples import CHUNK, SamplesHeader, chunks, pieces, read_header
from rtgauge.record.summary import EMPTY, nearest_rank, standard_deviation
from rtgauge.units import NS_PER_S

FINE_BITS = (17, 21)
KEPT = 1 << 23
REFINE_BITS = 17


@dataclass(frozen=True)
class SamplesSummary:
    """Exact statistics of one samples file.

    If `header.lost` is not 0, release times (windows, warm-up) are approximate.
    """

    header: SamplesHeader
    distribution: Distribution
    missed: int
    impossible: int
    warm_up: WarmUp
    windows: SampleWindows


class _Fine:
    """Counts and moments of values. Values below `limit` have a table entry per ns; larger values are kept
    while they are few.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.table = np.zeros(limit + 1, dtype=np.int64)
        self.tail: list[Integers] | None = []
        self.tail_kept = 0
        self.tail_moments: list[Moments] = []
        self.minimum: int | None = None
        self.maximum: int | None = None
        self.impossible = 0
        self._low: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)

    def add(self, values: Integers) -> None:
        if len(self._low) < len(values):
            self._low = np.empty(len(values), dtype=np.uint64)
        low = self._low[: len(values)]
        # As unsigned numbers, negative values are large: one pass puts both into the last entry.
        np.minimum(values.view(np.uint64), np.uint64(self.limit), out=low)
        counts = np.bincount(low.view(np.int64), minlength=self.limit + 1)
        self.table += counts
        if counts[self.limit]:
            self._add_tail(values[low == self.limit])

    def _add_tail(self, tail: Integers) -> None:
        negative = tail < 0
        if negative.any():
            self.impossible += int(negative.sum())
            tail = tail[~negative]
            if len(tail) == 0:
                return
        lowest, highest = int(tail.min()), int(tail.max())
        self.minimum = lowest if self.minimum is None else min(self.minimum, lowest)
        self.maximum = highest if self.maximum is None else max(self.maximum, highest)
        total = int(tail.sum())  # fits in 64 bits: GridCourse refuses more than 2 * 10^16 ns
        self.tail_moments.append(Moments(len(tail), total, float(((tail - total / len(tail)) ** 2).sum())))
        if len(self.tail_moments) >= 4096:
            self.tail_moments = [_merged(self.tail_moments)]
        self.tail_kept += len(tail)
        if self.tail is not None:
            self.tail.append(tail)
            if self.tail_kept > KEPT:
                self.tail = None

    @property
    def count(self) -> int:
        return int(self.table.sum()) - self.impossible

    def extremes(self) -> tuple[int | None, int | None]:
        filled = np.flatnonzero(self.table[: self.limit])
        if len(filled) == 0:
            return self.minimum, self.maximum
        return int(filled[0]), int(filled[-1]) if self.maximum is None else self.maximum

    def moments(self) -> Moments:
        low = self.table[: self.limit]
        count = int(low.sum())
        values = np.arange(self.limit, dtype=np.int64)
        total = int(np.dot(values, low))  # fits in 64 bits for 2^42 samples
        m2 = float(np.dot((values - total / count) ** 2, low)) if count else 0.0
        return _merged([Moments(count, total, m2), *self.tail_moments])


def _merged(parts: list[Moments]) -> Moments:
    return merge_moments(
        [part.count for part in parts], [part.sum_ns for part in parts], [part.m2_ns2 for part in parts]
    )


def _narrow(source: Source, skip: int, ranks: list[int], low: int, high: int) -> dict[int, int]:
    """Return the values at `ranks` (1: the smallest) among the samples in [low, high] after the first
    `skip`.
    """
    shift = max(0, (high - low).bit_length() - REFINE_BITS)
    table = np.zeros(((high - low) >> shift) + 1, dtype=np.int64)
    left = skip
    for piece in chunks(source):
        values = piece[min(left, len(piece)) :]
        left -= len(piece) - len(values)
        values = values[(values >= low) & (values <= high)]
        table += np.bincount((values - low) >> shift, minlength=len(table))
    below = np.cumsum(table)
    by_bucket: dict[int, list[int]] = {}
    for rank in ranks:
        by_bucket.setdefault(int(np.searchsorted(below, rank)), []).append(rank)
    values_at: dict[int, int] = {}
    for bucket, inside in by_bucket.items():
        start = low + (bucket << shift)
        if shift == 0:
            values_at.update(dict.fromkeys(inside, start))
            continue
        under = int(below[bucket] - table[bucket])
        deeper = _narrow(
            source, skip, [rank - under for rank in inside], start, min(high, start + (1 << shift) - 1)
        )
        values_at.update({rank + under: value for rank, value in deeper.items()})
    return values_at


def _quantiles(fine: _Fine, source: Source, warm_up: int) -> dict[str, int]:
    count = fine.count
    ranks = {name: nearest_rank(share, count) for name, share in QUANTILES.items()}
    below = np.cumsum(fine.table[: fine.limit])
    placed = int(below[-1])
    result = {name: int(np.searchsorted(below, rank)) for name, rank in ranks.items() if rank <= placed}
    above = {name: rank - placed for name, rank in ranks.items() if rank > placed}
    if not above:
        return result
    if fine.tail is not None:
        tail = np.concatenate(fine.tail)
        positions = sorted({rank - 1 for rank in above.values()})
        tail.partition(positions)
        return result | {name: int(tail[rank - 1]) for name, rank in above.items()}
    narrowed = _narrow(source, warm_up, sorted(set(above.values())), fine.limit, fine.maximum or fine.limit)
    return result | {name: narrowed[rank] for name, rank in above.items()}


def _limit(source: Source) -> int:
    """Return the end of the table: it holds nearly all values of the first piece, within FINE_BITS."""
    for first in chunks(source):
        typical = int(np.quantile(first, 0.995, method="inverted_cdf"))
        return 1 << min(max(typical.bit_length(), FINE_BITS[0]), FINE_BITS[1])
    return 1 << FINE_BITS[0]


def summarise_samples(source: Source) -> SamplesSummary:
    """Return exact count, extremes, mean, standard deviation and quantiles (ns) of a samples file, and its
    windows.

    Warm-up samples are only counted; negative samples are only counted as impossible. Missed activations
    follow from the samples (docs/formats/stream.md); activations due after the measured phase do not count.
    Raises RecordError for a foreign, damaged or truncated file.
    """
    header = read_header(source)
    course = TimedCourse(header, source) if header.timed else GridCourse(header, source)
    fine = _Fine(_limit(source))
    skipped = 0
    for times, values in pieces(source, max(CHUNK, fine.limit)):
        warm_up = course.add(values, times)
        skipped += warm_up
        fine.add(values[warm_up:])
    warm, windows = course.finish()
    count = fine.count
    if count == 0:
        return SamplesSummary(header, EMPTY, int(windows.missed.sum()), fine.impossible, warm, windows)
    minimum, maximum = fine.extremes()
    moments = fine.moments()
    figures = _quantiles(fine, source, skipped)
    result = EMPTY.model_copy(
        update={
            "count": count,
            "min_ns": minimum,
            "mean_ns": moments.sum_ns / count,
            "std_ns": standard_deviation(moments.m2_ns2, count),
            "max_ns": maximum,
            **figures,
        }
    )
    return SamplesSummary(header, result, int(windows.missed.sum()), fine.impossible, warm, windows)


def with_samples(summary: SeriesSummary, samples: SamplesSummary) -> SeriesSummary:
    """Return `summary` with the exact quantiles from its raw samples.

    It stays unchanged unless the samples match it (same count and maximum, none lost).
    """
    exact = samples.distribution
    if (
        samples.header.lost
        or exact.count != summary.count
        or exact.max_ns != summary.max_ns
        or exact.count == 0
    ):
        return summary
    update = {name: getattr(exact, name) for name in QUANTILES}
    bounds = [name for name in summary.lower_bounds if name not in QUANTILES]
    return summary.model_copy(update={**update, "lower_bounds": bounds, "exact_quantiles": True})


MAX_WINDOWS = 10_000_000


@dataclass(frozen=True)
class SampleWindows:
    """One entry per second of the measured phase, by release time; `max_ns` is -1 if `count` is 0.

    `count`: all samples released in that second, including impossible ones.
    """

    start_ns: Integers
    count: Integers
    missed: Integers
    max_ns: Integers


class Finished(NamedTuple):
    """The warm-up's counts, and the windows of the measured phase."""

    warm_up: WarmUp
    windows: SampleWindows


class _Course:
    """Counts samples and finds maxima in each second of the measured phase; second -1 is the warm-up."""

    def __init__(self, header: SamplesHeader, source: Source) -> None:
        self.source = source
        self.measured_ns = header.start_ns + header.warm_up_ns
        self.counts: Counter[int] = Counter()
        self.maxima: dict[int, int] = {}

    def note(self, seconds: Integers, lengths: Integers, maxima: Integers) -> None:
        """Add samples: for each of `seconds`, their number (`lengths`) and their largest value (`maxima`)."""
        for window, length, maximum in zip(seconds.tolist(), lengths.tolist(), maxima.tolist(), strict=True):
            self.counts[window] += length
            self.maxima[window] = max(self.maxima.get(window, -1), maximum)

    def windows(self, missed: Sequence[int]) -> SampleWindows:
        """Return the windows of the measured phase, with the missed activations of each."""
        seconds = range(len(missed))
        return SampleWindows(
            start_ns=self.measured_ns + np.arange(len(missed), dtype=np.int64) * NS_PER_S,
            count=np.array([self.counts[second] for second in seconds], dtype=np.int64),
            missed=np.array(missed, dtype=np.int64),
            max_ns=np.array([self.maxima.get(second, -1) for second in seconds], dtype=np.int64),
        )


class GridCourse(_Course):
    """Assigns samples to windows by the grid of releases, and counts missed activations."""

    def __init__(self, header: SamplesHeader, source: Source) -> None:
        super().__init__(header, source)
        self.interval = header.interval_ns
        self.warm_up = header.warm_up_ns
        self.release = 0
        """The number of the next sample's release."""
        self.first = self.edge(0)
        """The number of the first release in the measured phase."""
        whole_ns = header.warm_up_ns + header.duration_ns
        self.end = None if header.duration_ns == 0 else -(-whole_ns // header.interval_ns)

    def edge(self, window: int) -> int:
        """Return the number of the first release in `window` (-1: the warm-up)."""
        return 0 if window < 0 else -(-(self.warm_up + window * NS_PER_S) // self.interval)

    def window_of(self, release: int) -> int:
        """Return the window of a release, -1 for the warm-up. Raises RecordError if no measurement can be
        that long.
        """
        since = release * self.interval - self.warm_up
        window = since // NS_PER_S if since >= 0 else -1
        if window >= MAX_WINDOWS:
            raise RecordError(
                f"{self.source} is damaged: its samples span {window} seconds, which is impossibly long"
            )
        return window

    def add(self, values: Integers, times: Integers | None) -> int:  # noqa: ARG002 - the times follow from the releases
        """Add the next piece of the file; return the number of warm-up samples in it."""
        late = np.flatnonzero(values > self.interval)
        extra = (values[late] - 1) // self.interval
        if len(extra) and float(extra.sum(dtype=np.float64)) * self.interval > MAX_WINDOWS * NS_PER_S:
            raise RecordError(
                f"{self.source} is damaged: it has an impossible latency of {int(values.max())} ns"
            )
        after = np.cumsum(extra)
        missed = int(after[-1]) if len(after) else 0
        base = self.release
        # The release number of each late sample; the activations missed before it are counted in.
        numbers = base + late + after - extra
        last = (
            base
            + len(values)
            - 1
            + (missed if not len(late) or late[-1] != len(values) - 1 else missed - int(extra[-1]))
        )
        first_window, last_window = self.window_of(base), self.window_of(last)
        self.release = base + len(values) + missed
        edges = np.array(
            [self.edge(window) for window in range(first_window + 1, last_window + 1)], dtype=np.int64
        )
        # The first sample released at or after each edge. If a missed activation is at an edge, its next
        # sample counts.
        before = np.searchsorted(numbers, edges, side="left")
        position = edges - base - np.concatenate([[0], after])[before]
        floor = np.concatenate([[0], late + 1])[before]
        starts = np.concatenate([[0], np.maximum(position, floor)]).astype(np.int64)
        lengths = np.diff(np.append(starts, len(values)))
        filled = np.flatnonzero(lengths)
        maxima = np.maximum.reduceat(values, starts[filled])
        self.note(filled + first_window, lengths[filled], maxima)
        return int(starts[1]) if first_window < 0 <= last_window else len(values) if last_window < 0 else 0

    def missed_in(self, releases: int, window: int) -> int:
        """Return how many activations one window missed, given that `releases` releases have passed."""
        first, end = (min(self.edge(at), releases) for at in (window, window + 1))
        return max(0, end - first) - self.counts[window]

    def finish(self) -> Finished:
        """Return the counts of both phases."""
        # Activations missed after the measured phase do not count.
        releases = self.release if self.end is None else max(min(self.release, self.end), 0)
        windows = 0 if releases <= self.first else self.window_of(releases - 1) + 1
        missed = self.missed_in(releases, -1)
        warm_up = WarmUp(count=self.counts[-1], missed=missed, max_ns=self.maxima.get(-1))
        return Finished(warm_up, self.windows([max(0, self.missed_in(releases, w)) for w in range(windows)]))


class TimedCourse(_Course):
    """Assigns timed samples to windows. Timed samples have no missed activations."""

    def add(self, values: Integers, times: Integers | None) -> int:
        """Add the next piece of the file; return the number of warm-up samples in it.

        Raises RecordError if times decrease or span too long.
        """
        if times is None:
            raise TypeError("samples without times")
        if (np.diff(times) < 0).any():
            raise RecordError(f"{self.source} is damaged: the times of its samples go backwards")
        windows = np.maximum((times - self.measured_ns) // NS_PER_S, -1)
        if len(windows) and int(windows[-1]) >= MAX_WINDOWS:
            raise RecordError(
                f"{self.source} is damaged: its samples span {int(windows[-1])} seconds, which is "
                f"impossibly long"
            )
        numbers, starts, lengths = np.unique(windows, return_index=True, return_counts=True)
        self.note(numbers, lengths, np.maximum.reduceat(values, starts))
        return int(np.searchsorted(windows, 0))

    def finish(self) -> Finished:
        """Return the counts of both phases."""
        warm_up = WarmUp(count=self.counts[-1], max_ns=self.maxima.get(-1))
        return Finished(warm_up, self.windows([0] * (max(self.counts, default=-1) + 1)))
