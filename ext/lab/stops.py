# SPDX-License-Identifier: MIT
"""Stops a guest's CPUs from outside now and then, like a busy hypervisor, for `rtgauge selftest`."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from rtgauge.errors import MeasureError
from rtgauge.program_run import run_program
from rtgauge.units import NS_PER_S
from rtgauge_ext.lab.guest import BootedGuest
from rtgauge_ext.lab.running_guests import find_running
from rtgauge_ext.lab.ssh import ssh_command

EVERY_S = 1.0
LOOKS = 10
"""The number of readings of the guest's clock. The fastest reading is used."""
STOP = """
import os, signal, sys, time
pid, length_s = int(sys.argv[1]), float(sys.argv[2])
try:
    os.kill(pid, signal.SIGSTOP)
    start_ns = time.monotonic_ns()
    time.sleep(length_s)
finally:
    end_ns = time.monotonic_ns()
    os.kill(pid, signal.SIGCONT)
print(start_ns, end_ns)
"""
"""This program runs in a separate process, so that the guest continues even if rtgauge is killed."""


def clock_offset_ns(running: BootedGuest) -> int:
    """Return how far (ns) the guest's CLOCK_MONOTONIC is ahead of this machine's, to about 10 ms
    (/proc/uptime).

    Raises MeasureError if the guest does not answer.
    """
    looks = f"i=0; while [ $i -lt {LOOKS} ]; do cat /proc/uptime; sleep 0.1; i=$((i + 1)); done"
    with subprocess.Popen(
        [*ssh_command(running), looks], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        offsets = [
            round(float(line.split()[0]) * NS_PER_S) - time.monotonic_ns() for line in process.stdout or ()
        ]
    if not offsets:
        raise MeasureError(f"lab:{running.name} did not answer; check that it is running: rtgauge lab list")
    return max(offsets)


@contextmanager
def stopped_now_and_then(name: str, length_s: float) -> Generator[list[tuple[int, int]]]:
    """Stop the guest about every `EVERY_S` seconds, each time for `length_s`, until the context ends.

    Yields a list to which each stop adds its (start, end), in ns of this machine's CLOCK_MONOTONIC.
    """
    stops: list[tuple[int, int]] = []
    over = threading.Event()

    def stop_and_wait() -> None:
        while not over.wait(EVERY_S * random.uniform(0.75, 1.25)):  # noqa: S311 - no secret
            running = find_running(name)
            if running is None:
                continue
            completed = run_program([sys.executable, "-I", "-c", STOP, str(running.pid), str(length_s)])
            if completed.returncode == 0:
                start_ns, end_ns = map(int, completed.stdout.split())
                stops.append((start_ns, end_ns))

    thread = threading.Thread(target=stop_and_wait, name="stops", daemon=True)
    thread.start()
    try:
        yield stops
    finally:
        over.set()
        thread.join()
