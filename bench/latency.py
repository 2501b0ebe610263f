# SPDX-License-Identifier: MIT
"""Latency on the same CPU with the same settings: ours, cyclictest's, jitterdebugger's, and cyclictest's against itself.

What makes the comparison fair:

- All run SCHED_FIFO 98 on one CPU, memory locked, 0 in /dev/cpu_dma_latency, clock_nanosleep until an absolute time, no
  warm-up, the same number of activations.
- All are read in ns. cyclictest's usual 1 us steps are cut off, not rounded; so it runs with -N and a histogram of 1 ns bins.
- One short slice of each program after the other makes a round; the order changes from round to round. Ratios are taken within a round,
  whose slices saw nearly the same machine; the figure is the median over all rounds.
- cyclictest runs twice a round. Its second slice over its first shows how far a ratio strays when nothing differs.
- The interval does not divide the tick's period (203 us, not 200 us): otherwise each slice would keep one random distance to the tick,
  and that would decide the ratio.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from figures import CannotMeasure, Figure, Findings
from programs import engine, program, run, say

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVALS_US = (203, 997)
LIMIT = 1.03
PRIORITY = "98"
HISTOGRAM_NS = "1000000"


@dataclass(frozen=True)
class Slice:
    """One short measurement, ns."""

    median: float
    mean: float


def ours(folder: Path, cpu: int, interval_us: int, count: int) -> Slice:
    """A slice of the engine; raw samples give the exact median, as the drain thread writes them beside the measurement."""
    command = [engine(), "wakeup", "--go", "--cpu", str(cpu), "--interval-ns", str(interval_us * 1000), "--priority", PRIORITY]
    run([*command, "--warm-up-ns", "0", "--count", str(count), "--samples-dir", str(folder)])
    samples = np.fromfile(folder / "samples-0.i64", dtype="<i8", offset=64)
    if len(samples) == 0:
        raise CannotMeasure("the engine left no samples")
    return Slice(float(np.median(samples)), float(samples.mean()))


def cyclictest(folder: Path, cpu: int, interval_us: int, count: int) -> Slice:
    path = folder / "cyclictest.json"
    command = [program("cyclictest"), "-q", "-N", "-m", "-t", "1", "-a", str(cpu), "-p", PRIORITY, "-i", str(interval_us), "-l", str(count)]
    run([*command, "-h", HISTOGRAM_NS, f"--json={path}"], cwd=folder)
    return from_json(json.loads(path.read_text())["thread"]["0"])


def jitterdebugger(folder: Path, cpu: int, interval_us: int, count: int) -> Slice:
    run([program("jitterdebugger"), "-N", "-a", str(cpu), "-p", PRIORITY, "-i", str(interval_us), "-l", str(count), "-o", str(folder)], cwd=folder)
    return from_json(json.loads((folder / "results.json").read_text())["cpu"]["0"])


def from_json(series: dict[str, Any]) -> Slice:
    """Both write a histogram {ns: count} and an exact mean. What is above the histogram counts as above the median."""
    bins = sorted((int(value), int(count)) for value, count in series["histogram"].items() if int(count))
    total = int(series.get("cycles") or series.get("count") or 0)
    ranks = list(itertools.accumulate(count for _, count in bins))
    if not bins or ranks[-1] < total / 2:
        raise CannotMeasure("more than half of the latencies are above 1 ms: this machine is too busy to compare on")
    middle = next(value for (value, _), rank in zip(bins, ranks, strict=True) if rank * 2 >= total)
    return Slice(float(middle), float(series["avg"]))


def slices(cpu: int, interval_us: int, count: int, rounds: int, tools: dict[str, Callable[[Path, int, int, int], Slice]]) -> list[dict[str, Slice]]:
    """`rounds` rounds of one slice a tool. The order turns by one each round, and every second turn is backwards."""
    names = list(tools)
    result: list[dict[str, Slice]] = []
    for number in range(rounds):
        turn = number // 2 % len(names)
        order = names[turn:] + names[:turn]
        if number % 2:
            order.reverse()
        found: dict[str, Slice] = {}
        for name in order:
            with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as folder:
                found[name] = tools[name](Path(folder), cpu, interval_us, count)
        result.append(found)
        say(f"  {interval_us} us, round {number + 1} of {rounds}: " + ", ".join(f"{name} {found[name].median / 1000:.2f} us" for name in names))
    return result


def measure(cpu: int, rounds: int, seconds: float) -> Findings:
    """`rounds` rounds an interval, with slices of `seconds`."""
    findings = Findings()
    tools = {"rtgauge": ours, "cyclictest": cyclictest, "cyclictest again": cyclictest, "jitterdebugger": jitterdebugger}
    engine()
    program("cyclictest")
    try:
        program("jitterdebugger")
    except CannotMeasure as error:
        findings.missing.append(f"latency against jitterdebugger: {error}")
        del tools["jitterdebugger"]
    for interval_us in INTERVALS_US:
        count = max(100, round(seconds * 1e6 / interval_us))
        found = slices(cpu, interval_us, count, rounds, tools)
        for figure in ("median", "mean"):
            of = {name: [getattr(one[name], figure) for one in found] for name in tools}

            def ratio(over: str, under: str, of: dict[str, list[float]] = of) -> list[float]:
                return [a / b for a, b in zip(of[over], of[under], strict=True)]

            head = f"{figure} latency, {interval_us} us: "
            findings.figures.append(Figure(head + "rtgauge / cyclictest", ratio("rtgauge", "cyclictest"), at_most=LIMIT))
            findings.figures.append(Figure(head + "cyclictest / cyclictest", ratio("cyclictest again", "cyclictest"), note="noise"))
            if "jitterdebugger" in tools:
                findings.figures.append(Figure(head + "rtgauge / jitterdebugger", ratio("rtgauge", "jitterdebugger")))
            quietest = min(of["rtgauge"]) / min(of["cyclictest"] + of["cyclictest again"])
            findings.figures.append(Figure(head + "quietest slices, rtgauge / cyclictest", [quietest]))
            findings.figures += [Figure(head + name, values, "ns") for name, values in of.items() if name != "cyclictest again"]
    return findings
