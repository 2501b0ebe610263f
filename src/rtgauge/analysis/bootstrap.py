# SPDX-License-Identifier: MIT
"""Differences of quantiles between two samples, with intervals from a block bootstrap over the windows.

Latencies are serially correlated, so whole stretches of time are resampled, not single samples (Kuensch, The jackknife and the bootstrap for
general stationary observations, 1989; circular blocks: Politis and Romano, 1992). Maxima get no interval: the bootstrap is not consistent for
them (Bickel and Freedman, Some asymptotic theory for the bootstrap, 1981). scipy.stats.bootstrap resamples single samples only.

Nothing is drawn: the distribution of a resampled quantile is calculated, as it would be with endless resamples (the ideal bootstrap of Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, sec. 6.2). The quantile of a resample is at most v where its blocks have together no more samples
above v than the quantile allows, and that is a sum of independent draws, whose distribution is a power of one discrete Fourier transform.
So p-values of any size can be told from each other, which the correction for many comparisons needs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]
    FloatArray = npt.NDArray[np.float64]

QUANTILES = {"p50": Fraction(1, 2), "p99": Fraction(99, 100), "p99.9": Fraction(999, 1000), "p99.99": Fraction(9999, 10000)}
LEAST_STRETCHES = 20
"""With fewer stretches of time the spread of the resamples says little."""
LEAST_BEYOND = 10
"""At least so many samples must lie above a quantile for an interval."""
ENDLESS_NS = 2**60
"""The upper end of a value that has none."""
PLACES = 129
"""The distribution is calculated at so many of the values that a quantile can take, and interpolated at those between."""
LATTICE = 4096
"""Points of the Fourier transform: 160 to a standard deviation of the sum, fewer samples than that exactly."""
NEGLIGIBLE = -math.log(1e-14)
LEAST_P = 1e-10
"""Rounding makes smaller probabilities meaningless."""


@dataclass(frozen=True)
class Stretches:
    """A sample by stretches of time: `counts[i, j]` samples of stretch i have the value `values_ns[j]` (rising).

    Such a sample lies within `low_ns[j]` and `high_ns[j]`, the ends of its bin; ENDLESS_NS where it has no upper end.
    """

    values_ns: IntArray
    counts: IntArray
    low_ns: IntArray
    high_ns: IntArray

    @property
    def total(self) -> int:
        """How many samples."""
        return int(self.counts.sum())


def exact(values_ns: IntArray, counts: IntArray) -> Stretches:
    """Stretches whose values have no width."""
    return Stretches(values_ns, counts, values_ns, values_ns)


def quantile(values_ns: IntArray, counts: IntArray, share: Fraction) -> int:
    """The nearest-rank quantile (ns) of one histogram; the smallest value that at least `share` of the samples do not exceed."""
    cumulative = np.cumsum(counts)
    rank = max(1, math.ceil(share * int(cumulative[-1])))
    return int(values_ns[int(np.searchsorted(cumulative, rank))])


def block_length(stretches: int) -> int:
    """How many neighbouring stretches a block has: the cube root of their number, the best order for a variance (Hall, Horowitz and Jing, 1995)."""
    return max(1, math.ceil(stretches ** (1 / 3)))


def why_no_interval(sample: Stretches, share: Fraction) -> str | None:
    """Why there can be no interval for this quantile of this sample; None where there can be one."""
    number = len(sample.counts)
    if number < LEAST_STRETCHES:
        return f"only {plural(number, 'window')} of time, at least {LEAST_STRETCHES} are needed"
    beyond = math.floor((1 - share) * sample.total)
    if beyond < LEAST_BEYOND:
        return f"only {beyond} sample{'s lie' if beyond != 1 else ' lies'} beyond it, at least {LEAST_BEYOND} are needed"
    return None


@dataclass(frozen=True)
class Resampled:
    """The distribution of a quantile over all resamples: it lies within `low_ns[j]` and `high_ns[j]` with probability `probability[j]`.

    `freedom`: the number of blocks that its spread rests on, as degrees of freedom.
    """

    low_ns: IntArray
    high_ns: IntArray
    probability: FloatArray
    freedom: int


def _sums(rows: FloatArray, length: int) -> FloatArray:
    """The sums of `length` neighbouring rows from each row on, the first following the last; shape of `rows`."""
    around = np.concatenate([rows, rows[: length - 1]]) if length > 1 else rows
    total = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(around, axis=0)])
    return total[length:] - total[:-length]


@dataclass(frozen=True)
class _Scores:
    """Per block and place: its samples above the place, less those that its size allows. The sum over a resample is at most 0 where the quantile is."""

    full: FloatArray
    last: FloatArray
    """The last block is cut, so that a resample has as many stretches as the sample."""
    blocks: int
    """Without the last one."""

    @property
    def mean(self) -> FloatArray:
        return self.blocks * self.full.mean(axis=0) + self.last.mean(axis=0)

    @property
    def variance(self) -> FloatArray:
        return self.blocks * self.full.var(axis=0) + self.last.var(axis=0)

    @property
    def largest(self) -> FloatArray:
        """The largest distance of one block from its mean."""
        return np.maximum(np.abs(self.full - self.full.mean(axis=0)).max(axis=0), np.abs(self.last - self.last.mean(axis=0)).max(axis=0))


def _scores(sample: Stretches, share: Fraction, places: npt.NDArray[np.intp]) -> _Scores:
    number = len(sample.counts)
    length = block_length(number)
    blocks = math.ceil(number / length) - 1
    sizes = sample.counts.sum(axis=1)
    # Columns between two places together: a sample is above a place where it is in a later column.
    starts = np.concatenate([[0], places + 1])
    within = np.add.reduceat(np.concatenate([sample.counts, np.zeros((number, 1), dtype=np.int64)], axis=1), starts, axis=1)[:, :-1]
    above = (sizes[:, None] - np.cumsum(within, axis=1)).astype(np.float64)
    # Stretches of one size allow the same number, which does not vary: it is taken off the sum, so that the scores stay whole.
    above -= (float(1 - share) * (sizes - sizes.mean()))[:, None]
    return _Scores(_sums(above, length), _sums(above, number - blocks * length), blocks)


def _surely(mean: FloatArray, variance: FloatArray, largest: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether a sum with this mean is on the mean's side of 0 but for a negligible probability, by Bernstein's inequality."""
    return mean**2 / 2 > NEGLIGIBLE * (variance + largest * np.abs(mean) / 3)


