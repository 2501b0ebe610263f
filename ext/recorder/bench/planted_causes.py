# SPDX-License-Identifier: MIT
"""Makes a program late by eight causes in turn, one a minute, under `rtgauge recorder run`, and prints which
of them the recorder kept and named.

    sudo env PYTHONPATH=. .venv/bin/python ext/recorder/bench/planted_causes.py FOLDER [--number 120]

The truth is by the clocks of the programs that plant, CLOCK_MONOTONIC. A cause is kept if a kept moment
overlaps it, and named if the one that overlaps it longest has its name, from the recorder or from the
explanation that `import` makes of it. An injection lasts longer than a
period and the bound together, so that the program is late whenever it begins.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge_ext.recorder.folder import RecorderFolder
from rtgauge_ext.recorder.keeping import UNNAMED
from rtgauge_ext.recorder.naming import culprit_of
from rtgauge_ext.selftest.stall_program import RECEIVERS, broadcaster, receivers_of_packet

if TYPE_CHECKING:
    from collections.abc import Callable

CPU, OTHER_CPU = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
RTGAUGE = str(Path(sys.executable).with_name("rtgauge"))
LIBC = ctypes.CDLL(None, use_errno=True)
PROGRAM_PRIORITY, HIGHER, MIDDLE, LOWER = 40, 60, 30, 20
PERIOD_NS, WORK_NS = 4_000_000, 50_000
REQUIRE = "period=4ms latency<=4ms response<=4ms"
SHORTEST_NS, LONGEST_NS = 9_000_000, 12_000_000
PAGES, SOCKETS, WRITTEN = 5_000, 8_000, 100_000
SETTLE_CYCLES = 60
"""Cycles between the preparation of a cause within the program and the cause."""
PDEATHSIG = 1
EXPECTED = {
    "task of a higher priority": r"\bcause-hog\b",
    "held lock": r"cause-owner with the lock",
    "priority inversion": r"\bcause-third\b",
    "SIGSTOP": r"stopped",
    "network softirq": r"softirq NET_RX",
    "page faults": r"page fault",
    "fdatasync": r"fdatasync",
    "own work": r"victim itself",
}
"""Cause -> a pattern on the culprit's words. The last three happen within the program."""
INSIDE = list(EXPECTED)[5:]


def now_ns() -> int:
    """CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def sleep_until(due_ns: int) -> None:
    """Sleep; not at all if it is late."""
    if (left := due_ns - now_ns()) > 0:
        time.sleep(left / 1e9)


def compute(ns: int) -> int:
    """Work for so long; gives when it began."""
    begin = now_ns()
    while now_ns() - begin < ns:
        pass
    return begin


def become(name: str, priority: int, cpu: int = CPU) -> None:
    """Name, SCHED_FIFO priority (0: fair) and CPU of this thread."""
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
    os.sched_setaffinity(0, [cpu])
    os.sched_setscheduler(0, os.SCHED_FIFO if priority else os.SCHED_OTHER, os.sched_param(priority))


class Mutex:
    """A mutex of glibc in memory that processes share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))
        attributes = ctypes.create_string_buffer(16)
        LIBC.pthread_mutexattr_init(attributes)
        LIBC.pthread_mutexattr_setpshared(attributes, 1)
        LIBC.pthread_mutex_init(self._address, attributes)

    def __enter__(self) -> None:
        LIBC.pthread_mutex_lock(self._address)

    def __exit__(self, *_: object) -> None:
        LIBC.pthread_mutex_unlock(self._address)


