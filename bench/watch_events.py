# SPDX-License-Identifier: MIT
"""What each kernel event that `rtgauge watch` records costs a loop: the second table in docs/probes/watch.md.

    sudo python bench/watch_events.py [--rounds 100] [--cpu 1]

A loop of 1 kHz (bench/own_loops/loops.c, kind `calls`) makes six calls in each cycle, and logs its releases,
starts and ends. Each round switches each set of events on for a moment, in random order, and twice none.
A set's cost is the difference of its median to the mean of the two medians without events. Printed are the
medians of these differences, with an interval at 90 %.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from event_cost import BLOCKS, NONE, TRACEFS, EventSet, recorded
from watch_cost import SOURCE, medians

WINDOW_S = 0.2
CALLS = 6
NAMES = ("clock_nanosleep", "write", "read", "futex", "openat", "ioctl", "ppoll", "epoll_wait")
"""The loop makes the first two; `watch` records more."""
BY_NAME = tuple(f"syscalls/sys_{edge}_{name}" for name in NAMES for edge in ("enter", "exit"))
ALL_CALLS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit")
SCHEDULER = ("sched/sched_waking", "sched/sched_switch")
REST = ("timer/hrtimer_start", "signal/signal_deliver", "sched/sched_process_fork")
OF_60_CALLS = "||".join(f"id=={number}" for number in (230, *range(100, 158), 1))
"""As `watch` filters the calls of a 32-bit program. The loop makes the first and the last on x86-64."""
BY_KERNEL = (("set_event_pid", "{tid}", ""),)


def filters(events: tuple[str, ...], condition: str) -> tuple[tuple[str, str, str], ...]:
    """The same filter for each of the events."""
    return tuple((f"events/{event}/filter", condition, "0") for event in events)


def ranges(events: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    """The filters that pass a range of threads."""

    def inside(field: str) -> str:
        return f"{field}>={{tid}}&&{field}<={{tid}}"

    fields = {"sched/sched_waking": inside("pid")}
    fields["sched/sched_switch"] = f"({inside('prev_pid')})||({inside('next_pid')})"
    return sum((filters((event,), fields.get(event, inside("common_pid"))) for event in events), ())


WATCHED = (*SCHEDULER, *REST, *BY_NAME)
SETS = {
    NONE: EventSet(),
    "no event (the error of this measurement)": EventSet(),
    "all, threads by filters": EventSet(WATCHED, ranges(WATCHED)),
    "all, threads by set_event_pid": EventSet(WATCHED, BY_KERNEL),
    "all, set_event_pid, events of all calls": EventSet(
        (*SCHEDULER, *REST, *ALL_CALLS), (*BY_KERNEL, *filters(ALL_CALLS, OF_60_CALLS))
    ),
    "all, threads by filters, clock x86-tsc": EventSet(
        WATCHED, (*ranges(WATCHED), ("trace_clock", "x86-tsc", "mono"))
    ),
    **{event: EventSet((event,), ranges((event,))) for event in (*SCHEDULER, *REST)},
    "calls by name": EventSet(BY_NAME, ranges(BY_NAME)),
    "all calls, filtered": EventSet(ALL_CALLS, filters(ALL_CALLS, OF_60_CALLS)),
    "calls of others by name": EventSet(BY_NAME, filters(BY_NAME, "common_pid==1")),
}


def windows(instance: Path, tid: int, rounds: int) -> list[dict[str, tuple[int, int]]]:
    """Begin and end (CLOCK_MONOTONIC, ns) of each set's window in each round."""
    found: list[dict[str, tuple[int, int]]] = []
    for _ in range(rounds):
        names = random.sample(list(SETS), len(SETS))
        spans: dict[str, tuple[int, int]] = {}
        for name in names:
            with recorded(instance, SETS[name], tid):
                begin_ns = time.monotonic_ns()
                time.sleep(WINDOW_S)
                spans[name] = begin_ns, time.monotonic_ns()
        found.append(spans)
    return found


def cost(values_us: list[dict[str, float]], name: str, other: str) -> str:
    """The cost of a set with its interval; other: the second window without events."""
    costs_ns = [1000 * (found[name] - (found[NONE] + found[other]) / 2) for found in values_us]
    blocks = sorted(statistics.median(random.choices(costs_ns, k=len(costs_ns))) for _ in range(BLOCKS))
    low_ns, high_ns = blocks[BLOCKS // 20], blocks[-BLOCKS // 20]
    return f"{statistics.median(costs_ns):.0f} ns ({low_ns:.0f} to {high_ns:.0f})"


def measure(instance: Path, folder: Path, rounds: int, cpu: int) -> None:
    """Measure, and print the table."""
    log = folder / "log"
    subprocess.run(["gcc", "-O2", "-pthread", SOURCE, "-o", folder / "loops"], check=True)
    command = [folder / "loops", "calls", "--log", log, "--period-us", 1000, "--work-us", 2]
    command += ["--calls", CALLS, "--fifo", 40, "--cpu", cpu]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as loop:
        try:
            assert loop.stdout is not None
            loop.stdout.readline()
            spans = windows(instance, loop.pid, rounds)
        finally:
            loop.terminate()
    found = [{name: medians(log, *span) for name, span in one.items()} for one in spans]
    latency, work = ([{name: pair[i] for name, pair in one.items()} for one in found] for i in (0, 1))
    bare = [np.median([one[NONE] for one in values]) for values in (latency, work)]
    print(
        f"{rounds} rounds, load {os.getloadavg()[0]:.0f}; latency {bare[0]:.1f} us, work {bare[1]:.1f} us\n"
    )
    print("| events | added to the latency | added to the cycle |\n|---|---|---|")
    second = list(SETS)[1]
    for name in list(SETS)[1:]:
        other = NONE if name == second else second
        print(f"| {name} | {cost(latency, name, other)} | {cost(work, name, other)} |")


def main() -> None:
    """Measure in an instance of tracefs, which is removed again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    instance = TRACEFS / "instances" / f"rtgauge-bench-{os.getpid()}"
    instance.mkdir()
    try:
        (instance / "trace_options").write_text("norecord-cmd")
        (instance / "trace_clock").write_text("mono")
        with tempfile.TemporaryDirectory(prefix="rtgauge-watch-events-") as folder:
            measure(instance, Path(folder), options.rounds, options.cpu)
    finally:
        instance.rmdir()


if __name__ == "__main__":
    main()
