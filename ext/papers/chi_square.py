# SPDX-License-Identifier: MIT
"""Compares distributions with a baseline by the chi-square test of Delgado and Choi.

Delgado and Choi, New Insights Into the Real-Time Performance of a Multicore Processor, IEEE Access 8 (2020),
sec. IV.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rtgauge.record.histogram import Histogram, Integers, add_bins, lower_ns
from rtgauge.record.strict_model import Model

BIN_NS = 1_000
"""The bin width of the papers."""


class ChiSquareTest(Model):
    """One chi-square test. If it cannot be computed, `cannot` says why and the other fields are None."""

    cannot: str | None = None
    statistic: float | None = None
    degrees_of_freedom: int | None = None
    critical: float | None = None
    rejected: bool | None = None
    bins: int | None = None
    empty_bins_merged: int | None = None


def microseconds(bins: npt.ArrayLike, counts: npt.ArrayLike) -> Histogram:
    """Convert bins of docs/formats/histogram.md to 1 us bins, each numbered by its whole us.

    This is exact up to 10 ms; a wider bin counts at its lower edge.
    """
    return add_bins(lower_ns(bins) // BIN_NS, counts)


def critical_value(degrees_of_freedom: int, alpha: float) -> float:
    """Return the value that a chi-square variable exceeds with probability `alpha`. Raises ValueError if
    there is no degree of freedom.
    """
    if degrees_of_freedom < 1:
        raise ValueError("a chi-square test needs at least one degree of freedom")
    from scipy.special import chdtri  # chi2.isf of scipy.stats takes 0.5 s longer to import

    return float(chdtri(degrees_of_freedom, alpha))


def reshape(side: Histogram, baseline: Histogram) -> Integers:
    """Return the counts of a side in the baseline's bins, shape (bins of the baseline,). Both histograms come
    from `microseconds`.

    As in the paper, samples outside the baseline's range count in its first or last bin. The statistic
    divides by the baseline's counts, and the paper does not say what to do with an empty bin in this range.
    Here it is merged with the next lower non-empty bin, so that no sample is lost.
    """
    last = len(baseline.bins) - 1
    bin_of_sample = np.clip(np.searchsorted(baseline.bins, side.bins, side="right") - 1, 0, last)
    observed = np.zeros(last + 1, dtype=np.int64)
    np.add.at(observed, bin_of_sample, side.counts)
    return observed


def paper_test(side: Histogram, baseline: Histogram, *, alpha: float = 0.05) -> ChiSquareTest:
    """Return the paper's test: the sum of (O - E)^2 / E over the baseline's bins, with as many degrees of
    freedom as bins. O and E are percentages, as in table 4, which cannot come from counts.

    In percent, the critical value is a fixed limit on the size of a difference, so there is no p-value. The
    test cannot be computed if either histogram is empty, or if the baseline has only one bin.
    """
    bins = len(baseline.bins)
    if not bins:
        return ChiSquareTest(cannot="the baseline is empty")
    if not len(side.bins):
        return ChiSquareTest(cannot="the sample is empty")
    if bins == 1:
        only = f"all samples of the baseline lie in one bin, {int(baseline.bins[0])} us"
        return ChiSquareTest(cannot=f"{only}, so the test cannot tell any other histogram from it")
    observed, expected = reshape(side, baseline), baseline.counts
    observed_share, expected_share = (counts / counts.sum() * 100 for counts in (observed, expected))
    statistic = float(((observed_share - expected_share) ** 2 / expected_share).sum())
    critical = critical_value(bins, alpha)
    return ChiSquareTest(
        statistic=statistic,
        degrees_of_freedom=bins,
        critical=critical,
        rejected=statistic > critical,
        bins=bins,
        empty_bins_merged=int(baseline.bins[-1] - baseline.bins[0]) + 1 - bins,
    )
