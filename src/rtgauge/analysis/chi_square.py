# SPDX-License-Identifier: MIT
"""Compares distributions with a baseline by two chi-square tests: Delgado and Choi's, and the textbook's.

Delgado and Choi, New Insights Into the Real-Time Performance of a Multicore Processor, IEEE Access 8 (2020),
sec. IV.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rtgauge.record.histogram import lower_ns
from rtgauge.record.strict_model import Model
from rtgauge.record.windows import Histogram, Integers, add_bins

BIN_NS = 1_000
"""The bin width of the papers."""
LEAST_EXPECTED = 5.0
"""The textbook test merges cells until each expects this many samples (Cochran, Some methods for
strengthening the common chi-square tests, 1954).
"""


class Scale(StrEnum):
    """The unit of the paper's statistic: counts or percentages."""

    COUNTS = "counts"
    PERCENT = "percent"


class Convention(StrEnum):
    """The way in which the degrees of freedom are counted."""

    PAPER = "paper"
    TEXTBOOK = "textbook"


class Test(Model):
    """One chi-square test. If it cannot be computed, `cannot` says why and the other fields are None."""

    convention: Convention
    scale: Scale
    cannot: str | None = None
    statistic: float | None = None
    degrees_of_freedom: int | None = None
    critical: float | None = None
    p_value: float | None = Field(
        default=None, description="None for a statistic in percent, which has no chi-square distribution"
    )
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


def exceedance_probability(statistic: float, degrees_of_freedom: int) -> float:
    """Return the probability that a chi-square variable exceeds `statistic`."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees_of_freedom, statistic))


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


def _tested(
    convention: Convention, scale: Scale, statistic: float, freedom: int, alpha: float, bins: int, empty: int
) -> Test:
    critical = critical_value(freedom, alpha)
    has_p = scale is Scale.COUNTS
    return Test(
        convention=convention,
        scale=scale,
        statistic=statistic,
        degrees_of_freedom=freedom,
        critical=critical,
        p_value=exceedance_probability(statistic, freedom) if has_p else None,
        rejected=statistic > critical,
        bins=bins,
        empty_bins_merged=empty,
    )


def _empty(side: Histogram, baseline: Histogram) -> str | None:
    if not len(baseline.bins):
        return "the baseline is empty"
    return None if len(side.bins) else "the sample is empty"


def paper_test(
    side: Histogram, baseline: Histogram, *, alpha: float = 0.05, scale: Scale = Scale.PERCENT
) -> Test:
    """Return the paper's test: the sum of (O - E)^2 / E over the baseline's bins, with as many degrees of
    freedom as bins.

    With `counts`, the baseline's counts are scaled to the side's number of samples. With `percent`, both add
    up to 100. The test cannot be computed if either histogram is empty, or if the baseline has only one bin.
    """
    cannot = _empty(side, baseline)
    if len(baseline.bins) == 1 and cannot is None:
        cannot = (
            f"the baseline has only one bin, {int(baseline.bins[0])} us: any histogram reshaped to it would "
            f"equal it, so there is nothing to test"
        )
    if cannot is not None:
        return Test(convention=Convention.PAPER, scale=scale, cannot=cannot)
    observed, expected, bins = reshape(side, baseline), baseline.counts, len(baseline.bins)
    total = 100.0 if scale is Scale.PERCENT else float(observed.sum())
    observed_share, expected_share = observed / observed.sum() * total, expected / expected.sum() * total
    statistic = float(((observed_share - expected_share) ** 2 / expected_share).sum())
    empty = int(baseline.bins[-1] - baseline.bins[0]) + 1 - bins
    return _tested(Convention.PAPER, scale, statistic, bins, alpha, bins, empty)


def merge_sparse(side: Integers, baseline: Integers) -> Integers:
    """Return both rows of counts, shape (2, cells), with neighbouring bins merged until each cell expects at
    least LEAST_EXPECTED samples in each row. `side`, `baseline`: counts in the same bins, shape (bins,).
    """
    share = min(int(side.sum()), int(baseline.sum())) / max(1, int(side.sum()) + int(baseline.sum()))
    cells: list[tuple[int, int]] = []
    first = second = 0
    for a, b in zip(side.tolist(), baseline.tolist(), strict=True):
        first, second = first + a, second + b
        if (first + second) * share >= LEAST_EXPECTED:
            cells.append((first, second))
            first = second = 0
    if first + second and cells:
        cells[-1] = (cells[-1][0] + first, cells[-1][1] + second)
    return np.array(cells, dtype=np.int64).reshape(-1, 2).T


def textbook_test(side: Histogram, baseline: Histogram, *, alpha: float = 0.05) -> Test:
    """Return the test of homogeneity over all bins of both samples, with sparse cells merged and one degree
    of freedom fewer than cells.

    It assumes independent samples, which latencies are not. It cannot be computed if a side is empty or only
    one cell remains. chi2_contingency of scipy.stats gives the same value, but takes 0.5 s longer to import.
    """
    convention, scale, cannot = Convention.TEXTBOOK, Scale.COUNTS, _empty(side, baseline)
    if cannot is not None:
        return Test(convention=convention, scale=scale, cannot=cannot)
    bins_us = np.union1d(side.bins, baseline.bins)
    rows = np.zeros((2, len(bins_us)), dtype=np.int64)
    for row, (row_us, counts) in zip(rows, (side, baseline), strict=True):
        row[np.searchsorted(bins_us, row_us)] = counts
    table = merge_sparse(rows[0], rows[1])
    cells = table.shape[1]
    if cells < 2:
        cannot = "all samples of both sides fall into one cell, so there is nothing to test"
        return Test(convention=convention, scale=scale, cannot=cannot)
    expected = np.outer(table.sum(axis=1) / table.sum(), table.sum(axis=0))
    statistic = float(((table - expected) ** 2 / expected).sum())
    return _tested(convention, scale, statistic, cells - 1, alpha, cells, 0)