def _places(sample: Stretches, share: Fraction, allowed: float) -> npt.NDArray[np.intp]:
    """Numbers of at most PLACES values, evenly spread, between the last one that the quantile surely exceeds and the first one that it surely does not."""
    low, high = 0, sample.counts.shape[1] - 1
    while True:
        places = np.unique(np.linspace(low, high, PLACES).astype(np.intp))
        if high - low < PLACES:
            return places
        scores = _scores(sample, share, places)
        mean = scores.mean - allowed
        surely = _surely(mean, scores.variance, scores.largest)
        above, below = np.flatnonzero(surely & (mean > 0)), np.flatnonzero(surely & (mean < 0))
        next_low = int(places[above[-1]]) if len(above) else low
        next_high = int(places[below[0]]) if len(below) else high
        if (next_high - next_low) * 2 > high - low:
            return places
        low, high = next_low, next_high


def _at_most(scores: _Scores, allowed: float) -> FloatArray:
    """The probability that a sum of blocks drawn from the scores is at most `allowed`, for each place."""
    variance, largest = scores.variance, scores.largest
    # Half the span that holds the sum but for a negligible probability (Bernstein), with room for the rounding of the mean.
    half = NEGLIGIBLE * largest / 3 + np.sqrt((NEGLIGIBLE * largest / 3) ** 2 + 2 * NEGLIGIBLE * variance)
    unit = np.maximum(2 * half / (LATTICE - 2 * scores.blocks - 2), 1e-9)
    unit = np.where(unit < 1, 1 / np.floor(1 / np.minimum(unit, 1)), unit)  # whole samples are on the lattice where that has room for them
    transformed: list[npt.NDArray[np.complex128]] = []
    centre, rounding = np.zeros(len(unit)), np.zeros(len(unit))
    columns = np.arange(len(unit)) * LATTICE
    for block, times in ((scores.full, scores.blocks), (scores.last, 1)):
        steps = np.rint(block / unit)
        middle = np.rint(steps.mean(axis=0))
        rounding += times * (steps - block / unit).mean(axis=0)
        centre += times * middle
        at = (steps - middle).astype(np.int64) % LATTICE + columns
        counts = np.bincount(at.ravel(), minlength=LATTICE * len(unit)).reshape(-1, LATTICE)
        transformed.append(np.fft.rfft(counts / len(block), axis=1) ** times)
    distribution = np.clip(np.fft.irfft(transformed[0] * transformed[1], LATTICE, axis=1), 0, 1)
    cumulative = np.cumsum(np.fft.fftshift(distribution, axes=1), axis=1)
    bound = np.floor(allowed / unit + rounding + 1e-6) - centre + LATTICE // 2
    probability = cumulative[np.arange(len(unit)), np.clip(bound, 0, LATTICE - 1).astype(np.int64)]
    return np.where(bound < 0, 0.0, np.minimum(probability, 1.0))


