# SPDX-License-Identifier: MIT
"""What counting adds to a switch of the counted thread: round trips through pipes to another process on the
same CPU, in turn with and without `work`. In each, the counted process is switched out once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from figures import CannotMeasure, Figure, Findings
from programs import engine, say

ROUNDS = 25
TRIPS = 2_000
LONGEST_NS = 60 * 10**9
TripToOther = tuple[int, int]


def measure(chosen: argparse.Namespace) -> Findings:
    """Count this process, which stays on the chosen CPU; the engine runs on others."""
    others = sorted(os.sched_getaffinity(0) - {chosen.cpu})
    if os.geteuid() or not others:
        raise CannotMeasure("counting needs root, and the engine another CPU")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {chosen.cpu})
    say(f"  {ROUNDS} rounds of {TRIPS} round trips, with and without")
    added_us: list[float] = []
    try:
        with _answering() as other:
            for _ in range(ROUNDS):
                bare_ns = _trip_ns(other)
                with _counted(others[0]):
                    added_us.append((_trip_ns(other) - bare_ns) / 1000)
    finally:
        os.sched_setaffinity(0, before)
    return Findings([Figure("added to a switch by rtgauge work", added_us, "us")])


@contextmanager
def _answering() -> Generator[TripToOther]:
    """A process that answers each byte with one."""
    (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(to_write)
        while os.read(to_read, 1):
            os.write(from_write, b".")
        os._exit(0)
    try:
        yield to_write, from_read
    finally:
        for end in (to_read, to_write, from_read, from_write):
            os.close(end)
        os.waitpid(child, 0)


def _trip_ns(other: TripToOther) -> float:
    """The median time of a round trip."""
    to_write, from_read = other
    times_ns: list[int] = []
    for _ in range(TRIPS):
        begin_ns = time.perf_counter_ns()
        os.write(to_write, b".")
        os.read(from_read, 1)
        times_ns.append(time.perf_counter_ns() - begin_ns)
    return statistics.median(times_ns)


@contextmanager
def _counted(cpu: int) -> Generator[None]:
    """Count this process, with an engine on this CPU."""
    words = ["taskset", "-c", str(cpu), engine(), "work", "--pid", str(os.getpid())]
    words += ["--duration-ns", str(LONGEST_NS)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        if b'"work"' not in (first := program.stdout.readline()):
            raise CannotMeasure(first.decode(errors="replace"))
        reader = threading.Thread(target=program.stdout.read)
        reader.start()
        try:
            yield
        finally:
            program.stdin.close()
            reader.join()