class Planted:
    """The programs that plant, each a process that waits for a byte, and the program that is recorded."""

    def __init__(self, folder: Path) -> None:
        """Start them."""
        self._folder = folder
        self._truth = os.open(folder / "truth", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        self._data = os.urandom(WRITTEN)
        self._mutex = Mutex()
        self._asked, self._ask = os.pipe()
        self._pids: list[int] = []
        planters = (self._hog, self._own_lock, self._invert, self._stop, self._send)
        self._pipes = dict(zip(EXPECTED, map(self._child, planters), strict=False))
        self._child(self._third)
        self._child(lambda _wait: self._victim())
        self.victim = self._pids[-1]

    def plant(self, cause: str) -> None:
        """Plant a cause."""
        if cause in INSIDE:
            self._shared[0] = 1 + INSIDE.index(cause)
        else:
            os.write(self._pipes[cause], b"x")

    def close(self) -> None:
        """End all of them."""
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _child(self, run: Callable[[Callable[[], None]], None]) -> int:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            LIBC.prctl(PDEATHSIG, signal.SIGKILL)
            os.close(write)
            run(lambda: None if os.read(read, 1) else os._exit(0))
            os._exit(0)
        os.close(read)
        self._pids.append(pid)
        return write

    def _note(self, cause: str, begin_ns: int) -> None:
        os.write(self._truth, (json.dumps([cause, begin_ns, now_ns()]) + "\n").encode())

    def _hog(self, wait: Callable[[], None]) -> None:
        become("cause-hog", HIGHER)
        while True:
            wait()
            self._note("task of a higher priority", compute(_size_ns()))

    def _own_lock(self, wait: Callable[[], None]) -> None:
        become("cause-owner", LOWER, OTHER_CPU)
        while True:
            wait()
            with self._mutex:
                begin_ns = compute(_size_ns())
            self._note("held lock", begin_ns)

    def _invert(self, wait: Callable[[], None]) -> None:
        become("cause-low", LOWER)
        while True:
            wait()
            with self._mutex:
                os.write(self._ask, b"x")
                compute(WORK_NS)

    def _third(self, _wait: Callable[[], None]) -> None:
        become("cause-third", MIDDLE)
        while True:
            os.read(self._asked, 1)
            self._note("priority inversion", compute(_size_ns()))

    def _stop(self, wait: Callable[[], None]) -> None:
        become("cause-stopper", 0, OTHER_CPU)
        while True:
            wait()
            begin_ns, pid = now_ns(), int.from_bytes(self._shared[8:16], "little")
            os.kill(pid, signal.SIGSTOP)
            time.sleep(_size_ns() / 1e9)
            os.kill(pid, signal.SIGCONT)
            self._note("SIGSTOP", begin_ns)

    def _send(self, wait: Callable[[], None]) -> None:
        most = max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 2 * SOCKETS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        receivers, sender = receivers_of_packet(SOCKETS), broadcaster()
        while True:
            become("cause-packets", HIGHER)
            wait()
            begin_ns = now_ns()
            until_ns = begin_ns + _size_ns()
            while now_ns() < until_ns:
                sender.sendto(b"x", RECEIVERS)
            self._note("network softirq", begin_ns)
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            for receiver in receivers:
                while _received(receiver.fileno()):
                    pass

    def _victim(self) -> None:
        """The recorded program: a loop with a lock. A cause within it is prepared some cycles before."""
        memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        file = os.open(self._folder / "data", os.O_RDWR | os.O_CREAT, 0o600)
        become("victim", PROGRAM_PRIORITY)
        self._shared[8:16] = os.getpid().to_bytes(8, "little")
        due, cycles = now_ns() + PERIOD_NS, 0
        while True:
            sleep_until(due)
            with self._mutex:
                compute(WORK_NS)
            if self._shared[0] and cycles == 0:
                memory.madvise(mmap.MADV_DONTNEED)
                cycles = SETTLE_CYCLES
            elif cycles > 0:
                cycles -= 1
                if cycles == 0:
                    self._within(INSIDE[self._shared[0] - 1], memory, file)
                    self._shared[0] = 0
            due = max(due + PERIOD_NS, now_ns() - 20 * PERIOD_NS)

    def _within(self, cause: str, memory: mmap.mmap, file: int) -> None:
        begin_ns = now_ns()
        until_ns = begin_ns + _size_ns()
        if cause == "page faults":
            memoryview(memory)[:: mmap.PAGESIZE] = b"\1" * PAGES
        elif cause == "fdatasync":
            while now_ns() < until_ns:
                os.pwrite(file, self._data, 0)
                os.fdatasync(file)
        else:
            compute(until_ns - begin_ns)
        self._note(cause, begin_ns)


def _size_ns() -> int:
    """How long the next injection is."""
    return random.randint(SHORTEST_NS, LONGEST_NS)


def _received(socket: int) -> bool:
    try:
        return bool(os.read(socket, 16))
    except OSError:
        return False


def judge(folder: Path) -> None:
    """Print a line for each cause that was not kept or not named, and the sums."""
    opened = RecorderFolder.open(folder / "folder")
    moments: list[tuple[int, int, str, int]] = []
    for number in sorted(opened.keeping.moments):
        head, line = opened.moment(number)
        document = json.loads(line)
        if document["kind"] != "triggered":
            moments.append((document["release_ns"], document["end_ns"], head.culprit, number))
    planted = [json.loads(line) for line in (folder / "truth").read_text().splitlines()]
    kept = at_once = named = 0
    for cause, begin, end in planted:
        near = [each for each in moments if each[0] < end and begin < each[1]]
        best = max(near, key=lambda each: min(each[1], end) - max(each[0], begin), default=None)
        if best is None:
            print(f"{cause}, {(end - begin) / 1e6:.1f} ms: not kept")
            continue
        culprit = best[2]
        if culprit == UNNAMED:  # `import` explains it
            head, line = opened.moment(best[3])
            culprit = culprit_of(opened.source(head.source), json.loads(line))
        is_named = re.search(EXPECTED[cause], culprit) is not None
        kept, named, at_once = kept + 1, named + is_named, at_once + (is_named and best[2] != UNNAMED)
        if not is_named:
            print(f"{cause}, {(end - begin) / 1e6:.1f} ms: {culprit}")
    print(f"{len(planted)} planted, {kept} kept, {named} named, {at_once} of them while it recorded")


def main() -> None:
    """Plant and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--number", type=int, default=120, help="of causes")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two")
    words = parser.parse_args()
    words.folder.mkdir(parents=True)
    planted = Planted(words.folder)
    command = [RTGAUGE, "recorder", "run", "--pid", str(planted.victim), "--threads", "victim"]
    recorder = subprocess.Popen([*command, "--require", REQUIRE, "--folder", str(words.folder / "folder")])
    try:
        while not list((words.folder / "folder/moments").glob("[0-9]*")):  # it measures
            if recorder.poll() is not None:
                sys.exit("the recorder did not start")
            time.sleep(1)
        for number in range(words.number):
            time.sleep(words.every * random.uniform(0.9, 1.1))
            planted.plant(list(EXPECTED)[number % len(EXPECTED)])
        time.sleep(words.every / 4)
    finally:
        recorder.send_signal(signal.SIGTERM)
        recorder.wait()
        planted.close()
    judge(words.folder)


if __name__ == "__main__":
    print(f"the program runs on CPU {CPU}", flush=True)
    main()
