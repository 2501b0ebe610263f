# SPDX-License-Identifier: MIT
"""`path` against the least program in C that does the same, in turn, between two network namespaces; and the
kernel's time stamps of its frames against a capture.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from figures import CannotMeasure, Figure, Findings, Repeated
from programs import engine, run, say
from tools import ordered

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from ext.network.tests.two_namespaces import FAR, LINK, TwoNamespaces
from rtgauge.record.samples import unpack_header

INTERVAL_NS = 503_000
LIMIT = 1.05
SOURCE = Path(__file__).with_name("ping_pong.c")
OURS, BARE, AGAIN = "rtgauge", "bare", "bare again"
PORT = 7007
FAR_LINK = "rtg-far"
CAPTURED = 10_000
AGREE_NS, AGREE_SHARE = 2_000, 0.999
ETH_P_ALL, SO_TIMESTAMPNS, SO_RCVBUFFORCE = 3, 35, 33


def measure(chosen: argparse.Namespace) -> Findings:
    """Rounds with slices of as many seconds as chosen; the chosen CPU sends, and another one answers."""
    others = sorted(os.sched_getaffinity(0) - {chosen.cpu})
    if not others:
        raise CannotMeasure("a far end on another CPU needs two CPUs")
    if os.geteuid():
        raise CannotMeasure("network namespaces need root")
    compiler = shutil.which("cc")
    if compiler is None:
        raise CannotMeasure("cc is not installed: apt-get install gcc libc6-dev")
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="rtgauge-bench-") as name, TwoNamespaces() as both:
        folder = Path(name)
        bare = folder / "ping_pong"
        run([compiler, "-O2", "-o", str(bare), str(SOURCE)])
        both.pings_without_rights()
        with _answering([*both.far, str(bare), "answer", str(others[0]), str(PORT)]):
            for what, port in (("a program that answers", PORT), ("the kernel answers", 0)):
                _compare(
                    findings, chosen, what, lambda name, port=port: _slice(name, both, folder, chosen, port)
                )
        _agreement(findings, both, folder, chosen.cpu)
    return findings


@contextmanager
def _answering(command: list[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            if program.stdout is None or not program.stdout.readline():
                raise CannotMeasure("the far end did not start")
            yield
        finally:
            program.kill()


def _compare(
    findings: Findings, chosen: argparse.Namespace, what: str, measure_once: Callable[[str], float]
) -> None:
    repeat = Repeated(chosen.rounds // 4)
    times: dict[str, list[float]] = {OURS: [], BARE: [], AGAIN: []}
    for number in range(chosen.rounds):
        names = ordered(list(times), number)
        now = repeat(lambda names=names: {name: measure_once(name) for name in names})
        for name, value in now.items():
            times[name].append(value)
        say(f"  {what}, round {number + 1} of {chosen.rounds}")
    findings.notes += repeat.note("rounds")
    ratios = [ours / np.sqrt(a * b) for ours, a, b in zip(*times.values(), strict=True)]
    noise = [a / b for a, b in zip(times[AGAIN], times[BARE], strict=True)]
    findings.figures += [
        Figure(f"{what}: median response, rtgauge / bare", [float(each) for each in ratios], at_most=LIMIT),
        Figure(f"{what}: median response, bare / bare", noise, note="noise"),
        *[Figure(f"{what}: median response, {name}", times[name], "ns") for name in (OURS, BARE)],
    ]


def _path(both: TwoNamespaces, folder: Path, cpu: int, port: int, interval_ns: int, count: int) -> None:
    where = f"udp:{FAR}:{port}" if port else f"icmp:{FAR}"
    words = ["path", "--go", f"--path={where}", f"--cpu={cpu}", f"--interval-ns={interval_ns}"]
    words += [f"--count={count}", "--warm-up-ns=0", "--priority=98", f"--samples-dir={folder}"]
    for file in folder.glob("samples-*"):
        file.unlink()
    run([*both.near, engine(), *words])


def _series(folder: Path, number: int) -> dict[int, int]:
    """Release (ns) and value (ns) of each cycle."""
    file = folder / f"samples-{number}.i64"
    return dict(np.fromfile(file, dtype="<i8", offset=64).reshape(-1, 2).tolist())


def _slice(name: str, both: TwoNamespaces, folder: Path, chosen: argparse.Namespace, port: int) -> float:
    """The median (ns) of one slice: from just before the send until just after the receive."""
    count = max(100, round(chosen.slice * 1e9 / INTERVAL_NS))
    if name == OURS:
        _path(both, folder, chosen.cpu, port, INTERVAL_NS, count)
        whole, wake_up = _series(folder, 0), _series(folder, 1)
        trips = [value - wake_up[release] for release, value in whole.items() if release in wake_up]
    else:
        words = ["send", str(chosen.cpu), FAR, str(port), str(INTERVAL_NS), str(count)]
        trips = [int(word) for word in run([*both.near, str(folder / "ping_pong"), *words]).split()]
    if not trips:
        raise CannotMeasure("no round trip was measured")
    return float(np.median(trips))


class _Capture:
    """Stamps each ICMP echo of a type that arrives at an interface, by the cycle in it."""

    def __init__(self, end: socket.socket, link: str, kind: int) -> None:
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end.bind((link, ETH_P_ALL))
        end.settimeout(0.2)
        self._socket, self._kind, self._over = end, kind, threading.Event()
        self.stamps: dict[int, int] = {}
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                data, control, _, sender = self._socket.recvmsg(2000, 256)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            echo = data[23:24] == b"\x01" and data[34] == self._kind
            if sender[2] == socket.PACKET_OUTGOING or not echo:
                continue
            seconds, ns = struct.unpack("qq", control[0][2])
            self.stamps[int.from_bytes(data[50:58], "big")] = seconds * 1_000_000_000 + ns

    def end(self) -> dict[int, int]:
        self._over.set()
        self._thread.join()
        self._socket.close()
        return self.stamps


def _agreement(findings: Findings, both: TwoNamespaces, folder: Path, cpu: int) -> None:
    """Compare the time from departure to arrival with the one between the receptions by both interfaces."""
    raw = (socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    there = _Capture(both.far_socket(*raw), FAR_LINK, 8)
    back = _Capture(both.near_socket(*raw), LINK, 0)
    say("  time stamps against a capture")
    try:
        interval_ns = 1_000_000
        _path(both, folder, cpu, 0, interval_ns, CAPTURED)
        start_ns = unpack_header((folder / "samples-3.i64").read_bytes()[:64], folder).start_ns
        ours = _series(folder, 3)
    finally:
        requests, replies = there.end(), back.end()
    numbers = {(release - start_ns) // interval_ns: value for release, value in ours.items()}
    both_know = [number for number in numbers if number in requests and number in replies]
    if len(both_know) < CAPTURED / 2:
        raise CannotMeasure(f"the capture has only {len(both_know)} of {CAPTURED} frames")
    apart = np.array([abs(numbers[each] - replies[each] + requests[each]) for each in both_know])
    findings.figures += [
        Figure("stamps within 2 us of a capture", [float((apart <= AGREE_NS).mean())], at_least=AGREE_SHARE),
        Figure("stamps from a capture, median", [float(np.median(apart))], "ns"),
        Figure("stamps from a capture, 99.9 %", [float(np.quantile(apart, AGREE_SHARE))], "ns"),
        Figure("frames compared", [float(len(both_know))], "frames"),
    ]
