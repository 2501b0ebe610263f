# SPDX-License-Identifier: MIT
"""Plants causes of late answers between two namespaces, and explains what the engine then freezes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from tests.support.trace_instance import trace_instance

from ext.network.tests.two_namespaces import FAR, LINK, NEAR, TwoNamespaces
from rtgauge.explain.analysis.attribution import explain
from rtgauge.explain.analysis.explanation import Explanation
from rtgauge.explain.trace.formats import TraceFormats
from rtgauge.explain.trace.moment import read_moment
from rtgauge_ext.network.late_answer import divided
from rtgauge_ext.network.path_probe import NET_EVENTS

LOOP, OTHER = 0, 1
"""The CPU of the measured thread, and the other one, on which causes are planted."""
LATE_S = 0.004
"""How long a planted cause lasts. Cycles above half of it are explained."""
BURSTS = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print(flush=True)
while True:
    time.sleep(0.05)
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        pass
"""
SWITCH = """
import array, fcntl, socket, struct, sys
asked = array.array("B", struct.pack("=II", int(sys.argv[2], 16), int(sys.argv[3])))
request = struct.pack("16sP16x", sys.argv[1].encode(), asked.buffer_info()[0])
fcntl.ioctl(socket.socket(), 0x8946, request)
"""
"""Turns a feature on or off by ioctl(2), as the program ethtool is often missing."""


def polled(both: TwoNamespaces) -> None:
    """Let NAPI poll the interface. A veth does so with GRO (ETHTOOL_SGRO), if the other end has no TSO
    (ETHTOOL_STSO).
    """
    subprocess.run([*both.far, sys.executable, "-c", SWITCH, "rtg-far", "1f", "0"], check=True)
    subprocess.run([*both.near, sys.executable, "-c", SWITCH, LINK, "2c", "1"], check=True)


@contextlib.contextmanager
def bursts(cpu: int, length_s: float = LATE_S) -> Generator[int]:
    """A task of the highest priority that takes the CPU every 50 ms. Its pid."""
    words = [sys.executable, "-c", BURSTS, str(cpu), str(length_s)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def write(both: TwoNamespaces, file: str, text: str, *, far: bool = False, link: str = LINK) -> None:
    """Write a file of an end's interface, in a mount of sysfs that shows the namespace."""
    prefix, link = (both.far, "rtg-far") if far else (both.near, link)
    script = f"mount -t sysfs none /sys && printf %s '{text}' >/sys/class/net/{link}/{file}"
    subprocess.run([*prefix, "unshare", "--mount", "sh", "-c", script], check=True)


def threaded(both: TwoNamespaces, cpu: int) -> int:
    """Let a thread on this CPU poll the interface. Its number."""
    before = napi_threads()
    polled(both)
    write(both, "threaded", "1")
    (thread,) = napi_threads() - before
    os.sched_setaffinity(thread, {cpu})
    return thread


def napi_threads() -> set[int]:
    """The kernel's threads that poll this interface's queues, of any namespace."""
    actual: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().startswith(f"napi/{LINK}"[:15]):
                actual.add(int(folder.name))
    return actual


SLOW = """
import ctypes, socket, struct, sys
filter = ctypes.create_string_buffer(struct.pack("=HBBI", 0, 0, 0, 1) * 4000 + struct.pack("=HBBI", 6, 0, 0, 0))
program = struct.pack("HP", 4001, ctypes.addressof(filter))
all = []
for _ in range(int(sys.argv[1])):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    one.setsockopt(socket.SOL_SOCKET, 26, program)
    one.bind((sys.argv[2], 3))
    all.append(one)
print(flush=True)
sys.stdin.read()
"""
"""Sockets that filter every packet by 4,000 instructions (SO_ATTACH_FILTER), and take none."""


@contextlib.contextmanager
def slow_packets(both: TwoNamespaces, sockets: int = 60, link: str = LINK) -> Generator[None]:
    """Let the kernel take long for each packet that it receives."""
    words = [*both.near, sys.executable, "-c", SLOW, str(sockets), link]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline(), "the kernel refuses the filter"
        yield
        process.communicate()


@contextlib.contextmanager
def flow(both: TwoNamespaces, near: bool, packets: int, cpu: int, to: str | None = None) -> Generator[None]:
    """Another flow: every 50 ms so many packets at once, from the near or the far end."""
    script = (
        "import os, socket, sys, time\n"
        "os.sched_setaffinity(0, {int(sys.argv[3])})\n"
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))\n"
        "end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); to = (sys.argv[1], 9)\n"
        "while True:\n"
        "    for _ in range(int(sys.argv[2])):\n"
        "        try: end.sendto(bytes(1000), to)\n"
        "        except OSError: pass\n"
        "    time.sleep(0.05)\n"
    )
    prefix = both.near if near else both.far
    to = to or (FAR if near else NEAR)
    with subprocess.Popen([*prefix, sys.executable, "-c", script, to, str(packets), str(cpu)]) as process:
        try:
            yield
        finally:
            process.kill()


def explained(
    engine: Path, both: TwoNamespaces, path: str, tmp_path: Path, *words: str, count: int = 150
) -> list[Explanation]:
    """Explain the cycles that took more than half as long as a planted cause."""
    folder = tmp_path / str(both.near[1]).replace("/", "-")
    folder.mkdir()
    with trace_instance(folder) as instance:
        completed = subprocess.run(
            [
                *both.near,
                str(engine),
                "path",
                "--go",
                f"--path={path}",
                f"--cpu={LOOP}",
                f"--count={count}",
                "--interval-ns=7000000",
                "--warm-up-ns=100000000",
                f"--explain-instance={instance.folder.name}",
                f"--explain-events=default,sched/sched_wakeup,{NET_EVENTS}",
                f"--explain-above-ns={round(LATE_S / 2 * 1e9)}",
                "--explain-buffer-kb=2048",
                *words,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert completed.returncode == 0, (
        completed.returncode,
        completed.stderr,
        [line for line in completed.stdout.splitlines() if "error" in line[:30]] or completed.stdout[-500:],
    )
    lines = [json.loads(line) for line in completed.stdout.splitlines()]
    formats = TraceFormats.read(next(line for line in lines if line["type"] == "trace_formats"))
    actual: list[Explanation] = []
    for line in lines:
        if line["type"] == "moment":
            whole = explain(read_moment(formats, line), formats.symbols)
            part = divided(whole, formats.symbols)
            assert sum(each.ns for each in part.parts) == whole.latency_ns == part.latency_ns
            actual.append(part)
    return actual
