# SPDX-License-Identifier: MIT
"""Loops as people write them in Python: KIND --log FILE [--period-us N] [--work-us N] [--long-us N]
[--long-every N] [--fifo N] [--cpu N].

Each keeps its own account in memory and writes it at SIGTERM: four little-endian 64-bit numbers a cycle, as
cycle_log.h says.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
import time
from array import array
from pathlib import Path

RUN, CAUGHT_UP = 0, 1
LOG = array("q")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--log", type=Path, required=True)
    for name, default in (
        ("period-us", 10_000),
        ("work-us", 500),
        ("long-us", 35_000),
        ("long-every", 0),
        ("fifo", 0),
        ("cpu", -1),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


OPTIONS = parse()
PERIOD_NS = OPTIONS.period_us * 1000


def work() -> None:
    cycle = len(LOG) // 4 + 1
    long = OPTIONS.long_every and cycle % OPTIONS.long_every == 0
    end_ns = time.monotonic_ns() + (OPTIONS.long_us if long else OPTIONS.work_us) * 1000
    while time.monotonic_ns() < end_ns:
        pass


def cycle(due_ns: int, fate: int) -> None:
    start_ns = time.monotonic_ns()
    work()
    LOG.extend((due_ns, start_ns, time.monotonic_ns(), fate))


def be_real_time(name: str) -> None:
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
    if OPTIONS.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(OPTIONS.fifo))
    if OPTIONS.cpu >= 0:
        os.sched_setaffinity(0, [OPTIONS.cpu])


def sleeping_loop() -> None:
    """Sleep for the time left, if there is any."""
    be_real_time(OPTIONS.kind)
    due_ns = time.monotonic_ns()
    while True:
        due_ns += PERIOD_NS
        left_ns = due_ns - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)
        cycle(due_ns, RUN if left_ns > 0 else CAUGHT_UP)


def event_loop() -> None:
    """Wait for an event with a time-out."""
    be_real_time(OPTIONS.kind)
    stop = threading.Event()
    due_ns = time.monotonic_ns() + PERIOD_NS
    while True:
        left_ns = due_ns - time.monotonic_ns()
        if stop.wait(max(0, left_ns) / 1e9):
            break
        cycle(due_ns, RUN if left_ns > 0 else CAUGHT_UP)
        due_ns += PERIOD_NS


async def coroutine() -> None:
    due_ns = time.monotonic_ns()
    while True:
        due_ns += PERIOD_NS
        left_ns = due_ns - time.monotonic_ns()
        await asyncio.sleep(max(0, left_ns) / 1e9)
        cycle(due_ns, RUN if left_ns > 0 else CAUGHT_UP)


def write_log(*_: object) -> None:
    OPTIONS.log.write_bytes(LOG.tobytes())
    os._exit(0)


def main() -> None:
    signal.signal(signal.SIGTERM, write_log)
    if OPTIONS.kind == "asyncio":
        be_real_time(OPTIONS.kind)
        print("ready", flush=True)
        asyncio.run(coroutine())
    elif OPTIONS.kind == "py-threads":
        threading.Thread(target=sleeping_loop, daemon=True).start()
        print("ready", flush=True)
        while True:
            signal.pause()
    elif OPTIONS.kind == "py-event":
        threading.Thread(target=event_loop, daemon=True).start()
        print("ready", flush=True)
        while True:
            signal.pause()
    sys.exit(2)


if __name__ == "__main__":
    main()
