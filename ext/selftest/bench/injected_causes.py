# SPDX-License-Identifier: MIT
"""Injects causes of latency into or next to a real program under `rtgauge watch`, and prints what was
injected and what was named.

    sudo .venv/bin/python ext/selftest/bench/injected_causes.py [--json] [--keep FOLDER] [CAUSE ...]
    .venv/bin/python ext/selftest/bench/injected_causes.py --guest NAME [CAUSE ...]

With --guest, the programs run in a running guest of the lab, with fewer pages and timers, because an emulated
processor is slow.

The truth is by the programs' own clocks: an injector reads CLOCK_MONOTONIC when an injection begins and when
it ends, and the program that is watched tells
when it ran. In between, as from the last reading of an injector to the first one of the program, nobody's
clock tells: a part may be so much larger. A cause
is a function of `CAUSES` that injects until its process gets SIGTERM. The kernel needs the controllers cpu
and freezer of cgroup v1 for two of them, and
preempt=none or voluntary for `system call`. What judges is imported only to judge, because an emulated guest
takes a minute to import it.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import ctypes
import io
import itertools
import json
import mmap
import os
import random
import re
import resource
import shlex
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtgauge_ext.selftest.stall_program import RECEIVERS, broadcaster, receivers_of_packet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rtgauge.explain.analysis.explanation import Culprit, Explanation, Part

CPU, OTHER_CPU = max(os.sched_getaffinity(0)), min(os.sched_getaffinity(0))
RTGAUGE = str(Path(sys.executable).with_name("rtgauge"))
SECONDS = 5
LEAST_NS, SHARE = 5_000, 0.01
PROGRAM_PRIORITY, HIGHER, MIDDLE, LOWER = 40, 60, 30, 20
FAIR_NICE = -3
"""Of the busy task: above the program next to it, but not so far that that one starves."""
PERIOD_NS, WORK_NS = 4_000_000, 200_000
SECOND_PERIOD_NS = 8_000_000
"""Of a second loop, whose work is longer than any injection, so that none delays most of it."""
ABOVE = "500us"
FREEZER, GROUP = Path("/sys/fs/cgroup/freezer/rtgauge-cause"), Path("/sys/fs/cgroup/cpu/rtgauge-cause")
FREEZER_2 = Path("/sys/fs/cgroup/unified/rtgauge-cause")
MOST_SHARES = "262144"
"""Of the CPU's time (MAX_SHARES, kernel/sched/sched.h), so that fair programs of this machine do not starve a
group.
"""
PR_SET_TIMERSLACK = 29
LONGEST_LEAVE_NS = 50_000
"""From a program's last reading of the clock, or the end of its sleep, until it may be throttled."""
PTRACE_CONT, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 7, 0x4206, 0x4207, 0x40000000
PRIO_INHERIT = 1
FILES = 15_000
SOCKETS = 2_000
TIMERS = 6_000
FAULTS = 2_000
GUEST_TIMERS, GUEST_FAULTS, GUEST_GAP_NS = 2_000, 300, 60_000
"""In a guest. An emulated processor takes 22 us to note a gap."""
GUEST_PLACE = "/tmp/rtgauge-causes"
GUEST_PYTHON = ("env", f"PYTHONPYCACHEPREFIX={GUEST_PLACE}/compiled", "python3")
"""It keeps what it compiled, because to compile it takes an emulated processor longer than watch waits."""
LONG_POWERS = 90_000, 150_000
"""Powers of 3 that Python computes for 1 to 3 ms, in one operation."""
MAPPED = 32 << 20
LIBC = ctypes.CDLL(None, use_errno=True)
IN_GUEST = False
FOLDER = Path()
"""Of this trial: what the programs of it tell each other."""


def now_ns() -> int:
    """CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


SLEPT_UNTIL = 0
"""When the last sleep of this program was to end."""


def sleep_until(due_ns: int) -> None:
    """Sleep; not at all if it is late."""
    global SLEPT_UNTIL  # noqa: PLW0603 - a program of one thread
    left = due_ns - now_ns()
    if left > 0:
        SLEPT_UNTIL = due_ns
        time.sleep(left / 1e9)


RAN: list[tuple[int, int, int]] = []
"""When this program ran without a gap, as far as it knows, and how often it had left its CPU before."""
SETTLE_S = 0.005
LEAST_GAP_NS = 20_000
"""A program that computes was kept from it if two of its readings are so far apart. To note that takes less
time.
"""


def compute(ns: int) -> tuple[int, int]:
    """Work for so long; gives when it began and ended."""
    left = switches()
    begin = start = end = now_ns()
    while end - begin < ns:
        time_ns = now_ns()
        if time_ns - end > LEAST_GAP_NS:
            RAN.append((start, end, left))
            start, left = time_ns, switches()
        end = time_ns
    RAN.append((start, end, left))
    return begin, end


def switches() -> int:
    """How often this thread left its CPU, as the kernel counts."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw


def size_ns() -> int:
    """How long the next injection is."""
    return random.randint(600_000, 1_800_000)


def become(name: str, priority: int, cpu: int = CPU) -> None:
    """Name, SCHED_FIFO priority (0: fair) and CPU of this thread."""
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
    os.sched_setaffinity(0, [cpu])
    os.sched_setscheduler(0, os.SCHED_FIFO if priority else os.SCHED_OTHER, os.sched_param(priority))


def pauses() -> Iterator[int]:
    """Sleeps between two injections and gives when the timer of each was due, until this process is
    stopped.
    """
    while True:
        due = now_ns() + random.randint(30_000_000, 80_000_000)
        sleep_until(due)
        yield due


INJECTIONS: list[tuple[int, int, int, int]] = []


def note(begin_ns: int, end_ns: int, before_ns: int = 0, after_ns: int = 0) -> None:
    """One injection, and how much earlier it may have begun and later have ended, as far as is known. It is
    written at the end: to write it now would keep the CPU for longer than is told.
    """
    INJECTIONS.append((begin_ns, end_ns, before_ns, after_ns))


