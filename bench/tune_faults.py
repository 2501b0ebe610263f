# SPDX-License-Identifier: MIT
"""How often `rtgauge tune` finds a planted fault, keeps nothing if there is nothing to gain, and leaves the
machine as it was after kill -9.

Run as root on a machine with at least two CPUs that nobody else uses: `python bench/tune_faults.py
[--tries N] [--kills N]`. The fault is a real-time task of priority 99 on the measured CPU, which computes for
50 ms every 2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RTGAUGE = [sys.executable, "-m", "rtgauge"]
CPU = 1
HOG = f"""
import os, time
os.sched_setaffinity(0, {{{CPU}}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
while True:
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
    time.sleep(2)
"""
TUNE = [
    "tune", "--cpus", str(CPU), "--duration", "5s", "--budget", "10min", "--load", "idle",
    "--confirm-load", "cpu", "--wait", "20min", "--json",
]  # fmt: skip
WATCHED = (
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/soft_watchdog",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/irq/default_smp_affinity",
    "/sys/devices/virtual/workqueue/cpumask",
)


@contextmanager
def hog() -> Generator[int]:
    """The fault; gives its pid."""
    process = subprocess.Popen([sys.executable, "-c", HOG])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def tuned(require: str, *words: str) -> dict[str, Any]:
    """The document of one tuning."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [*RTGAUGE, *TUNE, "--require", require, "--out", out, *words],
            stdout=subprocess.PIPE,
            check=False,
        )
        return json.loads(done.stdout)


def state(pid: int) -> list[object]:
    """What a tuning changes: settings, the affinity of interrupts and of the fault."""
    files = [*map(Path, WATCHED), *sorted(Path("/proc/irq").glob("[0-9]*/smp_affinity_list"))]
    texts = [path.read_text() if path.exists() else None for path in files]
    return [*texts, os.sched_getaffinity(pid)]


def say(number: int, result: dict[str, Any], names: list[str]) -> None:
    """One line about a try."""
    print(
        f"  {number + 1}: {result['outcome']}, kept {', '.join(names) or 'nothing'}, {result['runs']} runs",
        flush=True,
    )


def finds(tries: int) -> None:
    """The fault: found and mended?"""
    mended, hidden_away = 0, 0
    for number in range(tries):
        with hog():
            result = tuned("period=1ms latency<=2ms hardness=99%", "--seed", str(number))
        names = [kept["rule"] for kept in result["kept"]]
        mended += "rt-tasks-elsewhere" in names
        hidden_away += bool(set(names) - {"rt-tasks-elsewhere"})
        say(number, result, names)
    print(f"fault: mended in {mended} of {tries}; another setting kept in {hidden_away}")


def nothing(tries: int) -> None:
    """A bound that no setting reaches: nothing is to be kept."""
    kept = 0
    for number in range(tries):
        result = tuned("period=1ms latency<=1us", "--seed", str(number), "--without", "isolated-cpus")
        names = [each["rule"] for each in result["kept"]]
        kept += bool(names)
        say(number, result, names)
    print(f"nothing to gain: something kept in {kept} of {tries}")


def kills(tries: int) -> None:
    """Kill -9 at a random moment: is everything put back by the next start?"""
    generator, back = random.Random(5), 0
    with hog() as pid:
        before = state(pid)
        for number in range(tries):
            with tempfile.TemporaryDirectory() as out:
                process = subprocess.Popen(
                    [
                        *RTGAUGE,
                        *TUNE,
                        "--duration",
                        "1s",
                        "--require",
                        "period=1ms latency<=2ms hardness=99%",
                        "--out",
                        out,
                    ],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                while not any(Path(out).glob("*/steps/*/step.json")):
                    time.sleep(0.05)
                time.sleep(generator.uniform(0, 10))
                process.kill()
                process.wait()
                subprocess.run([*RTGAUGE, "restore"], stdout=subprocess.DEVNULL, check=False)
            same = state(pid) == before
            back += same
            print(f"  {number + 1}: {'put back' if same else 'DIFFERS'}")
    print(f"killed: everything put back in {back} of {tries}")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=10)
    parser.add_argument("--nothing", type=int, default=10)
    parser.add_argument("--kills", type=int, default=50)
    given = parser.parse_args()
    for part, tries in ((finds, given.tries), (nothing, given.nothing), (kills, given.kills)):
        if tries:
            part(tries)


if __name__ == "__main__":
    main()