def resampled_quantile(sample: Stretches, share: Fraction) -> Resampled:
    """The distribution of the quantile over all samples that can be drawn from the blocks of stretches of `sample`, each equally likely.

    Where the quantile can take more than PLACES values it is calculated at so many and interpolated between, which widens the tails a little.
    """
    number = len(sample.counts)
    allowed = float(1 - share) * number * float(sample.counts.sum(axis=1).mean())
    places = _places(sample, share, allowed)
    at_most = np.maximum.accumulate(_at_most(_scores(sample, share, places), allowed))
    first, last = int(places[0]), int(places[-1])
    every = np.arange(first, last + 1)
    cumulative = np.interp(sample.values_ns[every], sample.values_ns[places], at_most)
    cumulative[-1] = 1.0
    probability = np.diff(cumulative, prepend=0.0)
    freedom = max(1, math.ceil(number / block_length(number)) - 1)
    return Resampled(sample.low_ns[every], sample.high_ns[every], probability, freedom)


@dataclass(frozen=True)
class Interval:
    """A difference (ns, side minus baseline), its interval (None: no limit), and p-values."""

    low_ns: int | None
    high_ns: int | None
    p_different: float
    p_not_within: float
    p_not_beyond: float


class _Difference:
    """The distribution of the difference of two independent quantiles, at one end of their bins."""

    def __init__(self, side_ns: IntArray, side: Resampled, baseline_ns: IntArray, baseline: Resampled) -> None:
        self.side_ns, self.baseline_ns = side_ns, baseline_ns
        self.below = np.concatenate([[0.0], np.cumsum(side.probability)])
        self.above = np.concatenate([np.cumsum(side.probability[::-1])[::-1], [0.0]])
        self.weights = baseline.probability

    def at_most(self, ns: int) -> float:
        """The probability of a difference up to `ns`."""
        return float(self.weights @ self.below[np.searchsorted(self.side_ns, self.baseline_ns + ns, side="right")])

    def at_least(self, ns: int) -> float:
        """The probability of a difference of `ns` or more; its own sum, so that a small one keeps its digits."""
        return float(self.weights @ self.above[np.searchsorted(self.side_ns, self.baseline_ns + ns, side="left")])

    def quantile(self, probability: float) -> int | None:
        """The smallest difference (ns) that is not exceeded with this probability; None where a value without an end takes part in it."""
        ends = range(int(self.side_ns[0] - self.baseline_ns[-1]), int(self.side_ns[-1] - self.baseline_ns[0]) + 1)
        at = bisect_left(ends, probability, key=self.at_most)
        ns = ends[min(at, len(ends) - 1)]
        return ns if abs(ns) < ENDLESS_NS // 2 else None


def interval(side: Resampled, baseline: Resampled, *, alpha: float, within_ns: int) -> Interval:
    """Percentile interval at confidence 1 - alpha of side minus baseline, and p-values of "no difference" (two-sided), "not within `within_ns`", "not beyond".

    "Not within" is the larger of two one-sided tests (Schuirmann, 1987). Each bound is at the end of the bins that makes the interval wider, so that
    the width of bins is part of it. As the spread is itself an estimate, from few blocks, levels are those of Student's t with as many degrees
    of freedom, not of the normal distribution.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    freedom = min(side.freedom, baseline.freedom)

    def corrected(probability: float) -> float:
        """A tail's probability with the spread as an estimate."""
        return float(max(LEAST_P, stdtr(freedom, ndtri(min(max(probability, 1e-15), 0.5))))) if probability < 0.5 else min(1.0, probability)

    smallest = _Difference(side.low_ns, side, baseline.high_ns, baseline)
    largest = _Difference(side.high_ns, side, baseline.low_ns, baseline)
    tail = float(ndtr(stdtrit(freedom, alpha / 2)))
    p_different = min(1.0, 2 * min(corrected(smallest.at_most(0)), corrected(largest.at_least(0))))
    # "Within" includes the bound itself, so that two equal samples are the same within 0.
    p_not_within = max(corrected(smallest.at_most(-within_ns - 1)), corrected(largest.at_least(within_ns + 1)))
    p_not_beyond = min(1.0, 2 * min(corrected(smallest.at_most(within_ns)), corrected(largest.at_least(-within_ns))))
    return Interval(smallest.quantile(tail), largest.quantile(1 - tail), p_different, p_not_within, p_not_beyond)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number, in the order given (Holm, A simple sequentially rejective multiple test procedure, 1979)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = running
    return corrected
