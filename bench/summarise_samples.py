# SPDX-License-Identifier: MIT
"""How long summarising raw samples takes, on one core, and how much memory: `python bench/summarise_samples.py DIR [MILLIONS]`.

Makes a file of 100 million samples in DIR (800 MB; kept and used again), latencies of a loaded machine at a 20 us
interval: lognormal around 3.5 us with a Pareto tail. The whole process is measured, imports included, with the file in the page cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from rtgauge.record.samples import SamplesHeader

INTERVAL_NS = 20_000
SECONDS_LIMIT, MIB_LIMIT = 1.5, 0.8 * 1024


def make(path: Path, millions: int) -> None:
    rng = np.random.default_rng(1)
    with path.open("wb") as file:
        file.write(SamplesHeader(0, 0, INTERVAL_NS, 10**12, 10**9).pack())
        for _ in range(millions):
            values = rng.lognormal(np.log(3_500), 0.35, 1_000_000)
            tail = rng.random(len(values)) < 1e-4
            values[tail] *= rng.pareto(1.5, tail.sum()) * 3 + 1
            file.write(values.astype("<i8").tobytes())


def main() -> None:
    folder, millions = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    path = folder / f"samples-{millions}M.i64"
    if not path.exists():
        make(path, millions)
    with path.open("rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    code = f"from pathlib import Path; from rtgauge.record.samples_summary import summarise_samples; print(summarise_samples(Path({str(path)!r})).distribution)"
    cpu = max(os.sched_getaffinity(0))
    times: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        times.append(time.perf_counter() - begin)
    mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(answer.stdout.strip())
    print(f"{millions} million samples: {sorted(times)[2]:.2f} s (median of 5; best {min(times):.2f}, worst {max(times):.2f}) on one core, {mib:.0f} MiB")
    print(f"limits for 100 million: {SECONDS_LIMIT} s, {MIB_LIMIT:.0f} MiB")


if __name__ == "__main__":
    main()
