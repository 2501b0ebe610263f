# SPDX-License-Identifier: MIT
"""What each event that the recorder records costs the recorded loop: the table in ext/recorder/README.md.

    sudo .venv/bin/python bench/recorder_events.py [--rounds 60] [--cpu 1]

A loop of 1 kHz (bench/own_loops/loops.c, kind `calls`) makes four calls in each cycle and logs its releases,
starts and ends, under `rtgauge recorder run`. Each round switches each set of events off for a moment, in
random order, and twice nothing. What a set costs is the mean of the two medians with all events, less its own
median. Printed are the medians of these differences, with an interval at 90 %.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from event_cost import BLOCKS, TRACEFS
from watch_cost import SOURCE, medians

RTGAUGE = Path(sys.executable).with_name("rtgauge")
WINDOW_S, SETTLE_S = 0.2, 0.02
CALLS = 4
ALL, AGAIN = "nothing", "nothing (the error of this measurement)"
SETS = {
    ALL: (),
    AGAIN: (),
    "all events": ("*/*",),
    "sched_switch": ("sched/sched_switch",),
    "sched_waking": ("sched/sched_waking",),
    "sched_wakeup": ("sched/sched_wakeup",),
    "sched_stat_runtime": ("sched/sched_stat_runtime",),
    "cpu_idle": ("power/cpu_idle",),
    "the timer's interrupt": ("irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit"),
    "calls": ("syscalls/*",),
    "hrtimer_start": ("timer/hrtimer_start",),
    "dynamic events of the scheduler": ("rtgauge_*/*",),
}
"""The events that a set switches off, in all instances of the recorder."""


def files(instances: list[Path], events: tuple[str, ...]) -> list[Path]:
    """The `enable` files of single events that are on now."""
    paths = [path for each in instances for event in events for path in each.glob(f"events/{event}/enable")]
    return [path for path in paths if path.read_text()[0] == "1"]


def windows(instances: list[Path], rounds: int) -> list[dict[str, tuple[int, int]]]:
    """Begin and end (CLOCK_MONOTONIC, ns) of each set's window in each round."""
    chosen = {name: files(instances, events) for name, events in SETS.items()}
    for name in [name for name, paths in chosen.items() if SETS[name] and not paths]:
        del chosen[name]
        print(f"this kernel does not record: {name}")
    found: list[dict[str, tuple[int, int]]] = []
    for _ in range(rounds):
        spans: dict[str, tuple[int, int]] = {}
        for name in random.sample(list(chosen), len(chosen)):
            for path in chosen[name]:
                path.write_text("0")
            time.sleep(SETTLE_S)
            begin_ns = time.monotonic_ns()
            time.sleep(WINDOW_S)
            spans[name] = begin_ns, time.monotonic_ns()
            for path in chosen[name]:
                path.write_text("1")
        found.append(spans)
    return found


def cost(values_us: list[dict[str, float]], name: str) -> str:
    """The cost of a set with its interval."""
    costs_ns = [1000 * ((one[ALL] + one[AGAIN]) / 2 - one[name]) for one in values_us]
    if name == AGAIN:
        costs_ns = [1000 * (one[ALL] - one[AGAIN]) for one in values_us]
    blocks = sorted(statistics.median(random.choices(costs_ns, k=len(costs_ns))) for _ in range(BLOCKS))
    low_ns, high_ns = blocks[BLOCKS // 20], blocks[-BLOCKS // 20]
    return f"{statistics.median(costs_ns):.0f} ns ({low_ns:.0f} to {high_ns:.0f})"


def measure(folder: Path, rounds: int, cpu: int) -> None:
    """Measure, and print the table."""
    log = folder / "log"
    subprocess.run(["gcc", "-O2", "-pthread", SOURCE, "-o", folder / "loops"], check=True)
    command = [folder / "loops", "calls", "--log", log, "--period-us", 1000, "--work-us", 2]
    command += ["--calls", CALLS, "--fifo", 40, "--cpu", cpu]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as loop:
        assert loop.stdout is not None
        loop.stdout.readline()
        words = [
            str(RTGAUGE),
            "recorder",
            "run",
            "--pid",
            str(loop.pid),
            "--require",
            "period=1ms latency<=10s",
        ]
        recorder = subprocess.Popen([*words, "--folder", str(folder / "folder")], stdout=subprocess.DEVNULL)
        try:
            found: list[Path] = []
            while len(found) < 2:
                if recorder.poll() is not None:
                    raise SystemExit("the recorder did not start")
                time.sleep(1)
                found = sorted((TRACEFS / "instances").glob(f"rtgauge-recorder-{recorder.pid}-*"))
            time.sleep(8)  # it measures
            spans = windows(found, rounds)
        finally:
            recorder.terminate()
            recorder.wait()
            loop.terminate()
    values = [{name: medians(log, *span) for name, span in one.items()} for one in spans]
    latency, work = ([{name: pair[i] for name, pair in one.items()} for one in values] for i in (0, 1))
    bare = [np.median([one[ALL] for one in each]) for each in (latency, work)]
    print(f"{rounds} rounds, load {os.getloadavg()[0]:.0f}; latency {bare[0]:.1f} us, work {bare[1]:.1f} us")
    print("\n| events | of the latency | of the cycle |\n|---|--:|--:|")
    for name in [name for name in values[0] if name != ALL]:
        print(f"| {name} | {cost(latency, name)} | {cost(work, name)} |")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rtgauge-recorder-events-") as folder:
        measure(Path(folder), options.rounds, options.cpu)


if __name__ == "__main__":
    main()
