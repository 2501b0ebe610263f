# SPDX-License-Identifier: MIT
"""One slice of a latency measurement by each tool, all with the same settings.

SCHED_FIFO 98 on one CPU, memory locked, 0 in /dev/cpu_dma_latency, clock_nanosleep until an absolute time, no
warm-up, a number of activations.
All are read in ns: cyclictest's usual 1 us steps are cut off, not rounded, which makes its mean 0.5 us too
small; so it runs with -N
and a histogram of 1 ns bins, which is what jitterdebugger -N writes too.
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from figures import CannotMeasure, Findings
from programs import engine, program, run

T = TypeVar("T")
LIMIT = 1.03
PRIORITY = "98"
HISTOGRAM_NS = "1000000"


@dataclass(frozen=True)
class Slice:
    """One short measurement, ns."""

    median: float
    mean: float


def ours(folder: Path, cpu: int, interval_us: int, count: int) -> Slice:
    """A slice of the engine; raw samples give the exact median, as the drain thread writes them beside the
    measurement.
    """
    command = [
        engine(),
        "wakeup",
        "--go",
        "--cpu",
        str(cpu),
        "--interval-ns",
        str(interval_us * 1000),
        "--priority",
        PRIORITY,
    ]
    run([*command, "--warm-up-ns", "0", "--count", str(count), "--samples-dir", str(folder)])
    samples = np.fromfile(folder / "samples-0.i64", dtype="<i8", offset=64)
    if len(samples) == 0:
        raise CannotMeasure("the engine left no samples")
    return Slice(float(np.median(samples)), float(samples.mean()))


def cyclictest(folder: Path, cpu: int, interval_us: int, count: int) -> Slice:
    path = folder / "cyclictest.json"
    command = [
        program("cyclictest"),
        "-q",
        "-N",
        "-m",
        "-t",
        "1",
        "-a",
        str(cpu),
        "-p",
        PRIORITY,
        "-i",
        str(interval_us),
        "-l",
        str(count),
    ]
    run([*command, "-h", HISTOGRAM_NS, f"--json={path}"], cwd=folder)
    return from_json(json.loads(path.read_text())["thread"]["0"])


def jitterdebugger(folder: Path, cpu: int, interval_us: int, count: int) -> Slice:
    run(
        [
            program("jitterdebugger"),
            "-N",
            "-a",
            str(cpu),
            "-p",
            PRIORITY,
            "-i",
            str(interval_us),
            "-l",
            str(count),
            "-o",
            str(folder),
        ],
        cwd=folder,
    )
    return from_json(json.loads((folder / "results.json").read_text())["cpu"]["0"])


def from_json(series: dict[str, Any]) -> Slice:
    """Both write a histogram {ns: count} and an exact mean.

    What is above the histogram counts as above the median.
    """
    bins = sorted((int(value), int(count)) for value, count in series["histogram"].items() if int(count))
    total = int(series.get("cycles") or series.get("count") or 0)
    ranks = list(itertools.accumulate(count for _, count in bins))
    if not bins or ranks[-1] < total / 2:
        raise CannotMeasure(
            "more than half of the latencies are above 1 ms: this machine is too busy to compare on"
        )
    middle = next(value for (value, _), rank in zip(bins, ranks, strict=True) if rank * 2 >= total)
    return Slice(float(middle), float(series["avg"]))


CYCLICTEST, AGAIN = "cyclictest", "cyclictest again"
Tool = Callable[[Path, int, int, int], Slice]
TOOLS: dict[str, Tool] = {"rtgauge": ours, CYCLICTEST: cyclictest, "jitterdebugger": jitterdebugger}


def available(findings: Findings) -> list[str]:
    """Names of the tools that are here; jitterdebugger may be missing, which is noted, the others must be
    there (CannotMeasure).
    """
    engine()
    program(CYCLICTEST)
    try:
        program("jitterdebugger")
    except CannotMeasure as error:
        findings.missing.append(f"latency against jitterdebugger: {error}")
        return ["rtgauge", CYCLICTEST]
    return list(TOOLS)


def slice_of(name: str, cpu: int, interval_us: int, seconds: float) -> Slice:
    """A measurement of `seconds` by one tool, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as folder:
        return TOOLS[name](Path(folder), cpu, interval_us, max(100, round(seconds * 1e6 / interval_us)))


def ordered(names: list[T], number: int) -> list[T]:
    """The order of round `number`: random, so that none always follows the same other, and the same in every
    run.
    """
    return random.Random(number).sample(names, len(names))
