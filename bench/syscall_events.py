# SPDX-License-Identifier: MIT
"""What the events of `rtgauge watch` cost a program that makes many system calls: the figures in
docs/probes/watch.md.

    sudo python bench/syscall_events.py [--rounds 100]

CPU time of getppid, in rounds in random order: without events, with sys_enter, and with sys_exit too, as the
watched program and as another one. Medians of the differences within a round, with an interval at 90 %. A
round in which another program records system calls does not count.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

CALLS = 20_000
BLOCKS = 1_000
"""For the interval."""
ENTER, EXIT = "raw_syscalls/sys_enter", "raw_syscalls/sys_exit"
SETS = {
    "sys_enter, watched": ((ENTER,), True),
    "sys_enter and sys_exit, watched": ((ENTER, EXIT), True),
    "sys_enter, another program": ((ENTER,), False),
    "sys_enter and sys_exit, another program": ((ENTER, EXIT), False),
}
GETPPID = ctypes.CDLL(None).getppid


def call_ns() -> float:
    """CPU time of one call."""
    begin_ns = time.thread_time_ns()
    for _ in range(CALLS):
        GETPPID()
    return (time.thread_time_ns() - begin_ns) / CALLS


def with_events(instance: Path, events: tuple[str, ...], pid: int) -> float:
    """The same while these events of a program are recorded."""
    instance.joinpath("set_event_pid").write_text(str(pid))
    files = [instance / "events" / event / "enable" for event in events]
    for file in files:
        file.write_text("1")
    try:
        return call_ns()
    finally:
        for file in files:
            file.write_text("0")


def recorded(instances: Path) -> bool:
    """Whether somebody else records system calls now."""
    return any(
        file.read_text().strip() == "1" for file in instances.glob("*/events/raw_syscalls/sys_*/enable")
    )


def measure(instances: Path, rounds: int) -> None:
    """Print the table."""
    instance = instances / f"rtgauge-bench-{os.getpid()}"
    instance.mkdir()
    costs: dict[str, list[float]] = {name: [] for name in SETS}
    bare: list[float] = []
    try:
        while len(bare) < rounds:
            if recorded(instances):
                time.sleep(1)
                continue
            without_ns = call_ns()
            found_ns: dict[str, float] = {}
            for name in random.sample(list(SETS), len(SETS)):
                events, watched = SETS[name]
                found_ns[name] = with_events(instance, events, os.getpid() if watched else os.getppid())
            if not recorded(instances):
                bare.append(without_ns)
                for name, cost_ns in found_ns.items():
                    costs[name].append(cost_ns - without_ns)
    finally:
        instance.rmdir()
    print(f"a call: {statistics.median(bare):.0f} ns of CPU time; {rounds} rounds of {CALLS:,} calls")
    for name, found in costs.items():
        medians = sorted(statistics.median(random.choices(found, k=rounds)) for _ in range(BLOCKS))
        low, high = medians[BLOCKS // 20], medians[-BLOCKS // 20]
        print(f"{name}: {statistics.median(found):+.0f} ns ({low:.0f} to {high:.0f})")


def main() -> None:
    """Mount tracefs, and measure."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rounds", type=int, default=100)
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tracefs", "none", folder], check=True)
        try:
            measure(Path(folder) / "instances", rounds)
        finally:
            subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    main()
