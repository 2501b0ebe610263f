# SPDX-License-Identifier: MIT
"""How much boots or runs of one system differ: `spread.py RECORD...`, records of like with like.

Such a record comes from a system against itself, with a boot before each run if boots are of interest:

    rtgauge run --alternate lab:debian lab:debian --pairs 15 --boot each-run --load idle

A row for each series and quantile: its spread between runs (standard deviation of the logarithms), within a
run (of its halves), the correlation of a run with the next, and runs that are slower than the median by half.
Then the same of how many values lie above the p99.9 of all runs: variance over mean, 1 if chance alone makes
it. At last the gates of 6 pairs that the runs make, of like with like and with every candidate changed by
what 6 pairs find at this spread.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from rtgauge.analysis.gate_test import Outcome, decide, detectable
from rtgauge.record.alternation import BLOCK
from rtgauge.record.histogram import upper_ns
from rtgauge.record.model import Step
from rtgauge.record.reader import Record
from rtgauge.record.windows import Windows

SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def histograms(windows: Windows) -> tuple[dict[int, int], dict[int, int]]:
    """Bin -> count, of the first and the second half of a step."""
    halves: tuple[dict[int, int], dict[int, int]] = ({}, {})
    chosen = np.flatnonzero(windows.are_of(None)).tolist()
    middle = np.median(windows.index[chosen])
    for at in chosen:
        half = halves[int(windows.index[at] > middle)]
        for number, count in zip(*windows.bins.of(at), strict=True):
            half[int(number)] = half.get(int(number), 0) + int(count)
    return halves


def quantile_ns(bins: dict[int, int], share: float) -> float:
    """The upper end of the bin with this quantile."""
    ordered = sorted(bins)
    sums = np.cumsum([bins[number] for number in ordered])
    return float(upper_ns(np.array(ordered[int(np.searchsorted(sums, share * sums[-1]))])))


def add(*histogram: dict[int, int]) -> dict[int, int]:
    """The sum of histograms."""
    return {
        number: sum(each.get(number, 0) for each in histogram) for number in {n for h in histogram for n in h}
    }


def spread(logs: np.ndarray) -> str:
    """Of logarithms, in percent."""
    return f"{logs.std(ddof=1):.1%}"


def correlation(logs: np.ndarray) -> str:
    """Of each value with the next."""
    centred = logs - logs.mean()
    return f"{(centred[1:] @ centred[:-1]) / max(centred @ centred, 1e-12):+.2f}"


def gates(logs: np.ndarray, change: float) -> tuple[int, int]:
    """(worse, gates) of 6 pairs, each of two runs that follow one another, in random order."""
    generator = np.random.default_rng(1)
    pairs = logs[: len(logs) // 2 * 2].reshape(-1, 2)
    ratios = (pairs[:, 1] - pairs[:, 0]) * generator.choice([-1, 1], len(pairs)) + math.log1p(change)
    blocks = [ratios[at : at + BLOCK].tolist() for at in range(0, len(ratios) - BLOCK + 1, BLOCK)]
    found = [decide(block, larger_than=0.1, max_pairs=BLOCK).outcome for block in blocks]
    return found.count(Outcome.WORSE), len(found)


def series_of(records: list[Record]) -> dict[str, list[tuple[Record, Step]]]:
    """Each condition with its runs in the order of time."""
    series: dict[str, list[tuple[Record, Step]]] = {}
    for record in records:
        for step in record.steps:
            if step.total is not None:
                name = f"{step.key.targets['self']} {step.key.load} {step.key.deployment}"
                series.setdefault(name, []).append((record, step))
    return {
        name: sorted(runs, key=lambda run: (run[0].run.created, run[1].start_ns or 0))
        for name, runs in series.items()
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, nargs="+")
    records = [Record.open(path) for path in parser.parse_args().records]
    print("| runs of | | runs | mean, us | between runs | within a run | next run | slow | like with like |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, runs in series_of(records).items():
        halves = [histograms(record.windows(step)) for record, step in runs]
        whole = [add(*each) for each in halves]
        for quantile, share in SHARES.items():
            logs = np.log([quantile_ns(each, share) for each in whole])
            of_halves = np.log([[quantile_ns(half, share) for half in each] for each in halves])
            within = (of_halves[:, 1] - of_halves[:, 0]).std(ddof=1) / 2
            slow = int((logs > np.median(logs) + math.log(1.5)).sum())
            alarms, number = gates(logs, 0)
            change = detectable(float(logs.std(ddof=1)), BLOCK)
            found, _ = gates(logs, change)
            print(
                f"| {name} | {quantile} | {len(logs)} | {math.exp(logs.mean()) / 1000:.1f} | {spread(logs)} "
                f"| {within:.1%} | {correlation(logs)} | {slow} "
                f"| worse {alarms} of {number}, {found} with {change:+.1%} |"
            )
        bound = quantile_ns(add(*whole), 0.999)
        beyond = np.array(
            [
                sum(count for number, count in each.items() if upper_ns(np.array(number)) > bound)
                for each in whole
            ]
        )
        print(
            f"| {name} | above {bound / 1000:.1f} us | {len(beyond)} | {beyond.mean():.1f} values "
            f"| variance / mean {beyond.var(ddof=1) / max(beyond.mean(), 1e-9):.1f} | | | | |"
        )


if __name__ == "__main__":
    main()