def leave() -> tuple[int, int]:
    """Leave the CPU; gives the last reading of the clock, and the CPU time that this thread took since."""
    before_ns, time_ns = time.thread_time_ns(), now_ns()
    time.sleep(SETTLE_S)
    return time_ns, time.thread_time_ns() - before_ns


def note_computed(due_ns: int, begin_ns: int, end_ns: int, after_ns: int) -> None:
    """One injection, in the pieces in which this program had the CPU; the last ends when it left.

    Without a switch the machine stood still in the gap between two of them, or an interrupt came: the CPU was
    this program's.
    """
    pieces = [piece for piece in RAN if piece[0] >= begin_ns]
    RAN.clear()
    for (start, end, left), (after, _, left_later) in itertools.pairwise(pieces):
        note(
            start,
            end,
            begin_ns - due_ns if start == begin_ns else 0,
            after - end if left == left_later else 0,
        )
    last = pieces[-1][0]
    note(last, end_ns, begin_ns - due_ns if last == begin_ns else 0, after_ns)


def write_and_end(_number: int, _frame: object) -> None:
    """Write all injections down and end."""
    ran = [run[:2] for run in RAN] if FOLDER.joinpath(f"victim-{os.getpid()}").exists() else []
    FOLDER.joinpath(f"told-{os.getpid()}").write_text(json.dumps({"told": INJECTIONS, "ran": ran}))
    os._exit(0)


def victim() -> int:
    """The program's number, as soon as it runs."""
    while not (files := list(FOLDER.glob("victim-*"))):
        time.sleep(0.01)
    return int(files[0].name.partition("-")[2])


def first_release() -> int:
    """When the program's first period begins."""
    return int(FOLDER.joinpath(f"victim-{victim()}").read_text())


def next_work(first_ns: int) -> int:
    """When the program is in the middle of its work, some periods from now."""
    return first_ns + ((now_ns() - first_ns) // PERIOD_NS + 5) * PERIOD_NS + WORK_NS // 2


def start_process(run: Callable[[], None]) -> None:
    """Run this in a process of its own, which ends with its parent."""
    if os.fork() == 0:
        LIBC.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        INJECTIONS.clear()
        run()
        os._exit(0)


def compute_sometimes(name: str, priority: int, cpu: int = CPU) -> None:
    """A task that computes now and then."""
    become(name, priority, cpu)
    for due in pauses():
        begin, _ = compute(size_ns())
        note_computed(due, begin, *leave())


# --- other tasks have the CPU
# ---------------------------------------------------------------------------------------------------


def hog() -> None:
    """A task of a higher priority computes."""
    compute_sometimes("cause-hog", HIGHER)


def two_hogs() -> None:
    """The same, while another CPU has one too."""

    def other() -> None:
        become("cause-other", HIGHER, OTHER_CPU)
        for _ in pauses():
            compute(size_ns())

    start_process(other)
    hog()


def second_loop() -> Callable[[int], None]:
    """Another loop of the program, on another CPU, always works for longer than --explain-above, so that its
    responses use up the budget of latencies that are kept.
    """

    def loop() -> None:
        become("cause-second", LOWER, OTHER_CPU)
        due = now_ns()
        while True:
            due += SECOND_PERIOD_NS
            sleep_until(due)
            compute(SECOND_PERIOD_NS // 2)
            RAN.clear()

    start_process(loop)

    def work(_number: int) -> None:
        compute(WORK_NS)

    return work


def same_priority() -> None:
    """A task of the same priority computes: FIFO does not take turns."""
    compute_sometimes("cause-same", PROGRAM_PRIORITY)


def busy() -> None:
    """A fair task computes all the time, next to a fair program.

    Its own clock has gaps when it does not run.
    """
    become("cause-busy", 0)
    os.setpriority(os.PRIO_PROCESS, 0, FAIR_NICE)
    make_group(os.getpid(), victim())
    note_runs(LEAST_GAP_NS)


def make_group(*pids: int) -> None:
    """These programs share a CPU as if they were alone on it: other fair ones get next to nothing."""
    GROUP.mkdir(exist_ok=True)
    if not IN_GUEST:  # there, its endless task at SCHED_IDLE is the only other fair one
        GROUP.joinpath("cpu.shares").write_text(MOST_SHARES)
    for pid in pids:
        GROUP.joinpath("cgroup.procs").write_text(str(pid))


def note_runs(gap_ns: int) -> None:
    """Compute for ever, and tell when this program ran: shorter gaps count as well, and those in which it did
    not leave its CPU.
    """
    start = last = now_ns()
    before = switches()
    while True:
        time_ns = now_ns()
        if time_ns - last > gap_ns and (after := switches()) != before:
            note(start, last)
            start, before = time_ns, after
        last = time_ns


def moved() -> None:
    """The program is moved to a CPU on which a task of a higher priority computes."""
    pid = victim()
    become("cause-hog", HIGHER, OTHER_CPU)
    for due in pauses():
        os.sched_setaffinity(pid, [OTHER_CPU])
        begin, _ = compute(size_ns())
        note_computed(due, begin, *leave())
        sleep_until(now_ns() + 10_000_000)
        os.sched_setaffinity(pid, [CPU])


def allow_files() -> None:
    """As many as may be, and enough for the causes: a guest lets root have only 4,096 unless it asks."""
    most = max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 2 * FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# --- the kernel has it
# ----------------------------------------------------------------------------------------------------------


def system_call() -> None:
    """A fair task is in a long system call, and the kernel is not preemptible."""
    allow_files()
    read_end, _ = os.pipe()
    files = ctypes.create_string_buffer(struct.pack("ihh", read_end, 1, 0) * FILES)
    become("cause-call", 0)
    for _ in pauses():
        begin = now_ns()
        LIBC.poll(files, FILES, 0)
        note(begin, now_ns())


def softirq() -> None:
    """One packet goes over lo to many sockets."""
    allow_files()
    receivers, sender = receivers_of_packet(SOCKETS), broadcaster()
    become("cause-packets", LOWER)
    for _ in pauses():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HIGHER))
        begin = now_ns()
        sender.sendto(b"x", RECEIVERS)
        note(begin, now_ns())
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(LOWER))
    del receivers


