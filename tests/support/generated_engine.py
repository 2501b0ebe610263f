# SPDX-License-Identifier: MIT
"""Takes the engine's place where a measurement would take days: the stream of `wakeup` on many CPUs, as fast
as the host reads it.

Called as the engine is. What is not `wakeup` goes to the engine that $RTGAUGE_REAL_ENGINE names. The CPUs are
$RTGAUGE_GENERATED_CPUS (64).
After $RTGAUGE_GENERATED_HOLD seconds of the stream it waits to be stopped.
Each window has 1,000 latencies of a quiet machine: 2.5 us and more, log-normal, and two late ones.
"""

from __future__ import annotations

import json
import os
import select
import sys
from pathlib import Path

import numpy as np

from rtgauge.record.histogram import bin_of, encode

NS = 10**9
VARIANTS = 2_048
"""Different windows; a CPU has them in an order of its own."""
SAMPLES = 1_000
START_NS = 10**15
LOOK_EVERY = 64
"""Seconds of the stream between two looks for a command."""


def variants(seed: int) -> tuple[list[str], np.ndarray]:
    """The end of a window's line, and of each its count, minimum, maximum, sum and m2."""
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    figures = np.empty((VARIANTS, 5))
    for number in range(VARIANTS):
        values = (2_500 + rng.lognormal(7.3, 0.5, SAMPLES)).astype(np.int64)
        values[:2] = rng.integers(10_000, 60_000, 2)
        bins, counts = np.unique(bin_of(values), return_counts=True)
        text = encode(np.stack([np.diff(bins, prepend=0), counts], axis=1).ravel().tolist())
        m2 = float(((values - values.mean()) ** 2).sum())
        figures[number] = SAMPLES, values.min(), values.max(), values.sum(), m2
        extremes = f'"min_ns":{values.min()},"max_ns":{values.max()},"sum_ns":{values.sum()},"m2_ns2":{m2!r}'
        texts.append(f'"count":{SAMPLES},"missed":0,{extremes},"bins":"{text}","missed_bins":""}}')
    return texts, figures


def write_line(**line: object) -> None:
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")


def stop_requested() -> bool:
    if not select.select([0], [], [], 0)[0]:
        return False
    text = os.read(0, 4096)
    return not text or b"stop" in text


def wakeup(options: dict[str, str]) -> None:
    cpus = int(os.environ.get("RTGAUGE_GENERATED_CPUS", "64"))
    seconds = int(options["duration-ns"]) // NS
    texts, figures = variants(int(os.environ.get("RTGAUGE_GENERATED_SEED", "1")))
    write_line(
        type="hello", version=2, engine="0.1.0", probe="wakeup", pid=os.getpid(), boot_id="generated",
        kernel="6.12.0", machine="x86_64",
        capabilities=["wakeup"],
        parameters={"interval_ns": NS // SAMPLES, "duration_ns": seconds * NS, "policy": "fifo", "priority": 98},
        # those that are here: one that is not would be told to have gone offline
        cpus=sorted(os.sched_getaffinity(0)),
        cpus_not_measured=[],
        clock={"name": "CLOCK_MONOTONIC", "resolution_ns": 1}, dma_latency={"wanted_us": 0, "state": "set"},
    )  # fmt: skip
    for cpu in range(cpus):
        write_line(type="series", series=cpu, metric="latency", unit="ns", labels={"cpu": cpu})
    write_line(type="armed", time_ns=START_NS)
    sys.stdout.flush()
    if b"go" not in os.read(0, 4096):
        write_line(type="end", reason="stopped", status=0)
        return
    for cpu in range(cpus):
        write_line(type="started", series=cpu, start_ns=START_NS)
    finished, reason, hold = 0, "duration", int(os.environ.get("RTGAUGE_GENERATED_HOLD", "-1"))
    orders: list[list[int]] = [
        np.random.default_rng(cpu).permutation(VARIANTS).tolist() for cpu in range(cpus)
    ]
    heads = [f'{{"type":"window","series":{cpu},"phase":"measure","index":' for cpu in range(cpus)]
    for second in range(seconds):
        if second == hold:
            sys.stdout.flush()
            os.read(0, 4096)
            reason = "stopped"
            break
        if second % LOOK_EVERY == 0 and stop_requested():
            reason = "stopped"
            break
        start = START_NS + second * NS
        middle = f'{second},"start_ns":{start},"end_ns":{start + NS},'
        at = second % VARIANTS
        sys.stdout.write(
            "\n".join([head + middle + texts[order[at]] for head, order in zip(heads, orders, strict=True)])
            + "\n"
        )
        finished += 1
    whole, rest = divmod(finished, VARIANTS)
    for cpu, order in enumerate(orders):
        times = np.full(VARIANTS, whole)
        times[order[:rest]] += 1
        count, _, _, total, m2 = (times @ figures).tolist()
        figure = figures[times > 0]
        m2 += float(
            (times * figures[:, 0] * (figures[:, 3] / figures[:, 0] - total / max(count, 1)) ** 2).sum()
        )
        low, high = (int(figure[:, 1].min()), int(figure[:, 2].max())) if count else (None, None)
        write_line(
            type="summary", series=cpu, count=int(count), missed=0, min_ns=low, max_ns=high,
            sum_ns=int(total), m2_ns2=m2, lost=0, impossible=0,
            warm_up={"count": 0, "missed": 0, "max_ns": None},
            thread={"voluntary_switches": int(count), "involuntary_switches": 0, "minor_faults": 0, "major_faults": 0, "run_delay_ns": 0, "cpu_ns": 1},
        )  # fmt: skip
    write_line(type="end", reason=reason, status=0)


def main() -> None:
    """`wakeup`, and options with a value each."""
    wakeup(dict(word.removeprefix("--").split("=", 1) for word in sys.argv[2:] if "=" in word))


def write_engine(path: Path) -> Path:
    """A program at `path` that is called as the engine; gives the path."""
    here = Path(__file__).resolve()
    path.write_text(
        '#!/bin/sh\n[ "$1" = wakeup ] || exec "$RTGAUGE_REAL_ENGINE" '
        f'"$@"\nPYTHONPATH={here.parents[2] / "src"} exec {sys.executable} {here} "$@"\n'
    )
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    main()
