# SPDX-License-Identifier: MIT
"""The solvers of the tire side by side: node-steps a second of one thread and of two, alternately, and the
largest tire that keeps 100 Hz.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from typing import Any

from figures import CannotMeasure, Figure, Findings
from programs import engine, run, say

ROUNDS = 9
TURN_NS = 250_000_000
PERIOD_NS = 10_000_000
PACED_NS = 1_500_000_000
REPEATS = 2
"""Runs of a size that all have to keep every deadline."""
NEAR = 0.02
"""The frontier is searched until its two sides are this near."""
MOST_NODES = 16_000_000
MANY_TIMES, TWO_THREADS = 10.0, 1.7
FRONTIERS = (("serial", 1), ("semaphore", 1), ("semaphore", 2), ("halo", 1), ("halo", 2))
FLAGS = "-ffp-contract=off -fno-math-errno, the loops of halo with -O3, all else with -O2"


def _values(solver: str, nodes: int, threads: int, *words: str) -> dict[str, Any]:
    command = [
        engine(),
        "tire",
        "--go",
        f"--solver={solver}",
        f"--nodes={nodes}",
        f"--threads={threads}",
        "--warm-up-ns=50000000",
        *words,
    ]
    lines = [json.loads(line) for line in run(command).splitlines()]
    return next(line["values"] for line in lines if line["type"] == "result")


def _rate(solver: str, nodes: int, threads: int) -> float:
    return float(_values(solver, nodes, threads, f"--duration-ns={TURN_NS}")["node_steps_per_s"])


def _by_turns(first: tuple[str, int, int], second: tuple[str, int, int]) -> tuple[list[float], list[float]]:
    """Node-steps a second of both, a value a round; they change places from round to round."""
    rates: dict[tuple[str, int, int], list[float]] = {first: [], second: []}
    for number in range(ROUNDS):
        for configuration in (first, second) if number % 2 else (second, first):
            rates[configuration].append(_rate(*configuration))
    return rates[first], rates[second]


def _holds(solver: str, nodes: int, threads: int) -> bool:
    """Whether no deadline is missed at 100 Hz, in several runs."""
    words = (f"--period-ns={PERIOD_NS}", f"--duration-ns={PACED_NS}")
    return all(_values(solver, nodes, threads, *words)["deadline_missed"] == 0 for _ in range(REPEATS))


def _frontier(solver: str, threads: int) -> tuple[int, int]:
    """The largest number of nodes that kept every deadline, and the smallest that did not: between them by
    bisection, from what a node takes.
    """
    rate = _rate(solver, 200_000, threads)
    low, high = 4, min(MOST_NODES, int(rate * PERIOD_NS / 1e9 * 1.5) // 4 * 4)
    guess = int(rate * PERIOD_NS / 1e9 * 0.8) // 4 * 4
    while high - low > max(4, NEAR * low):
        middle = guess if low < guess < high else (low + high) // 8 * 4
        guess = 0
        if _holds(solver, middle, threads):
            low = middle
        else:
            high = middle
    return low, high


def measure(_: argparse.Namespace) -> Findings:
    """Speeds, their ratios, and the real-time frontier of every solver."""
    if os.geteuid():
        raise CannotMeasure("the real-time runs need root")
    findings = Findings()
    halo, semaphore = _by_turns(("halo", 4000, 1), ("semaphore", 4000, 1))
    kernel = _values("halo", 4000, 1, "--steps=100")["kernel"]
    findings.notes.append(f"compiled with {FLAGS}; the loops of halo for {kernel}")
    findings.figures += [
        Figure("halo, one thread, n = 4000", [rate / 1e6 for rate in halo], "M node-steps/s"),
        Figure("semaphore, one thread, n = 4000", [rate / 1e6 for rate in semaphore], "M node-steps/s"),
        Figure(
            "halo over semaphore, one thread",
            [a / b for a, b in zip(halo, semaphore, strict=True)],
            at_least=MANY_TIMES,
        ),
    ]
    cpus = len(os.sched_getaffinity(0))
    if cpus > 1:
        two, single = _by_turns(("halo", 40_000, 2), ("halo", 40_000, 1))
        findings.figures += [
            Figure("halo, one thread, n = 40 000", [rate / 1e6 for rate in single], "M node-steps/s"),
            Figure("halo, two threads, n = 40 000", [rate / 1e6 for rate in two], "M node-steps/s"),
            Figure(
                "two threads over one, n = 40 000",
                [a / b for a, b in zip(two, single, strict=True)],
                at_least=TWO_THREADS,
            ),
        ]
    else:
        findings.missing.append("tire: two threads need two CPUs")
    for solver, threads in FRONTIERS:
        if threads > cpus:
            continue
        say(f"frontier of {solver}, {threads} threads ...")
        low, high = _frontier(solver, threads)
        note = f"{high} nodes missed a deadline" if high < MOST_NODES else "the most that there may be"
        findings.figures.append(
            Figure(
                f"100 Hz kept by {solver}, {threads} thread{'s' if threads > 1 else ''}",
                [float(low)],
                "nodes",
                note=note,
            )
        )
    spread = statistics.median(halo) / statistics.median(semaphore)
    findings.notes.append(
        f"a ratio of medians: {spread:.1f} times as many node-steps; every frontier kept {REPEATS} "
        f"runs of {PACED_NS / 1e9:g} s without a miss"
    )
    return findings