def timers() -> None:
    """Many timers are due at the same instant: the kernel serves them in one interrupt, which this program
    sees as a gap.
    """
    allow_files()
    files = [LIBC.timerfd_create(1, os.O_NONBLOCK) for _ in range(TIMERS)]
    begun = first_release()
    become("cause-timers", LOWER)
    for _ in pauses():
        due = next_work(begun)
        when = struct.pack("=qqqq", 0, 0, due // 10**9, due % 10**9)
        for file in files:
            LIBC.timerfd_settime(file, 1, when, None)
        sleep_until(due + 2_000_000)
        note(due, due + 2_000_000)


def throttling() -> None:
    """A real-time task of a lower priority never leaves the CPU: the scheduler gives some of it to a fair
    task, which sees when it runs.
    """

    def low() -> None:
        become("cause-low", LOWER)
        while True:
            compute(10**9)

    start_process(low)
    become("cause-busy", 0)
    note_runs(10_000_000)


# --- the program is kept from running
# -------------------------------------------------------------------------------------------


def stopped() -> None:
    """SIGSTOP and SIGCONT."""
    pid = victim()
    become("cause-stopper", 0, OTHER_CPU)
    for _ in pauses():
        begin = now_ns()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(size_ns() / 1e9)
        os.kill(pid, signal.SIGCONT)
        note(begin, now_ns())


def debugger() -> None:
    """A debugger stops it."""
    pid = victim()
    become("cause-debugger", 0, OTHER_CPU)
    LIBC.ptrace.argtypes = [ctypes.c_long] * 4
    LIBC.ptrace(PTRACE_SEIZE, pid, 0, 0)
    for _ in pauses():
        begin = now_ns()
        LIBC.ptrace(PTRACE_INTERRUPT, pid, 0, 0)
        os.waitpid(pid, WALL)
        time.sleep(size_ns() / 1e9)
        LIBC.ptrace(PTRACE_CONT, pid, 0, 0)
        note(begin, now_ns())


def freeze(group: Path, file: str, words: tuple[bytes, bytes]) -> None:
    """Its cgroup is frozen while it works: one that sleeps is frozen asleep, and nothing wakes it late."""
    pid, begun = victim(), first_release()
    become("cause-freezer", HIGHER, OTHER_CPU)
    group.mkdir(exist_ok=True)
    group.joinpath("cgroup.procs").write_text(str(pid))
    state = os.open(group / file, os.O_WRONLY)
    for _ in pauses():
        sleep_until(next_work(begun))
        begin = now_ns()
        os.write(state, words[0])
        time.sleep(size_ns() / 1e9)
        os.write(state, words[1])
        note(begin, now_ns())


def frozen() -> None:
    """By the freezer of cgroup v1."""
    freeze(FREEZER, "freezer.state", (b"FROZEN", b"THAWED"))


def frozen_2() -> None:
    """By the freezer of cgroup v2."""
    freeze(FREEZER_2, "cgroup.freeze", (b"1", b"0"))


def quota() -> Callable[[int], None]:
    """Its cgroup uses up its quota; its own clock has a gap, in which the kernel counts a throttling and how
    long that was.
    """
    LIBC.prctl(PR_SET_TIMERSLACK, 1)
    make_group(os.getpid())
    GROUP.joinpath("cpu.cfs_period_us").write_text("30000")
    GROUP.joinpath("cpu.cfs_quota_us").write_text("3000")

    file = os.open(GROUP / "cpu.stat", os.O_RDONLY)

    def throttled_ns() -> int:
        return int(os.pread(file, 4096, 0).partition(b"throttled_time ")[2].partition(b"\n")[0])

    known = ThrottlingClock(throttled_ns)
    return lambda number: known.work(6_000_000 if number % 20 == 0 else WORK_NS)


class ThrottlingClock:
    """Tells each throttling of this program: a gap in its own clock, in which the kernel's counter grew."""

    def __init__(self, throttled_ns: Callable[[], int]) -> None:
        self._throttled_ns = throttled_ns
        self._before_ns = throttled_ns()
        self._last_ns = now_ns()
        self._gaps: list[tuple[int, int]] = []
        self._awake_ns: dict[int, int] = {}
        """End of a sleep -> how long before it the program was still awake, and may have been throttled."""

    def work(self, ns: int) -> None:
        """Work for so long."""
        if self._last_ns < SLEPT_UNTIL:
            self._awake_ns = {SLEPT_UNTIL: SLEPT_UNTIL - self._last_ns}
            self._last_ns = SLEPT_UNTIL
        end = now_ns() + ns
        while self._last_ns < end:
            time_ns = now_ns()
            if time_ns - self._last_ns > LEAST_GAP_NS:
                self._look(time_ns)
                time_ns = now_ns()
            self._last_ns = time_ns

    def _look(self, time_ns: int) -> None:
        """Until a reading is not interrupted: a throttling may begin before the counter is read or after."""
        while time_ns - self._last_ns > LEAST_GAP_NS:
            self._gaps.append((self._last_ns, time_ns))
            counted_ns = self._throttled_ns() - self._before_ns
            self._last_ns, time_ns = time_ns, now_ns()
            if counted_ns > 0:
                reading = (self._last_ns, time_ns)
                if note_throttling([reading, *self._gaps], counted_ns, self._awake_ns) == reading:
                    self._last_ns = time_ns
                self._before_ns += counted_ns
                self._gaps.clear()


def note_throttling(
    gaps: list[tuple[int, int]], counted_ns: int, awake_ns: dict[int, int]
) -> tuple[int, int] | None:
    """It began when the program left the CPU for the last gap that is long enough, which is given. If none
    is, it began while the program slept, and is not told.
    """
    for begin, end in reversed(gaps):
        if end - begin >= counted_ns:
            after_ns = min(end - begin - counted_ns, LONGEST_LEAVE_NS)
            note(begin, begin + counted_ns, awake_ns.get(begin, 0), after_ns)
            return begin, end
    return None


# --- it waits for another task
# --------------------------------------------------------------------------------------------------


def producer() -> Callable[[int], None]:
    """The program waits for a task of a lower priority, and a third one has that task's CPU."""
    read_end, write_end = os.pipe()

    def produce() -> None:
        become("cause-producer", LOWER)
        due = now_ns()
        while True:
            due += PERIOD_NS
            sleep_until(due)
            os.write(write_end, b"x")

    start_process(produce)
    start_process(lambda: compute_sometimes("cause-hog", MIDDLE))

    def work(_number: int) -> None:
        os.read(read_end, 1)
        compute(WORK_NS)

    return work


class Mutex:
    """A mutex of glibc in memory that processes share."""

    def __init__(self, *, inherits: bool = False) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))
        attributes = ctypes.create_string_buffer(16)
        LIBC.pthread_mutexattr_init(attributes)
        LIBC.pthread_mutexattr_setpshared(attributes, 1)
        LIBC.pthread_mutexattr_setprotocol(attributes, PRIO_INHERIT if inherits else 0)
        LIBC.pthread_mutex_init(self._address, attributes)

    def __enter__(self) -> None:
        LIBC.pthread_mutex_lock(self._address)

    def __exit__(self, *_: object) -> None:
        LIBC.pthread_mutex_unlock(self._address)


