# SPDX-License-Identifier: MIT
"""The peaks over a threshold against scipy's generalised Pareto distribution and known tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, genpareto

from rtgauge.analysis.peaks_over_threshold import estimate, fit


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.3, 0.8])
def test_the_fit_is_where_scipys_density_is_most_likely(shape):
    excess = genpareto.rvs(shape, scale=5_000, size=300, random_state=4)
    scale, found = fit(excess, np.ones(300))

    def negative(q):
        return genpareto.nnlf((q[1], 0, np.exp(q[0])), excess)

    best = min(
        minimize(negative, [np.log(5_000), start], method="Nelder-Mead").fun for start in (-0.2, 0.1, 0.5)
    )
    assert negative((np.log(scale), found)) == pytest.approx(best, abs=0.01)


def test_a_count_weighs_as_much_as_as_many_values():
    excess = np.arange(1.0, 40.0) ** 2
    times = np.arange(1, 40)[::-1]
    assert fit(excess, times) == pytest.approx(fit(np.repeat(excess, times), np.ones(times.sum())), rel=1e-9)


def test_the_level_and_its_interval_of_an_exponential_sample():
    values, counts = np.unique(
        np.random.default_rng(3).exponential(10_000, 200_000).astype(int), return_counts=True
    )
    found = estimate(values, counts)
    assert found is not None
    low, high = found.interval(10**6, 0.95)
    assert low < 10_000 * np.log(10**6) < high

    # At its edge the interval loses what the chi-square quantile allows, by scipy's density.
    excess, times = values[values > found.threshold] - found.threshold, counts[values > found.threshold]
    factor = found.rate * 10**6

    def loss(level):
        def negative(q):
            scale = (level - found.threshold) * q[0] / np.expm1(q[0] * np.log(factor))
            value = -float(genpareto.logpdf(excess, q[0], 0, scale) @ times)
            return value if np.isfinite(value) else 1e12

        best = -float(genpareto.logpdf(excess, found.shape, 0, found.scale) @ times)
        return 2 * (
            min(minimize(negative, [start], method="Nelder-Mead").fun for start in (-0.2, 0.05, 0.3)) - best
        )

    assert loss(low) == pytest.approx(chi2.ppf(0.95, 1), abs=0.3)
    assert loss(high) == pytest.approx(chi2.ppf(0.95, 1), abs=0.3)


@pytest.mark.parametrize("values", [[], [5], list(range(8))])
def test_too_few_different_values_give_none(values):
    assert estimate(np.array(values), np.full(len(values), 1_000)) is None
