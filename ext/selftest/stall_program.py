# SPDX-License-Identifier: MIT
"""Stalls one CPU in a known way: python3 -c TEXT KIND CPU LENGTH_US EVERY_MS BOUND_S.

The program runs on the target, and needs only its Python (3.8 or newer).

It prints a line of JSON for each stall: the kind, and the times (ns of CLOCK_MONOTONIC, read by the program
itself) between which it had the CPU. `before_ns` and `after_ns` say how much longer it may have had the CPU
at the two ends, by the CPU time that the kernel counted. `inside_ns` is the part between the two readings
that is not the stall.
"""

import contextlib
import ctypes
import json
import mmap
import os
import random
import resource
import signal
import socket
import struct
import sys
import time
from typing import Callable  # noqa: UP035 - Python 3.8 needs it

HOG_PRIORITY = 99
"""Higher than the default priority of every measured thread."""
LOW_PRIORITY = 1
FAULT_PRIORITY = 50
RECEIVERS, NOBODY = ("127.255.255.255", 53_991), ("127.255.255.255", 53_992)
"""Destinations of a broadcast on lo: the sockets of `softirq`, and a port without sockets."""
SOCKET_NS = 470
"""The estimated time to hand a packet to one more socket. The length of each stall is measured."""
TIMER_NS, LEAST_TIMER_NS = 400, 100
"""The first estimate and the lower bound of the time that a timer takes (150 ns to 1 us).

Each stall measures this time, which gives the number of timers for the next stall.
"""
ARM_NS = 40_000_000
"""The time in which the timers are set."""
MOST_FILES = 60_000
FAULT_NS, LEAST_FAULT_NS = 600, 100
"""The first estimate and the lower bound of the time that a page fault takes. Later the time is measured."""
OWN_NS = 50_000
"""How long the program of `fault` computes before and after its faults. It is longer than a fault, because
the kernel does not report the end of a fault.
"""
WARM = 10
"""How often the code that leads to a stall first runs without a stall."""
IDLE_WINDOW = 0.7
"""The share of the time between two stalls of `idle` in which the CPU may sleep deeply."""
CLOCK_MONOTONIC, TFD_TIMER_ABSTIME, TFD_NONBLOCK = 1, 1, 0o4000


def now_ns() -> int:
    """Return CLOCK_MONOTONIC in ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def print_stall(
    start_ns: int, end_ns: int, before_ns: int = 0, after_ns: int = 0, inside_ns: int = 0
) -> None:
    """Print one stall."""
    stall = {"kind": KIND, "cpu": CPU, "start_ns": start_ns, "end_ns": end_ns}
    unknown = {"before_ns": before_ns, "after_ns": after_ns, "inside_ns": inside_ns}
    print(json.dumps({**stall, **unknown}), flush=True)


def cpu_ns() -> int:
    """Return the CPU time (ns) of this thread."""
    return time.thread_time_ns()


def rest() -> float:
    """Return the seconds until the next stall, which vary so that stalls do not follow the releases."""
    return EVERY_S * random.uniform(0.75, 1.25)  # noqa: S311 - no secret


def length_ns() -> int:
    """Return the wanted length (ns) of the next stall."""
    return round(LENGTH_NS * random.uniform(0.6, 1.4))  # noqa: S311 - no secret


def name_self(name: str) -> None:
    """Set the name of this process in the kernel's events."""
    with open("/proc/self/comm", "w") as comm:  # noqa: PTH123 - a bare Python on any target
        comm.write(name)


def set_priority(priority: int) -> None:
    """Give this process SCHED_FIFO with this priority."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def lowest_real_time() -> None:
    """Run above every fair task, so that no fair task lengthens the stall, but below the measured thread."""
    set_priority(LOW_PRIORITY)


def lowest_of_all() -> None:
    """Run only if no other task wants the CPU."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def start_child(name: str, set_policy: Callable[[], None]) -> int:
    """Start a child of this name that computes on the same CPU until this process ends. Return its pid."""
    child = os.fork()
    if child == 0:
        name_self(name)
        set_policy()
        while os.getppid() == PARENT:
            pass
        os._exit(0)
    return child


def allow_files(count: int) -> None:
    """Raise the limit of open files to this number."""
    hard = max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], count + 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def echo() -> "tuple[int, int]":
    """Start a child of low priority that answers bytes, and ends with this process. Return the descriptors to
    write a byte to and to read the answer from.
    """
    (read_end, request_end), (answer, answers) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(request_end)
        name_self("rtgauge-echo")
        set_priority(LOW_PRIORITY)
        while os.read(read_end, 1):
            os.write(answers, b"x")
        os._exit(0)
    os.close(read_end)
    return request_end, answer