def lock(*, inherits: bool = False) -> Callable[[int], None]:
    """A task of a lower priority on another CPU holds the program's lock while it computes."""
    mutex = Mutex(inherits=inherits)

    def own() -> None:
        become("cause-owner", LOWER, OTHER_CPU)
        for _ in pauses():
            with mutex:
                begin, _ = compute(size_ns() + 1_000_000)
                end = now_ns()
            note(begin, end)

    start_process(own)

    def work(_number: int) -> None:
        with mutex:
            compute(WORK_NS)

    return work


def lock_that_inherits() -> Callable[[int], None]:
    """The same, but the lock has priority inheritance, so the kernel lets the program spin."""
    return lock(inherits=True)


def lock_in_disk() -> Callable[[int], None]:
    """The lock's owner writes to a disk with the lock."""
    mutex = Mutex()
    file = os.open(FOLDER / "data", os.O_RDWR | os.O_CREAT)

    def own() -> None:
        become("cause-owner", LOWER, OTHER_CPU)
        for _ in pauses():
            os.pwrite(file, b"x" * 100_000, 0)
            with mutex:
                begin = now_ns()
                os.fdatasync(file)
                end = now_ns()
            note(begin, end)

    start_process(own)

    def work(_number: int) -> None:
        with mutex:
            compute(WORK_NS)

    return work


def inversion() -> Callable[[int], None]:
    """The lock's owner has a lower priority, and a third task preempts it."""
    mutex = Mutex()
    read_end, write_end = os.pipe()

    def own() -> None:
        become("cause-owner", LOWER)
        for _ in pauses():
            with mutex:
                os.write(write_end, b"x")
                compute(50_000)

    def third() -> None:
        become("cause-third", MIDDLE)
        while True:
            os.read(read_end, 1)
            begin, _ = compute(size_ns() + 3_000_000)
            note_computed(begin, begin, *leave())

    start_process(own)
    start_process(third)

    def work(_number: int) -> None:
        with mutex:
            compute(WORK_NS)

    return work


def interpreter_lock() -> Callable[[int], None]:
    """Another thread keeps Python's interpreter lock in one long operation."""

    def keep() -> None:
        become("cause-lock", LOWER, OTHER_CPU)
        for _ in pauses():
            begin, _, end = now_ns(), 3 ** random.randint(*LONG_POWERS), now_ns()
            note(begin, end)

    threading.Thread(target=keep, daemon=True).start()

    def work(_number: int) -> None:
        compute(WORK_NS)

    return work


def java(folder: Path) -> list[str]:
    """A program in Java that is stopped while its memory is collected."""
    source, classes = folder / "Cause.java", folder / "classes"
    source.write_text(JAVA)
    subprocess.run(["javac", "-d", str(classes), str(source)], check=True)
    words = ["chrt", "-f", str(PROGRAM_PRIORITY), "java", "-XX:+UseSerialGC", "-Xmx64m", "-cp", str(classes)]
    return [*words, "Cause", str(folder), str(PERIOD_NS), str(WORK_NS), str(SECONDS + 30)]


JAVA = r"""
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.locks.LockSupport;

class Cause {
    static final List<long[]> ran = Collections.synchronizedList(new ArrayList<>());
    static final List<long[]> told = Collections.synchronizedList(new ArrayList<>());
    static final Object[] live = new Object[100_000];

    public static void main(String[] words) throws Exception {
        long period = Long.parseLong(words[1]), work = Long.parseLong(words[2]);
        long until = System.nanoTime() + Long.parseLong(words[3]) * 1_000_000_000L;
        for (int i = 0; i < live.length; i++)
            live[i] = new byte[16];
        Thread collector = new Thread(() -> {
            Random random = new Random();
            while (true) {
                LockSupport.parkNanos(30_000_000 + random.nextInt(50_000_000));
                long begin = System.nanoTime();
                System.gc();
                told.add(new long[] {begin, System.nanoTime(), 0, 0});
            }
        }, "collector");
        collector.setDaemon(true);
        Thread victim = new Thread(() -> {
            long due = System.nanoTime() + period;
            while (due < until) {
                for (long now = System.nanoTime(); now < due; now = System.nanoTime())
                    LockSupport.parkNanos(due - now);
                long begin = System.nanoTime(), start = begin, end = begin;
                while (end - begin < work) {
                    long now = System.nanoTime();
                    if (now - end > 20_000) {
                        ran.add(new long[] {start, end});
                        start = now;
                    }
                    end = now;
                }
                ran.add(new long[] {start, end});
                due += period;
            }
        }, "victim");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                String text = "{\"told\": " + lists(told) + ", \"ran\": " + lists(ran) + "}";
                Files.writeString(Path.of(words[0], "told-java"), text);
            } catch (java.io.IOException error) {
                throw new RuntimeException(error);
            }
        }));
        victim.start();
        collector.start();
        victim.join();
    }

    static String lists(List<long[]> rows) {
        StringJoiner text = new StringJoiner(", ", "[", "]");
        for (long[] row : rows.toArray(new long[0][]))
            text.add(Arrays.toString(row));
        return text.toString();
    }
}
"""


