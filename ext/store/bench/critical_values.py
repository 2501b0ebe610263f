# SPDX-License-Identifier: MIT
"""The critical values of ../change_points.py, how often it marks a series without a change, and how
often it finds one: by simulated boots.

`critical_values.py [--series N] [--seed N]` prints tables in Markdown; with `--marks` without the critical
values. `critical_values.py --otava FILE` prints the places of the changes in a series that Apache Otava tests
with: its tests/tigerbeetle_test.py.
"""

import argparse
import ast
import math
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from rtgauge.analysis.gate_test import LEAST_CHANGE
from rtgauge_ext.store.change_points import LENGTHS, change_points, largest, ranks, statistics

SLOW = {"AR(1), 0.9": 0.9, "season": 0.0, "drift of two spreads": 0.0}
"""Kinds of boots that marks do not allow for; their coefficient from boot to boot."""
COARSE = "whole microseconds"
COARSE_SPREAD, COARSE_LOG = 0.05, math.log(3.4)
"""The relative spread and the level of boots whose values are whole microseconds."""
LEVEL = 0.0015
"""Below one in 500, so that what the simulation does not know of the critical value does not exceed it."""
PART = 20_000


def drawn(kind: str, series: int, length: int, generator: np.random.Generator) -> np.ndarray:
    """Logarithms of boots, with a spread of 1: (series, length)."""
    if kind == "heavy tails":
        return generator.standard_t(3, (series, length)) / np.sqrt(3)
    values = generator.normal(0, 1, (series, length))
    after = 0.5 if kind == "drift" else SLOW.get(kind, 0.0)
    if after:
        values[:, 1:] *= np.sqrt(1 - after**2)
        return np.asarray(lfilter([1], [1, -after], values, axis=1))
    if kind == "season":
        phases = generator.uniform(0, 2 * np.pi, (series, 1))
        return values + 1.5 * np.sin(2 * np.pi * np.arange(length) / 50 + phases)
    if kind == "drift of two spreads":
        return values + np.linspace(0, 2, length)
    if kind == "slow boots":
        return values + 10 * (generator.random(values.shape) < 0.15)
    return values


def places(kind: str, row: np.ndarray) -> list[int]:
    """The places that are marked in a series. Coarse values are rounded to whole microseconds."""
    if kind != COARSE:
        return change_points(row.tolist())
    values_us = np.maximum(1, np.round(np.exp(COARSE_LOG + COARSE_SPREAD * row)))
    return change_points(np.log(values_us).tolist(), (1 / values_us).tolist(), math.log1p(LEAST_CHANGE))


def series_in(file: Path) -> list[float]:
    """The longest list of numbers that a function of a Python file returns."""
    all_series = [
        ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.List)
    ]
    return max(all_series, key=len)


def critical_values(series: int, generator: np.random.Generator) -> None:
    """Print the table of the critical values."""
    print("| length | critical value | of ranks | of all parts |")
    print("|---|---|---|---|")
    for length in LENGTHS:
        ratios: list[list[np.ndarray]] = [[], [], []]
        for _ in range(series // PART):
            same = drawn("drift", PART, length, generator)
            ratios[0].append(statistics(same).max(axis=1))
            ratios[1].append(statistics(ranks(same)).max(axis=1))
            ratios[2].append(largest(same)[0])
        cells = [f"{np.quantile(np.concatenate(each), 1 - LEVEL):.2f}" for each in ratios]
        print(f"| {length} | {' | '.join(cells)} |", flush=True)
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--otava", type=Path)
    arguments = parser.parse_args()
    if arguments.otava is not None:
        values = series_in(arguments.otava)
        print(f"{len(values)} values, changes before", change_points([math.log(value) for value in values]))
        return
    generator = np.random.default_rng(arguments.seed)
    if not arguments.marks:
        critical_values(arguments.series, generator)
    print(
        "| boots, 100 of them | false marks in 500 without a change | a change of 2.5 spreads found |", end=""
    )
    print(" within 3 | at the right boot |")
    print("|---|---|---|---|---|")
    for kind in ("independent", "drift", "slow boots", "heavy tails", COARSE, *SLOW):
        same = drawn(kind, arguments.series // 4, 100, generator)
        marked = sum(bool(places(kind, row)) for row in same)
        changed = drawn(kind, 1_000, 100, generator)
        changed[:, 60:] += 2.5
        detected = [places(kind, row) for row in changed]
        near, there = (
            sum(any(abs(place - 60) <= off for place in each) for each in detected) for off in (3, 0)
        )
        print(
            f"| {kind} | {marked / len(same) * 500:.2f} | {sum(map(bool, detected)) / 10:.1f} % "
            f"| {near / 10:.1f} % | {there / 10:.1f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
