# SPDX-License-Identifier: MIT
"""How long summarising raw samples takes, on one core, and how much memory.

The samples are made: latencies of a loaded machine at a 20 us interval, lognormal around 3.5 us with a Pareto
tail. The whole process is
measured, imports included, with the file in the page cache. Runs alone too: `python
bench/summarise_samples.py [MILLIONS]`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures import CannotMeasure, Figure, Findings, line
from programs import last_cpu, say

INTERVAL_NS = 20_000
MILLIONS = 100
TIMES = 5
SECONDS_LIMIT, GIB_LIMIT = 1.5, 0.8
CODE = """
import os, sys
from pathlib import Path
os.sched_setaffinity(0, {int(sys.argv[2])})
from rtgauge.record.samples_summary import summarise_samples
assert summarise_samples(Path(sys.argv[1])).distribution.count
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def make(path: Path, millions: int) -> None:
    """Writes `millions` million samples (8 MB each) as the engine would."""
    from rtgauge.record.samples import SamplesHeader

    rng = np.random.default_rng(1)
    with path.open("wb") as file:
        file.write(SamplesHeader(0, 0, INTERVAL_NS, 10**12, 10**9).pack())
        for _ in range(millions):
            values = rng.lognormal(np.log(3_500), 0.35, 1_000_000)
            tail = rng.random(len(values)) < 1e-4
            values[tail] *= rng.pareto(1.5, tail.sum()) * 3 + 1
            file.write(values.astype("<i8").tobytes())


def folder_for(size: int) -> str:
    """A folder with room for `size` bytes, and for as much again."""
    for folder in (tempfile.gettempdir(), "/var/tmp", "."):
        if shutil.disk_usage(folder).free > 2 * size:
            return folder
    raise CannotMeasure(f"no room for {size / 1e9:.1f} GB of samples: name a folder that has it in TMPDIR")


def once(path: Path, cpu: int) -> tuple[float, float]:
    """Seconds and GiB (largest resident) of one process that summarises `path`, held on one CPU."""
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", CODE, str(path), str(cpu)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        answer, complaint = process.communicate()
        took = time.perf_counter() - begin
    if process.returncode:
        raise CannotMeasure(
            f"summarising failed: {complaint.decode(errors='replace').strip().splitlines()[-1]}"
        )
    return took, int(answer) / (1 << 20)


def measure(cpu: int, millions: int = MILLIONS) -> Findings:
    size = millions * 8_000_000
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-", dir=folder_for(size)) as folder:
        path = Path(folder) / "samples-0.i64"
        say(f"  making {millions} million samples ({size / 1e9:.1f} GB, removed afterwards)")
        make(path, millions)
        with path.open("rb") as file:  # into the page cache
            while file.read(1 << 24):
                pass
        taken: list[tuple[float, float]] = []
        for number in range(TIMES):
            taken.append(once(path, cpu))
            say(f"  {number + 1} of {TIMES}: {taken[-1][0]:.2f} s")
    scale = millions / MILLIONS
    name = f"summarising {millions} million samples, one core"
    return Findings(
        [
            Figure(name, [seconds for seconds, _ in taken], "s", at_most=SECONDS_LIMIT * scale),
            Figure(f"{name}, resident", [gib for _, gib in taken], "GiB", at_most=GIB_LIMIT),
        ]
    )


def main() -> None:
    for figure in measure(last_cpu(), int(sys.argv[1]) if len(sys.argv) > 1 else MILLIONS).figures:
        print(line(figure))


if __name__ == "__main__":
    main()