def stall_once(request_end: int, answer: int, cpu_before_ns: int) -> None:
    """Compute above every other task, then wait for the child to leave the CPU. Sleeping or printing would
    keep the CPU longer than reported.

    `cpu_before_ns`: the thread's CPU time before it could stall the CPU.
    """
    start, cpu_start = now_ns(), cpu_ns()
    end = start + length_ns()
    os.write(request_end, b"x")
    while now_ns() < end:
        pass
    cpu_end, end = cpu_ns(), now_ns()
    os.read(answer, 1)
    cpu_after = cpu_ns()
    set_priority(LOW_PRIORITY)
    print_stall(start, end, cpu_start - cpu_before_ns, cpu_after - cpu_end)


def hog() -> None:
    """Compute in a task with a priority above the measured thread's."""
    name_self("rtgauge-hog")
    request_end, answer = echo()
    while True:
        set_priority(LOW_PRIORITY)
        time.sleep(rest())
        cpu_before = cpu_ns()
        set_priority(HOG_PRIORITY)
        stall_once(request_end, answer, cpu_before)


def from_idle() -> None:
    """Let a timer wake a high-priority task from idle, with no task of this program on the CPU before."""
    name_self("rtgauge-woken")
    request_end, answer = echo()
    while True:
        set_priority(HOG_PRIORITY)
        cpu_before = cpu_ns()
        time.sleep(rest())
        stall_once(request_end, answer, cpu_before)


def two_cpus() -> None:
    """Do the same as `from-idle`, while a task computes on another CPU, which delays nobody here."""
    others = sorted(set(range(os.cpu_count() or 1)) - {CPU})
    read_end, other_end = os.pipe()
    if others and os.fork() == 0:
        os.close(other_end)
        name_self("rtgauge-other")
        os.sched_setaffinity(0, others[:1])
        set_priority(HOG_PRIORITY)
        while os.read(read_end, 1):
            compute(LENGTH_NS)
        os._exit(0)
    os.close(read_end)
    name_self("rtgauge-two")
    request_end, answer = echo()
    while True:
        set_priority(HOG_PRIORITY)
        cpu_before = cpu_ns()
        time.sleep(rest())
        if others:
            os.write(other_end, b"x")
        stall_once(request_end, answer, cpu_before)


def catch_up() -> None:
    """Be a measured program with a late loop: the timer expires just before the sleep, and the late work is
    the program's own.
    """
    name_self("rtgauge-catchup")
    set_priority(FAULT_PRIORITY)
    start, end, cpu_end = now_ns(), 0, 0
    while True:
        time.sleep(rest())
        if end:
            print_stall(start, end, after_ns=cpu_ns() - cpu_end)
        time.sleep(0.001)  # A separate activation.
        start = now_ns()
        time.sleep(random.uniform(0, 4e-6))  # noqa: S311 - no secret
        compute(length_ns())
        cpu_end, end = cpu_ns(), now_ns()


def receivers_of_packet(count: int) -> "list[socket.socket]":
    """Return `count` sockets that get each packet sent to `RECEIVERS`, and drop it."""
    receivers: list[socket.socket] = []
    for _ in range(count):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The buffer is too small for any packet, so that no packet has to be read.
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        receiver.bind(RECEIVERS)
        receivers.append(receiver)
    return receivers


