# SPDX-License-Identifier: MIT
"""Differences of quantiles between two samples, with intervals from a block bootstrap over the windows.

Latencies are serially correlated, so whole stretches of time are resampled, not single samples (Kuensch, The jackknife and the bootstrap for
general stationary observations, 1989; circular blocks: Politis and Romano, 1992). Maxima get no interval: the bootstrap is not consistent for
them (Bickel and Freedman, Some asymptotic theory for the bootstrap, 1981). scipy.stats.bootstrap resamples single samples only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

QUANTILES = {"p50": Fraction(1, 2), "p99": Fraction(99, 100), "p99.9": Fraction(999, 1000), "p99.99": Fraction(9999, 10000)}
RESAMPLES = 1_999
LEAST_STRETCHES = 20
"""With fewer stretches of time the spread of the resamples says little."""
LEAST_BEYOND = 10
"""At least so many samples must lie above a quantile for an interval."""
CHUNK = 128


@dataclass(frozen=True)
class Stretches:
    """A sample by stretches of time: `counts[i, j]` samples of stretch i have the value `values_ns[j]` (rising)."""

    values_ns: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many samples."""
        return int(self.counts.sum())


def quantile(values_ns: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], share: Fraction) -> int:
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
        return f"only {number} window{'s' if number != 1 else ''} of time, at least {LEAST_STRETCHES} are needed"
    beyond = math.floor((1 - share) * sample.total)
    if beyond < LEAST_BEYOND:
        return f"only {beyond} samples lie beyond it, at least {LEAST_BEYOND} are needed"
    return None


def resampled_quantiles(
    sample: Stretches,
    shares: Sequence[Fraction],
    *,
    resamples: int = RESAMPLES,
    seed: int = 1,
    progress: Callable[[int], None] | None = None,
) -> npt.NDArray[np.int64]:
    """The quantiles (ns) of `resamples` samples, each drawn from the blocks of stretches of `sample`; shape (resamples, len(shares)).

    `progress(n)`: n more are done. The same seed draws the same.
    """
    rng = np.random.default_rng(seed)
    number = len(sample.counts)
    length = min(block_length(number), number)
    blocks = math.ceil(number / length)
    counts = sample.counts.astype(np.float64)
    result = np.empty((resamples, len(shares)), dtype=np.int64)
    for begin in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - begin)
        starts = rng.integers(0, number, size=(size, blocks))
        stretches = ((starts[:, :, None] + np.arange(length)) % number).reshape(size, -1)[:, :number]
        weights = np.zeros((size, number))
        np.add.at(weights, (np.repeat(np.arange(size), number), stretches.ravel()), 1.0)
        cumulative = np.cumsum(weights @ counts, axis=1)  # whole numbers below 2^53: exact
        for k, share in enumerate(shares):
            total = cumulative[:, -1]
            # Just below the exact rank, so that rounding cannot lift it to the next one; ranks are whole.
            ranks = np.maximum(1.0, np.ceil(float(share) * total - 1e-6))
            result[begin : begin + size, k] = sample.values_ns[(cumulative < ranks[:, None]).sum(axis=1)]
        if progress is not None:
            progress(size)
    return result


@dataclass(frozen=True)
class Interval:
    """A difference (ns, side minus baseline), its interval, and p-values."""

    difference_ns: int
    low_ns: int
    high_ns: int
    p_different: float
    p_not_within: float
    p_not_beyond: float


def interval(difference_ns: int, resampled_ns: npt.NDArray[np.int64], *, alpha: float, within_ns: int) -> Interval:
    """Percentile interval at confidence 1 - alpha, and p-values of "no difference" (two-sided), "not within `within_ns`" and "not beyond it".

    "Not within" is the larger of two one-sided tests (Schuirmann, 1987). A p-value is never below 1 / (resamples + 1).
    """
    number = len(resampled_ns)

    def share(resamples: npt.NDArray[np.bool_]) -> float:
        return (1 + int(resamples.sum())) / (number + 1)

    low, high = np.quantile(resampled_ns, [alpha / 2, 1 - alpha / 2], method="inverted_cdf")
    p_different = min(1.0, 2 * min(share(resampled_ns <= 0), share(resampled_ns >= 0)))
    # "Within" includes the bound itself, so that two equal samples are the same within 0.
    p_not_within = max(share(resampled_ns < -within_ns), share(resampled_ns > within_ns))
    p_not_beyond = min(1.0, 2 * min(share(resampled_ns <= within_ns), share(resampled_ns >= -within_ns)))
    return Interval(difference_ns, int(low), int(high), p_different, p_not_within, p_not_beyond)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number, in the order given (Holm, A simple sequentially rejective multiple test procedure, 1979)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = running
    return corrected
