# SPDX-License-Identifier: MIT
"""How often the intervals of `rtgauge compare` hold, and how often it calls a system different from itself:
the table in docs/benchmarks.md.

Both sides are drawn from one system: log-normal latencies or a heavy tail, each independent or dependent on
the one before (AR(1)), in runs whose latencies are
multiplied by a random factor. The figures go the way of a record's: histograms by windows, sides, intervals,
Holm's correction, the words. About 20 minutes.

PYTHONPATH=src python bench/compare_coverage.py [--trials 300] [--seed 1] [--only TEXT]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.repeated_runs import System, side

from rtgauge.analysis.comparison import ComparisonOptions, quantile_differences
from rtgauge.analysis.comparison_conclusion import ComparisonFinding, finding, worse

ALPHA = 0.05
SYSTEMS = {
    "independent, 250 a window": System(),
    "AR(1) 0.95, 250 a window": System(0.95),
    "AR(1) 0.95, 1,000 a window": System(0.95, 1_000),
    "AR(1) 0.999, 250 a window": System(0.999),
    "AR(1) 0.999, 1,000 a window": System(0.999, 1_000),
    "heavy tail, 250 a window": System(heavy_tail=True),
    "heavy tail, AR(1) 0.999, 1,000 a window": System(0.999, 1_000, heavy_tail=True),
}
SHORTER = {
    name: replace(system, windows=20 if system.per_window == 1_000 else 40)
    for name, system in SYSTEMS.items()
}
REPEATED = [
    *((name, system, (5, 5)) for name, system in SHORTER.items()),
    *(
        ("independent, 250 a window", SHORTER["independent, 250 a window"], runs)
        for runs in ((2, 2), (3, 3), (10, 10), (2, 6), (1, 6))
    ),
    ("heavy tail, 250 a window", SHORTER["heavy tail, 250 a window"], (2, 2)),
    ("heavy tail, 250 a window", SHORTER["heavy tail, 250 a window"], (10, 10)),
]
"""Runs of 40 windows of 250 samples or 20 of 1,000; single runs have 60 windows."""
SHIFTS = (0.0, 0.05, 0.15)


def measure(system: System, runs: tuple[int, int], trials: int, seed: int) -> Counter[str]:
    """How often each quantile's interval covers 0 and has no limit, of how many; how often a side is called
    different, or worse.
    """
    rng = np.random.default_rng(seed)
    found: Counter[str] = Counter()
    for _ in range(trials):
        one, other = side("one", system, runs[0], rng), side("other", system, runs[1], rng)
        rows = quantile_differences([(one, other)], ComparisonOptions(alpha=ALPHA))
        for row in rows:
            if row.p_different is None:
                continue
            found[f"{row.quantile} of"] += 1
            found[f"{row.quantile} open"] += row.low_ns is None or row.high_ns is None
            found[row.quantile] += (row.low_ns is None or row.low_ns <= 0) and (
                row.high_ns is None or row.high_ns >= 0
            )
        found["different"] += any(
            finding(row, alpha=ALPHA) in {ComparisonFinding.WORSE, ComparisonFinding.BETTER} for row in rows
        )
        found["worse"] += bool(worse(rows, alpha=ALPHA))
    return found


def line(name: str, runs: tuple[int, int], shift: float, found: Counter[str], trials: int) -> str:
    """A line of the table."""
    cells = [name, f"{runs[0]} : {runs[1]}", f"{shift:.0%}"]
    for quantile in ("p50", "p99", "p99.9"):
        of = found[f"{quantile} of"]
        ended = f" ({found[f'{quantile} open'] / of:.0%} no limit)" if found[f"{quantile} open"] else ""
        cells.append(f"{found[quantile] / of:.1%}{ended}" if of else "no interval")
    cells += [f"{found['different'] / trials:.1%}", f"{found['worse'] / trials:.1%}"]
    return f"| {' | '.join(cell.replace('%', ' %') for cell in cells)} |"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--trials", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="only the lines with this text")
    chosen = options.parse_args()
    cases = [(name, (1, 1), 0.0, system) for name, system in SYSTEMS.items()]
    cases += [
        (name, runs, shift, replace(system, run_shift=shift))
        for name, system, runs in REPEATED
        for shift in SHIFTS
    ]
    print(
        f"| {chosen.trials} pairs each | runs | shift | p50 covered | p99 covered | p99.9 covered | "
        "different, or higher | worse |"
    )
    print("|---" * 8 + "|")
    for number, (name, runs, shift, system) in enumerate(cases):
        text = f"{name} {runs[0]}:{runs[1]} {shift}"
        if chosen.only in text:
            print(
                line(
                    name,
                    runs,
                    shift,
                    measure(system, runs, chosen.trials, chosen.seed * 1_000 + number),
                    chosen.trials,
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
