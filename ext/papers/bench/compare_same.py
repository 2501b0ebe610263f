# SPDX-License-Identifier: MIT
"""How often the chi-square test of `rtgauge compare` rejects one of two samples of one and the same
distribution: the figure in docs/compare.md.

PYTHONPATH=src python ext/papers/bench/compare_same.py [--trials 200] [--seed 1]
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from rtgauge.record.histogram import bin_of
from rtgauge_ext.papers.chi_square import microseconds, paper_test

if TYPE_CHECKING:
    import numpy.typing as npt

ALPHA = 0.05
A_WINDOW = 1_000


def sample(
    rng: np.random.Generator, windows: int, bursty: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Bins and counts of latencies of `windows` seconds at 1 ms.

    `bursty`: how far the logarithm of the median wanders from window to window (AR(1), 0.7).
    """
    shift = np.zeros(windows)
    for i in range(1, windows):
        shift[i] = 0.7 * shift[i - 1] + rng.normal(0, bursty)
    values = rng.lognormal(np.log(6_000) + shift[:, None], 0.35, (windows, A_WINDOW))
    late = rng.random(values.shape) < 0.002
    values[late] += rng.lognormal(np.log(40_000), 0.5, int(late.sum()))
    return np.unique(bin_of(values.astype(np.int64)), return_counts=True)


def trial(rng: np.random.Generator, windows: int, bursty: float) -> dict[str, bool]:
    """In which scales the test rejects one of two samples of the same distribution."""
    left, right = (microseconds(*sample(rng, windows, bursty)) for _ in range(2))
    test = paper_test(left, right, alpha=ALPHA)
    # On counts, the statistic is larger by the number of samples over 100.
    counts = test.statistic * left.counts.sum() / 100
    return {"paper, counts": counts > test.critical, "paper, percent": test.rejected}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    rng = np.random.default_rng(chosen.seed)
    columns: dict[str, dict[str, float]] = {}
    for name, windows, bursty in (
        ("independent, 60 s", 60, 0.0),
        ("independent, 300 s", 300, 0.0),
        ("bursty, 60 s", 60, 0.03),
        ("bursty, 300 s", 300, 0.03),
    ):
        results = [trial(rng, windows, bursty) for _ in range(chosen.trials)]
        columns[name] = {
            method: sum(result[method] for result in results) / chosen.trials for method in results[0]
        }
    print(f"| {chosen.trials} pairs each | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for method in next(iter(columns.values())):
        print(
            f"| {method} | "
            + " | ".join(f"{column[method] * 100:.1f} %" for column in columns.values())
            + " |"
        )


if __name__ == "__main__":
    main()
