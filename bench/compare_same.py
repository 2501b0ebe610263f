# SPDX-License-Identifier: MIT
"""How often each method of `rtgauge compare` calls two samples of one and the same distribution different: the table in docs/compare.md.

PYTHONPATH=src python bench/compare_same.py [--trials 200] [--seed 1]
"""

from __future__ import annotations

import argparse

import numpy as np

from rtgauge.analysis import bootstrap
from rtgauge.analysis.chi_square import Scale, microseconds, paper_test, textbook_test
from rtgauge.record.histogram import bin_of, lower_ns, upper_ns

ALPHA = 0.05
WITHIN_NS = 2_000
A_WINDOW = 1_000


def sample(rng: np.random.Generator, windows: int, bursty: float) -> bootstrap.Stretches:
    """Latencies (ns) of `windows` seconds at 1 ms. `bursty`: how far the logarithm of the median wanders from window to window (AR(1), 0.7)."""
    shift = np.zeros(windows)
    for i in range(1, windows):
        shift[i] = 0.7 * shift[i - 1] + rng.normal(0, bursty)
    values = rng.lognormal(np.log(6_000) + shift[:, None], 0.35, (windows, A_WINDOW))
    late = rng.random(values.shape) < 0.002
    values[late] += rng.lognormal(np.log(40_000), 0.5, int(late.sum()))
    bins = bin_of(values.astype(np.int64))
    found, where = np.unique(bins, return_inverse=True)
    counts = np.zeros((windows, len(found)), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(windows), A_WINDOW), where.ravel()), 1)
    return bootstrap.Stretches(upper_ns(found), counts, lower_ns(found), upper_ns(found))


def trial(rng: np.random.Generator, windows: int, bursty: float) -> dict[str, bool]:
    """What each method says of two samples of the same distribution: true is "different" (or, in the last, "the same within 2 us")."""
    one, other = sample(rng, windows, bursty), sample(rng, windows, bursty)
    left, right = (microseconds(bin_of(s.values_ns), s.counts.sum(axis=0)) for s in (one, other))
    names = ["p50", "p99", "p99.9"]
    shares = [bootstrap.QUANTILES[name] for name in names]
    resampled = [[bootstrap.resampled_quantile(s, share) for s in (one, other)] for share in shares]
    found = [bootstrap.interval(*sides, alpha=ALPHA, within_ns=WITHIN_NS) for sides in resampled]
    return {
        "paper, counts": paper_test(left, right, scale=Scale.COUNTS, alpha=ALPHA).rejected,
        "paper, percent": paper_test(left, right, scale=Scale.PERCENT, alpha=ALPHA).rejected,
        "textbook": textbook_test(left, right, alpha=ALPHA).rejected,
        "bootstrap, p50 alone": found[0].p_different < ALPHA,
        "bootstrap, p99 alone": found[1].p_different < ALPHA,
        "bootstrap, p99.9 alone": found[2].p_different < ALPHA,
        "bootstrap, any of the three (Holm)": min(bootstrap.holm([f.p_different for f in found])) < ALPHA,
        "the same within 2 us at p99": found[1].p_not_within < ALPHA,
    }


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    rng = np.random.default_rng(chosen.seed)
    columns: dict[str, dict[str, float]] = {}
    for name, windows, bursty in (("independent, 60 s", 60, 0.0), ("independent, 300 s", 300, 0.0), ("bursty, 60 s", 60, 0.03), ("bursty, 300 s", 300, 0.03)):
        results = [trial(rng, windows, bursty) for _ in range(chosen.trials)]
        columns[name] = {method: sum(result[method] for result in results) / chosen.trials for method in results[0]}
    print(f"| {chosen.trials} pairs each | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for method in next(iter(columns.values())):
        print(f"| {method} | " + " | ".join(f"{column[method] * 100:.1f} %" for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
