# SPDX-License-Identifier: MIT
"""What `rtgauge watch` costs the loop that it watches: the table in docs/probes/watch.md.

    sudo python bench/watch_cost.py [--rounds 8] [--seconds 2] [--rtgauge PROGRAM]

Each round starts a loop (bench/own_loops/loops.c, kind `calls`) and takes its cycles from its own log, with
watching and without; each is first in turn. The table has the medians of the rounds and of the ratios within
a round, with the least and the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parent / "own_loops" / "loops.c"
SETTLING_S = 0.5
LOOPS = ((1000, 4), (100, 20), (100, 100))
"""Period in us, and calls in each cycle."""


@dataclass
class Costs:
    """Medians of each round, in us, without and with watching."""

    latency: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    work: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    releases: int = 0
    accounted: int = 0
    gaps: int = 0


def watch(rtgauge: str, pid: int, seconds: int, period_us: int) -> dict[str, object]:
    """Watch the program. Return the step."""
    command = [rtgauge, "watch", "--pid", str(pid), "--duration", f"{seconds}s", "--json", "--no-explain"]
    completed = subprocess.run(
        [*command, "--period", f"{period_us}us", "--wait", "30min"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        (step,) = json.loads(completed.stdout)["steps"]
    except (ValueError, KeyError):
        raise SystemExit(f"watch failed: {completed.stderr.strip()}") from None
    return step


def medians(log: Path, begin_ns: int, end_ns: int) -> tuple[float, float]:
    """The median latency and duration (us) of the cycles in this time."""
    release, start, end, _ = np.fromfile(log, "<i8").reshape(-1, 4).T
    inside = (release >= begin_ns) & (end < end_ns) & (end > 0)
    return (
        float(np.median((start - release)[inside])) / 1000,
        float(np.median((end - start)[inside])) / 1000,
    )


def turn(
    program: Path, rtgauge: str, period_us: int, calls: int, seconds: int, costs: Costs, first: bool
) -> None:
    """One round. first: watch first."""
    log = program.parent / "log"
    command = [program, "calls", "--log", log, "--period-us", period_us, "--work-us", 2, "--calls", calls]
    command += ["--fifo", 40, "--cpu", max(os.sched_getaffinity(0))]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as loop:
        assert loop.stdout is not None
        loop.stdout.readline()
        step = watch(rtgauge, loop.pid, seconds, period_us) if first else {}
        time.sleep(SETTLING_S)
        begin_ns = time.monotonic_ns()
        time.sleep(seconds)
        end_ns = time.monotonic_ns()
        if not first:
            step = watch(rtgauge, loop.pid, seconds, period_us)
        loop.terminate()
    without = medians(log, begin_ns, end_ns)
    watched = medians(log, int(str(step["start_ns"])), int(str(step["end_ns"])))
    costs.latency.append((without[0], watched[0]))
    costs.work.append((without[1], watched[1]))
    results = step["results"]
    assert isinstance(results, list)
    for result in results:
        if result["name"] == "thread":
            costs.accounted += sum(
                result["values"][name] for name in ("activations", "overruns", "unknown_releases")
            )
        costs.gaps += int(result["values"].get("gaps") or 0)
    costs.releases += round((int(str(step["end_ns"])) - int(str(step["start_ns"]))) / period_us / 1000)


def cells(pairs: list[tuple[float, float]]) -> str:
    """Without, with, and the ratio."""
    ratios = [watched / without for without, watched in pairs]
    without, watched = (statistics.median(values) for values in zip(*pairs, strict=True))
    return (
        f"{without:.1f} us | {watched:.1f} us | {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rtgauge", default="rtgauge")
    arguments = parser.parse_args()
    found = [Costs() for _ in LOOPS]
    with tempfile.TemporaryDirectory(prefix="rtgauge-watch-cost-") as folder:
        program = Path(folder) / "loops"
        subprocess.run(["gcc", "-O2", "-pthread", SOURCE, "-o", program], check=True)
        for number in range(arguments.rounds):
            for (period_us, calls), costs in zip(LOOPS, found, strict=True):
                turn(program, arguments.rtgauge, period_us, calls, arguments.seconds, costs, bool(number % 2))
                print(period_us, calls, costs, file=sys.stderr)
    print("| loop | latency: not watched | watched | ratio | work: not watched | watched | ratio | counted |")
    print("|---|---|---|---|---|---|---|---|")
    for (period_us, calls), costs in zip(LOOPS, found, strict=True):
        print(
            f"| {1000 / period_us:g} kHz, {calls} calls | {cells(costs.latency)} | {cells(costs.work)} | "
            f"{costs.accounted:,} of {costs.releases:,}, {costs.gaps} gaps |"
        )


if __name__ == "__main__":
    main()
