# SPDX-License-Identifier: MIT
"""Compares distributions with a baseline by the chi-square test of Delgado and Choi.

Delgado and Choi, New Insights Into the Real-Time Performance of a Multicore Processor, IEEE Access 8 (2020),
sec. IV.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rtgauge.record.histogram import Histogram, Integers, add_bins, lower_ns
from rtgauge.record.strict_model import Model

BIN_NS = 1_000
"""The bin width of the papers."""


class Scale(StrEnum):
    """The unit of the paper's statistic: counts or percentages."""

    COUNTS = "counts"
    PERCENT = "percent"


class ChiSquareTest(Model):
    """One chi-square test. If it cannot be computed, `cannot` says why and the other fields are None."""

    scale: Scale
    cannot: str | None = None
    statistic: float | None = None
    degrees_of_freedom: int | None = None
    critical: float | None = None
    p_value: float | None = Field(
        default=None,
        description="None if the statistic is in percent, because it then does not follow a chi-square "
        "distribution",
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


def _empty(side: Histogram, baseline: Histogram) -> str | None:
    if not len(baseline.bins):
        return "the baseline is empty"
    return None if len(side.bins) else "the sample is empty"


def paper_test(
    side: Histogram, baseline: Histogram, *, alpha: float = 0.05, scale: Scale = Scale.PERCENT
) -> ChiSquareTest:
    """Return the paper's test: the sum of (O - E)^2 / E over the baseline's bins, with as many degrees of
    freedom as bins.

    With `counts`, the baseline's counts are scaled to the side's number of samples. With `percent`, both add
    up to 100. The test cannot be computed if either histogram is empty, or if the baseline has only one bin.
    """
    cannot = _empty(side, baseline)
    if len(baseline.bins) == 1 and cannot is None:
        cannot = (
            f"all samples of the baseline lie in one bin, {int(baseline.bins[0])} us, so the test cannot "
            "tell any other histogram from it"
        )
    if cannot is not None:
        return ChiSquareTest(scale=scale, cannot=cannot)
    observed, expected, bins = reshape(side, baseline), baseline.counts, len(baseline.bins)
    total = 100.0 if scale is Scale.PERCENT else float(observed.sum())
    observed_share, expected_share = observed / observed.sum() * total, expected / expected.sum() * total
    statistic = float(((observed_share - expected_share) ** 2 / expected_share).sum())
    empty = int(baseline.bins[-1] - baseline.bins[0]) + 1 - bins
    critical = critical_value(bins, alpha)
    return ChiSquareTest(
        scale=scale,
        statistic=statistic,
        degrees_of_freedom=bins,
        critical=critical,
        p_value=exceedance_probability(statistic, bins) if scale is Scale.COUNTS else None,
        rejected=statistic > critical,
        bins=bins,
        empty_bins_merged=empty,
    )