def mapping() -> Callable[[int], None]:
    """Another thread changes a large mapping, for which the program's own mmap waits."""
    memory = mmap.mmap(-1, MAPPED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # PREEMPT_RT has no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(0, MAPPED, mmap.PAGESIZE):
        memory[page] = 1

    def change() -> None:
        become("cause-mapping", LOWER, OTHER_CPU)
        address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
        for number, due in enumerate(pauses()):
            begin = now_ns()
            LIBC.mprotect(address, ctypes.c_size_t(MAPPED), 3 if number % 2 else 1)
            note(begin, now_ns(), begin - due)

    threading.Thread(target=change, daemon=True).start()

    def work(_number: int) -> None:
        mmap.mmap(-1, mmap.PAGESIZE).close()

    return work


# --- it is its own doing
# --------------------------------------------------------------------------------------------------------


def faults() -> Callable[[int], None]:
    """It touches memory that it has not got yet."""
    pages = FAULTS
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # PREEMPT_RT has no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    of_pages, page_bytes = memoryview(memory)[:: mmap.PAGESIZE], b"\1" * pages

    def work(number: int) -> None:
        compute(WORK_NS)
        if number % 12 == 0:
            begin = now_ns()
            of_pages[:] = page_bytes
            note(begin, now_ns())
            compute(50_000)
        elif number % 12 == 6:
            memory.madvise(mmap.MADV_DONTNEED)

    return work


def copies() -> Callable[[int], None]:
    """It writes to memory that a child has got from it by fork."""
    pages = 1_000
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # PREEMPT_RT has no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    of_pages = memoryview(memory)[:: mmap.PAGESIZE]
    of_pages[:] = b"\1" * pages
    child = 0

    def work(number: int) -> None:
        nonlocal child
        if number % 24 == 0:
            child = os.fork()
            if not child:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.pause()
        elif number % 24 == 8:
            begin = now_ns()
            of_pages[:] = b"\2" * pages
            note(begin, now_ns())
            compute(50_000)
        elif number % 24 == 16:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    return work


def faults_and_work() -> Callable[[int], None]:
    """It works for much longer than the page faults between which it works take."""
    pages = 50
    memory = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # PREEMPT_RT has no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)

    def work(number: int) -> None:
        if number % 12 == 0:
            begin = now_ns()
            for page in range(0, pages * mmap.PAGESIZE, mmap.PAGESIZE):
                memory[page] = 1
                end = now_ns() + 16_000
                while now_ns() < end:
                    pass
            note(begin, now_ns())
        elif number % 12 == 6:
            memory.madvise(mmap.MADV_DONTNEED)

    return work


def disk() -> Callable[[int], None]:
    """It waits for the disk."""
    file = os.open(FOLDER / "data", os.O_RDWR | os.O_CREAT)

    def work(number: int) -> None:
        compute(WORK_NS)
        if number % 12 == 0:
            os.pwrite(file, b"x" * 100_000, 0)
            begin = now_ns()
            os.fdatasync(file)
            note(begin, now_ns())

    return work


def own_work() -> Callable[[int], None]:
    """It computes for more than its period, and catches up."""

    def work(number: int) -> None:
        begin, end = compute(PERIOD_NS + size_ns() if number % 12 == 0 else WORK_NS)
        note(begin, end, begin - SLEPT_UNTIL)

    return work


def children(_folder: Path) -> list[str]:
    """A real program whose children have the real-time threads."""
    words = [
        "stress-ng",
        "--cyclic",
        "1",
        "--cyclic-policy",
        "fifo",
        "--cyclic-prio",
        str(PROGRAM_PRIORITY),
        "--cyclic-sleep",
        str(PERIOD_NS),
    ]
    return [*words, "--taskset", str(CPU), "--timeout", str(SECONDS + 30)]


@dataclass(frozen=True)
class Cause:
    """The explanation has to name one of `expected`, a pattern on the culprit's words, which may name a
    second task where the kernel did not trace the switch
    between them. `inject` runs in a process of its own, `within` in the program: it gives what the program
    does each period. `inside`: kinds of parts that
    belong to an injection as its injector sees it. `options`: of watch. `fair`: the program is not real-time.
    """

    name: str
    expected: str
    inject: Callable[[], None] | None = None
    within: Callable[[], Callable[[int], None]] | None = None
    program: Callable[[Path], list[str]] | None = None
    inside: tuple[str, ...] = ()
    options: tuple[str, ...] = ("--threads", "victim")
    fair: bool = False
    by_gap: bool = False
    """The injector knows when the kernel begins, and the program, which works then, how long it did not run.
    """
    least_ns: int = 400_000
    """Shorter latencies are not of this cause: what it takes to stop a thread, or to wake it again."""
    unsure_ns: int = 100_000
    unsure_before_ns: int = 0
    """How long after an injection, and before it, at most the program may have waited for what was injected.
    """
    may_end_early: bool = False
    """The injector reads its clock later than the program goes on."""
    runs: int = 1
    """Of waits only a new maximum is explained, which are few in a run."""


OWN = ("own work",)
SIZE_DOUBTS = ("was throttled", "the end of a page fault", "the host of this virtual machine")
"""Words of the doubts that say how much of a latency may be something else."""
UNKNOWN = {"unattributed", "one or the other", "page fault or own work"}
"""Kinds of parts that are a doubt by their name."""
SLEEPS = (
    *OWN,
    "blocked",
    "page fault",
    "lock owner",
    "lock owner asleep",
    "task",
    "idle exit",
    "wake-up on another CPU",
    "preemption off",
)
MACHINE = (
    "irq",
    "interrupt",
    "softirq",
    "NMI",
    "switch",
    "wake-up",
    "timer late",
    "steal",
    "no software ran",
)
CAUSES = (
    Cause("task of a higher priority", r"\bcause-hog\b", hog),
    Cause("the same, and one on another CPU", r"\bcause-hog\b", two_hogs),
    Cause(
        "hog while another loop uses up the budget",
        r"\bcause-hog\b",
        hog,
        within=second_loop,
        options=("--threads", "victim,cause-second"),
        runs=3,
    ),
    Cause("task of the same priority", r"\bcause-same\b", same_priority),
    Cause("fair program next to a busy task", r"\bcause-busy\b", busy, fair=True),
    # the timer is still on the CPU that the program left, which may be idle when it expires
    Cause("moved to a busy CPU", r"\bcause-hog\b", moved, inside=("preemption off", "idle exit")),
    Cause("long system call of a lower task", r"preemption off in cause-call", system_call, inside=OWN),
    Cause("network softirq", r"softirq NET_RX", softirq, inside=(*OWN, "preemption off", "task")),
    Cause(
        "many timers at once",
        r"local timer interrupt|hrtimer",
        timers,
        inside=(*OWN, "preemption off"),
        by_gap=True,
    ),
    # other fair programs get some of the time too
    Cause(
        "real-time throttling",
        r"throttling|fair server",
        throttling,
        inside=OWN,
        unsure_ns=10**9,
        unsure_before_ns=10**9,
    ),
    Cause("SIGSTOP", r"stopped", stopped, inside=SLEEPS),
    Cause("debugger", r"stopped", debugger, inside=SLEEPS),
    Cause("frozen cgroup", r"blocked.* until cause-freezer", frozen, inside=SLEEPS),
    Cause("frozen cgroup, version 2", r"blocked.* until cause-freezer", frozen_2, inside=SLEEPS),
    # after a throttling it waits for its turn, which its clock does not tell apart
    Cause("CPU quota of its cgroup", r"quota", within=quota, inside=(*OWN, "task"), fair=True),
    Cause("starved producer", r"\bcause-hog\b", within=producer, runs=5),
    Cause(
        "held lock",
        r"cause-owner with the lock",
        within=lock,
        inside=SLEEPS,
        runs=5,
    ),
    Cause(
        "lock with inheritance, owner on another CPU",
        r"spin for a lock of cause-owner|cause-owner with the lock",
        within=lock_that_inherits,
        inside=SLEEPS,
    ),
    Cause(
        "lock whose owner is in fdatasync",
        r"cause-owner asleep in fdatasync with the lock",
        within=lock_in_disk,
        inside=SLEEPS,
    ),
    Cause(
        "priority inversion, third task",
        r"\bcause-third\b",
        within=inversion,
        runs=5,
    ),
    Cause(
        "another thread's mprotect",
        r"\bcause-mapping\b",
        within=mapping,
        inside=SLEEPS,
    ),
    Cause(
        "another thread has Python's lock",
        r"cause-lock",
        within=interpreter_lock,
        inside=SLEEPS,
        may_end_early=True,
    ),
    Cause(
        "Java collects memory",
        r"VM Thread",
        program=java,
        inside=SLEEPS,
        may_end_early=True,
    ),
    Cause("page faults", r"page fault", within=faults, inside=OWN),
    Cause("copies on write", r"copy on write", within=copies, inside=OWN),
    Cause(
        "own work between page faults",
        r"thread victim itself",
        within=faults_and_work,
        inside=("page fault", "page fault or own work"),
    ),
    Cause("fdatasync", r"fdatasync", within=disk, inside=SLEEPS),
    Cause("its own long work", r"thread victim itself", within=own_work, inside=("page fault",)),
    Cause("hog next to the program's children", r"\bcause-hog\b", hog, program=children, options=()),
)


def program(cause: Cause, seconds: int) -> None:
    """The program that is watched: a loop with a period, which computes for a while."""
    work = cause.within() if cause.within is not None else lambda _number: compute(WORK_NS)
    become("victim", 0 if cause.fair else PROGRAM_PRIORITY)
    due = now_ns() + PERIOD_NS
    FOLDER.joinpath("first").write_text(str(due))
    FOLDER.joinpath("first").rename(FOLDER / f"victim-{os.getpid()}")
    end = due + seconds * 10**9
    for number in range(seconds * 10**9 // PERIOD_NS):
        if cause.name != "starved producer":
            sleep_until(due)
        work(number)
        due += PERIOD_NS
        if now_ns() > end:
            return


@dataclass(frozen=True)
class Row:
    """One injection and its latency: sizes in ns; `wrong_ns`: by how much the part is wrong beyond what is
    said to be open.
    """

    injected_ns: int
    unsure_ns: int
    named: str
    named_ns: int
    unknown_ns: int
    doubts: tuple[str, ...]
    right: bool
    wrong_ns: int
    sentence: str

    @property
    def is_wrong(self) -> bool:
        """Whether it is wrong without a doubt by more than the larger of 5 us and 1 %."""
        return self.is_off and not any(words in doubt for doubt in self.doubts for words in SIZE_DOUBTS)

    @property
    def is_off(self) -> bool:
        """Whether it is wrong by so much, with or without a doubt of all of it."""
        return self.wrong_ns > max(LEAST_NS, SHARE * self.injected_ns)


def explained(record: Path) -> list[Explanation]:
    """The latencies of a record, with the waits for others."""
    from rtgauge.explain.analysis.culprits import explained_steps
    from rtgauge.record.reader import Record

    return [
        known
        for step in explained_steps(Record.open(record))
        for known in (*step.explanations, *step.blocked)
    ]


def is_expected(cause: Cause, culprit: Culprit) -> bool:
    """Whether this is the cause. A timer that was late while a task ran is not the task: the CPU may have
    stood still.
    """
    from rtgauge.explain.analysis.explanation import Kind, culprit_name

    return (
        culprit.kind is not Kind.TIMER_LATE and re.search(cause.expected, culprit_name(culprit)) is not None
    )


def injected_ns(cause: Cause, part: Part, injections: list[tuple[int, int, int, int]]) -> int:
    """How long a part of the name that is expected is. Interrupts come of themselves too: only those count
    that an injection touches.
    """
    if not cause.by_gap:
        return part.ns
    return sum(
        end - start
        for start, end, _ in part.spans
        if any(first < end and start < last for _, _, first, last in injections)
    )


def judged(
    cause: Cause, latencies: list[Explanation], injections: list[tuple[int, int, int, int]]
) -> list[Row]:
    """A row for each latency that an injection delayed most of."""
    from rtgauge.explain.analysis.explanation import culprit_name, sentence
    from rtgauge.explain.analysis.ranking import ranked_culprits

    rows: list[Row] = []
    for latency in latencies:
        begin, end = latency.moment.release_ns, latency.moment.release_ns + latency.latency_ns
        touching = [known for known in injections if known[0] < end and begin < known[1]]
        least = sum(min(end, stop) - max(begin, start) for start, stop, _, _ in touching)
        most = sum(min(end, last) - max(begin, first) for _, _, first, last in touching)
        if 2 * least < latency.latency_ns or latency.latency_ns < cause.least_ns:
            continue
        named = [(culprit_name(part.culprit), part) for part in latency.parts]
        parts: dict[str, int] = {}
        for name, part in named:
            parts[name] = parts.get(name, 0) + part.ns
        unknown = {name for name, part in named if part.culprit.kind in UNKNOWN}
        main = ranked_culprits([latency])[0].culprit
        found_ns = sum(
            injected_ns(cause, part, injections)
            for name, part in named
            if name not in unknown and is_expected(cause, part.culprit)
        )
        inside = sum(
            part.ns
            for _, part in named
            if part.culprit.kind in {*MACHINE, *cause.inside} and not is_expected(cause, part.culprit)
        )
        open_ns = sum(parts[name] for name in unknown)
        wrong = max(found_ns - most, least - found_ns - inside - open_ns, 0)
        rows.append(
            Row(
                least,
                most - least,
                culprit_name(main),
                found_ns,
                open_ns,
                tuple(latency.doubts),
                is_expected(cause, main),
                wrong,
                sentence(latency),
            )
        )
    return rows


def in_guest(guest: str, script: str, **files: Any) -> bytes:
    """What a script prints in a guest of the lab. Raises CalledProcessError if it fails."""
    command = [RTGAUGE, "lab", "shell", guest, script]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **files).stdout


def prepare_guest(guest: str) -> None:
    """Copy the programs to a guest, and mount the controllers of cgroup v1 that the causes need."""
    programs = io.BytesIO()
    package = sys.modules[receivers_of_packet.__module__]
    with tarfile.open(fileobj=programs, mode="w") as tar:
        tar.add(__file__, Path(__file__).name)
        tar.add(str(package.__file__), f"{package.__name__.replace('.', '/')}.py")
    mounts = "".join(
        f"mkdir -p {place}; grep -q {place} /proc/mounts || mount -t cgroup -o {name} {name} {place}; "
        for name, place in ((name, f"/sys/fs/cgroup/{name}") for name in ("cpu", "freezer"))
    )
    unpack = f"mkdir -p {GUEST_PLACE} /sys/fs/cgroup/unified; {mounts} cat >{GUEST_PLACE}/programs.tar"
    with tempfile.TemporaryFile() as file:
        file.write(programs.getvalue())
        file.seek(0)
        in_guest(guest, unpack, stdin=file)
    compile_all = shlex.join([*GUEST_PYTHON, Path(__file__).name, "--help"])
    in_guest(guest, f"cd {GUEST_PLACE} && tar xf programs.tar && {compile_all}")


class Local:
    """Runs the programs of a trial on this machine."""

    place: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ours = [sys.executable, __file__, "--folder", str(folder)]
        self._injector: subprocess.Popen[bytes] | None = None

    def inject(self, cause: Cause) -> None:
        """Start the injector."""
        self._injector = subprocess.Popen([*self.ours, "--inject", cause.name], process_group=0)

    def end(self) -> None:
        """End the injector, and let the programs write down what they told."""
        if self._injector is not None:
            os.killpg(self._injector.pid, signal.SIGTERM)
            self._injector.wait()
        time.sleep(0.2)  # for its children to write down what they told
        for group in (FREEZER, FREEZER_2, GROUP):
            with contextlib.suppress(OSError):
                group.rmdir()


class InGuest:
    """Runs the programs of a trial in a guest."""

    def __init__(self, folder: Path, guest: str) -> None:
        self._folder, self._guest = folder, guest
        self.place = ("--target", f"lab:{guest}")
        self._there = f"{GUEST_PLACE}/trial"
        script = f"{GUEST_PLACE}/{Path(__file__).name}"
        self.ours = [*GUEST_PYTHON, script, "--in-guest", "--folder", self._there]
        in_guest(guest, f"rm -rf {self._there}; mkdir {self._there}")

    def inject(self, cause: Cause) -> None:
        """Start the injector."""
        words = shlex.join([*self.ours, "--inject", cause.name])
        write = f"echo $$ >{self._there}/injector; exec {words}"
        files = f"</dev/null >{self._there}/injector.log 2>&1"
        in_guest(self._guest, f"setsid sh -c {shlex.quote(write)} {files} &")

    def end(self) -> None:
        """End the injector, wait until the programs have written down what they told, and fetch it."""
        groups = " ".join(str(group) for group in (FREEZER, FREEZER_2, GROUP))
        stop = f"cd {self._there}; [ ! -e injector ] || kill -TERM -$(cat injector); sleep 2; "
        # a cause within the program has no injector
        fetch = "touch injector.log; tar cf - told-* injector.log"
        told = in_guest(self._guest, f"{stop} rmdir {groups} 2>/dev/null; {fetch}")
        with tarfile.open(fileobj=io.BytesIO(told)) as tar:
            tar.extractall(self._folder, filter="data")


def tried(cause: Cause, folder: Path, seconds: int, guest: str | None) -> list[Row]:
    """Injects one cause, watches the program, and judges what the explanations say."""
    trial = Local(folder) if guest is None else InGuest(folder, guest)
    command = cause.program(folder) if cause.program is not None else [*trial.ours, "--program", cause.name]
    if cause.inject is not None:
        trial.inject(cause)
    watch = [
        RTGAUGE,
        "watch",
        *trial.place,
        "--wait",
        "20min",
        "--duration",
        f"{seconds}s",
        "--explain-above",
        ABOVE,
        *cause.options,
    ]
    try:
        with (folder / "output").open("w") as output:
            subprocess.run(
                [*watch, "--save", "--out", str(folder / "records"), "--", *command],
                check=True,
                stdout=output,
                stderr=output,
            )
    except subprocess.CalledProcessError:
        print(folder.joinpath("output").read_text(), file=sys.stderr)
        return []
    finally:
        trial.end()
    return rows_of(cause, folder)


def rows_of(cause: Cause, folder: Path) -> list[Row]:
    """Judges what a trial left in its folder."""
    documents = [json.loads(file.read_text()) for file in folder.glob("told-*")]
    ran = sorted(tuple(known) for document in documents for known in document["ran"])
    reported = [tuple(injection) for document in documents for injection in document["told"]]
    if cause.by_gap:
        gaps = [(before[1], after[0]) for before, after in itertools.pairwise(ran)]
        injections = [
            (*gap, *gap) for due, end, *_ in reported for gap in gaps if gap[0] - WORK_NS < due < gap[1] < end
        ]
    else:
        known = sorted(bounded(cause, *injection, ran) for injection in reported)
        begins = [*(injection[0] for injection in known), sys.maxsize][1:]
        ends = [0, *(injection[1] for injection in known)][:-1]
        injections = [
            (begin, end, max(first, before), min(last, after))
            for (begin, end, first, last), before, after in zip(known, ends, begins, strict=True)
        ]
    records = list((folder / "records").iterdir())
    return judged(cause, explained(records[-1]), injections)


def bounded(
    cause: Cause, begin_ns: int, end_ns: int, before_ns: int, after_ns: int, ran: list[tuple[int, int]]
) -> tuple[int, int, int, int]:
    """An injection: begin and end by its own clock, and the first and the last time at which the program did
    not run around it.
    """
    if not ran:
        return begin_ns, end_ns, begin_ns - before_ns, end_ns + after_ns
    if cause.inject is not None or cause.may_end_early:
        # a reading of its clock that comes after the program ran is too late
        next_run = bisect.bisect_right(ran, (begin_ns, sys.maxsize))
        end_ns = min(end_ns, ran[next_run][0]) if next_run < len(ran) else end_ns
    after = bisect.bisect_left(ran, (end_ns, 0))
    last = ran[after][0] if after < len(ran) else end_ns
    first = max(
        begin_ns - max(before_ns, cause.unsure_before_ns),
        max((stop for _, stop in ran[max(after - 5, 0) : after] if stop <= begin_ns), default=0),
    )
    return begin_ns, end_ns, first, min(last, end_ns + cause.unsure_ns)


def summary(cause: Cause, rows: list[Row]) -> dict[str, Any]:
    """What the table has of one cause."""
    right = [row for row in rows if row.right]
    answers = [row.named for row in rows]
    return {
        "injected": cause.name,
        "latencies": len(rows),
        "right": len(right),
        "named": statistics.mode(answers) if answers else "",
        "unsure_ns": statistics.median([row.unsure_ns for row in rows]) if rows else 0,
        "doubted": sum(bool(row.doubts) for row in rows),
        "off": sum(row.is_off for row in rows),
        "wrong": sum(row.is_wrong for row in rows),
        "largest_wrong_ns": max((row.wrong_ns for row in rows if row.is_wrong), default=0),
        "rows": [asdict(row) for row in rows],
    }


def table_row(row: dict[str, Any]) -> str:
    """A summary as a row of the table."""
    cells = [str(row[key]) for key in ("injected", "named", "latencies", "right", "doubted")]
    wrong = f"{row['wrong']}, {row['largest_wrong_ns'] / 1000:,.1f}" if row["wrong"] else "0"
    return f"| {' | '.join([*cells, wrong])} | {row['unsure_ns'] / 1000:,.1f} |"


def main() -> None:
    """Tries the causes and prints the table."""
    # of this process, from its command line
    global FOLDER, IN_GUEST, FAULTS, TIMERS, LEAST_GAP_NS  # noqa: PLW0603
    names = [cause.name for cause in CAUSES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("causes", nargs="*", metavar="CAUSE", help=f"of: {'; '.join(names)}; default: all")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of each trial; default: {SECONDS}")
    parser.add_argument("--json", action="store_true", help="a line of JSON a cause, with every latency")
    parser.add_argument("--keep", type=Path, help="a folder that does not exist yet: it gets the records")
    parser.add_argument("--guest", metavar="NAME", help="a running guest of the lab in which to try them")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--inject", choices=names, help=argparse.SUPPRESS)
    parser.add_argument("--program", choices=names, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.in_guest:
        IN_GUEST, FAULTS, TIMERS, LEAST_GAP_NS = True, GUEST_FAULTS, GUEST_TIMERS, GUEST_GAP_NS
    if words.folder is not None:
        FOLDER = words.folder
        signal.signal(signal.SIGTERM, write_and_end)
        cause = next(cause for cause in CAUSES if cause.name == (words.inject or words.program))
        if words.program is None and cause.inject is not None:
            try:
                cause.inject()
            except OSError as error:  # the program has ended, or the kernel lacks what is needed
                print(f"{cause.name}: the injector stopped: {error}", file=sys.stderr)
            signal.pause()
        else:
            program(cause, SECONDS + 600)
        return
    if words.guest is not None:
        prepare_guest(words.guest)
    if not words.json:
        print(
            "| injected | named | latencies | named correctly | with a doubt | wrong without a "
            "doubt, by at most (us) | known within (us) |"
        )
        print("|---|---|---|---|---|---|---|")
    for cause in CAUSES:
        if words.causes and cause.name not in words.causes:
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows: list[Row] = []
            for run in map(str, range(cause.runs)):
                Path(folder, run).mkdir()
                rows += tried(cause, Path(folder, run), words.seconds, words.guest)
            row = summary(cause, rows)
            if words.keep is not None:
                shutil.copytree(folder, words.keep / cause.name)
        print(json.dumps(row) if words.json else table_row(row), flush=True)


if __name__ == "__main__":
    main()
