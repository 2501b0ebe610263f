# SPDX-License-Identifier: MIT
"""The round trip that `response` reports over loop:eventfd, against the least program in C that measures one,
on the same CPUs with the same spacing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from figures import CannotMeasure, Figure, Findings, Repeated
from programs import engine, run, say
from tools import ordered

INTERVAL_NS = 503_000
LIMIT = 1.05
SOURCE = Path(__file__).with_name("ping_pong.c")
OURS, BARE, AGAIN = "rtgauge", "bare", "bare again"


def measure(chosen: argparse.Namespace) -> Findings:
    """Rounds with slices of as many seconds as chosen; the chosen CPU is the slave's."""
    cpu, rounds, seconds = chosen.cpu, chosen.rounds, chosen.slice
    others = sorted(os.sched_getaffinity(0) - {cpu})
    if not others:
        raise CannotMeasure("a round trip between two CPUs needs two CPUs")
    compiler = shutil.which("cc")
    if compiler is None:
        raise CannotMeasure("cc is not installed: apt-get install gcc libc6-dev")
    count = max(100, round(seconds * 1e9 / INTERVAL_NS))
    findings, repeat = Findings(), Repeated(rounds // 4)
    times: dict[str, list[tuple[float, float]]] = {OURS: [], BARE: [], AGAIN: []}
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as folder:
        bare = Path(folder) / "ping_pong"
        run([compiler, "-O2", "-pthread", "-o", str(bare), str(SOURCE)])

        def slices(number: int) -> dict[str, tuple[float, float]]:
            return {
                name: _slice(name, Path(folder), others[0], cpu, count)
                for name in ordered([OURS, BARE, AGAIN], number)
            }

        for number in range(rounds):
            now = repeat(lambda number=number: slices(number))
            for name, pair in now.items():
                times[name].append(pair)
            say(
                f"  round {number + 1} of {rounds}: "
                + ", ".join(f"{name} {pair[0] / 1000:.2f} us" for name, pair in now.items())
            )
    findings.notes += repeat.note("rounds")
    for at, what in enumerate(("median", "mean")):
        of = {name: [value[at] for value in values] for name, values in times.items()}
        both = [ours / np.sqrt(a * b) for ours, a, b in zip(of[OURS], of[BARE], of[AGAIN], strict=True)]
        findings.figures += [
            Figure(
                f"{what} round trip, rtgauge / bare",
                [float(pair) for pair in both],
                at_most=LIMIT if what == "median" else None,
            ),
            Figure(
                f"{what} round trip, bare / bare",
                [a / b for a, b in zip(of[AGAIN], of[BARE], strict=True)],
                note="noise",
            ),
            *[Figure(f"{what} round trip, {name}", of[name], "ns") for name in (OURS, BARE)],
        ]
    return findings


def _slice(name: str, folder: Path, master: int, slave: int, count: int) -> tuple[float, float]:
    """Median and mean (ns) of one slice."""
    if name == OURS:
        words = [
            "response",
            "--go",
            "--path=loop:eventfd",
            f"--cpu={master}",
            f"--slave-cpu={slave}",
            f"--interval-ns={INTERVAL_NS}",
            f"--count={count}",
        ]
        run([engine(), *words, "--warm-up-ns=0", f"--samples-dir={folder}"])
        trips = np.fromfile(folder / "samples-0.i64", dtype="<i8", offset=64).reshape(-1, 2)[:, 1]
        (folder / "samples-0.i64").unlink()
    else:
        trips = np.array(
            run([str(folder / "ping_pong"), str(master), str(slave), str(INTERVAL_NS), str(count)]).split(),
            dtype=np.int64,
        )
    if len(trips) == 0:
        raise CannotMeasure("no round trip was measured")
    return float(np.median(trips)), float(trips.mean())