def broadcaster() -> socket.socket:
    """Return a socket that sends to all receivers at once."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    return sender


def softirq() -> None:
    """Broadcast to many sockets, which the kernel serves in one run of the softirq NET_RX."""
    name_self("rtgauge-packets")
    count = min(LENGTH_NS // SOCKET_NS, MOST_FILES)
    allow_files(count)
    receivers, sender = receivers_of_packet(count), broadcaster()
    while receivers:
        set_priority(LOW_PRIORITY)
        time.sleep(rest())
        sent = now_ns()
        for _ in range(WARM):
            sent = now_ns()
            sender.sendto(b"x", NOBODY)
        way_ns = now_ns() - sent
        set_priority(HOG_PRIORITY)  # Otherwise the measured thread would run before the end is read.
        start = now_ns()
        sender.sendto(b"x", RECEIVERS)
        end = now_ns()
        set_priority(LOW_PRIORITY)
        print_stall(start, end, inside_ns=way_ns)


def timers() -> None:
    """Make many timers expire at once, which the kernel serves in one interrupt.

    The stall is the gap between two readings of the clock.
    """
    name_self("rtgauge-timers")
    libc = ctypes.CDLL(None, use_errno=True)
    most = min(LENGTH_NS // LEAST_TIMER_NS, MOST_FILES)
    allow_files(most)
    files = [libc.timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK) for _ in range(most)]
    count = min(LENGTH_NS // TIMER_NS, most)
    lowest_real_time()
    while True:
        time.sleep(rest())
        due = now_ns() + ARM_NS
        when = struct.pack("=qqqq", 0, 0, due // 10**9, due % 10**9)
        for file in files[:count]:
            libc.timerfd_settime(file, TFD_TIMER_ABSTIME, when, None)
        if now_ns() > due - 1_000_000:
            count -= count // 4  # A slow processor sets fewer in this time, and fewer are as long a stall.
            continue
        time.sleep((due - 1_000_000 - now_ns()) / 1e9)
        last, gap = now_ns(), (0, 0)
        while last < due + 5_000_000:
            time_ns = now_ns()
            if time_ns - last > gap[1] - gap[0] and time_ns > due:
                gap = (last, time_ns)
            last = time_ns
        print_stall(*gap)
        if gap[1] > gap[0]:
            count = min(max(count * LENGTH_NS // (gap[1] - gap[0]), count // 2), count * 2, most)


def throttle() -> None:
    """Keep the CPU busy with real-time tasks while a fair task wants it. The scheduler gives the fair task
    some time before every real-time task.

    The stall is the time in which the fair task runs. The CPU time that it took between two stalls, outside
    its readings, may be before the second or after the first.
    """
    child = start_child("rtgauge-low", lowest_real_time)
    name_self("rtgauge-fair")
    start = last = now_ns()
    last_cpu_ns, before_ns = time.thread_time_ns(), 0
    try:
        while True:
            time_ns, cpu_ns = now_ns(), time.thread_time_ns()
            if time_ns - last > 10_000_000:
                outside_ns = cpu_ns - last_cpu_ns
                if last - start > 100_000:
                    print_stall(start, last, before_ns, outside_ns)
                start, before_ns = time_ns, outside_ns
            last, last_cpu_ns = time_ns, cpu_ns
    finally:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)


def compute(ns: int = OWN_NS) -> None:
    """Compute without causing an event."""
    end = now_ns() + ns
    while now_ns() < end:
        pass


def fault() -> None:
    """Be a measured program whose loop touches memory that is not mapped yet.

    The CPU is never idle, because some kernels in virtual machines do not trace switches from the idle task.
    """
    start_child("rtgauge-busy", lowest_of_all)
    name_self("rtgauge-faults")
    set_priority(FAULT_PRIORITY)
    memory = mmap.mmap(
        -1, LENGTH_NS * 2 // LEAST_FAULT_NS * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    )
    with contextlib.suppress(OSError):  # PREEMPT_RT has no huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    of_pages = memoryview(memory)[:: mmap.PAGESIZE]
    page_bytes = b"\1" * len(of_pages)
    took_ns = float(FAULT_NS)
    while True:
        time.sleep(rest())
        memory.madvise(mmap.MADV_DONTNEED)
        time.sleep(0.001)  # A separate activation.
        pages = min(max(round(length_ns() / took_ns), 2), len(of_pages))
        touched, begin = page_bytes[1:pages], 0
        for _ in range(WARM):
            begin = now_ns()
            of_pages[:1] = page_bytes[:1]
        way_ns = now_ns() - begin
        compute()
        start = now_ns()
        of_pages[1:pages] = touched
        end = now_ns()
        compute()
        print_stall(start, end, inside_ns=way_ns)
        took_ns = max((end - start) / pages, LEAST_FAULT_NS)


def idle() -> None:
    """Forbid deep idle states except now and then, so that a due timer finds the CPU in a deep state."""
    name_self("rtgauge-idle")
    allowed = dict.fromkeys(range(os.cpu_count() or 1)).keys() - {CPU}
    os.sched_setaffinity(0, allowed or [CPU])
    while True:
        with open("/dev/cpu_dma_latency", "wb", buffering=0) as latency:  # noqa: PTH123 - a bare Python on any target
            latency.write(struct.pack("=i", 0))
            time.sleep(rest() * (1 - IDLE_WINDOW))
        start = now_ns()
        time.sleep(rest() * IDLE_WINDOW)
        print_stall(start, now_ns())


KINDS = {
    "hog": hog,
    "from-idle": from_idle,
    "two-cpus": two_cpus,
    "catch-up": catch_up,
    "softirq": softirq,
    "timers": timers,
    "throttle": throttle,
}
KINDS.update({"fault": fault, "idle": idle})


def end(_number: int, _frame: object) -> None:
    """End the program through the `finally` of the running function."""
    sys.exit(0)


if __name__ == "__main__":
    KIND, CPU = sys.argv[1], int(sys.argv[2])
    LENGTH_NS, EVERY_S = int(sys.argv[3]) * 1000, int(sys.argv[4]) / 1000
    PARENT = os.getpid()
    signal.signal(signal.SIGALRM, end)
    signal.signal(signal.SIGTERM, end)
    signal.alarm(int(sys.argv[5]))
    os.sched_setaffinity(0, [CPU])
    KINDS[KIND]()
