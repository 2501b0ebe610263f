# SPDX-License-Identifier: MIT
"""Causes of late answers that the test itself plants, one at a time: the planted one took the most time of more
cycles than any other, and the parts of each cycle add up exactly.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ext.network.tests.planted import (
    LATE_S,
    LOOP,
    OTHER,
    bursts,
    explained,
    flow,
    polled,
    slow_packets,
    threaded,
    write,
)
from ext.network.tests.two_namespaces import LINK, OTHER_LINK, OTHER_NEAR, TwoNamespaces, udp_far_end
from rtgauge.explain.analysis.explanation import DEVICE, SELF, Culprit, Explanation, Kind
from rtgauge.explain.analysis.ranking import ranked_culprits
from rtgauge_ext.network.late_answer import OTHER_FLOWS, TIMER

pytestmark = [
    pytest.mark.engine,
    pytest.mark.root,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
]
STRENGTHS = (1, 2, 4, 8)
"""How many times as many packets a storm has: a fast machine is not late with few. The other causes have as
many tries, because other work of a busy machine may delay more cycles than the cause.
"""
SLOW_EVERY = 5


@pytest.fixture
def both() -> Iterator[TwoNamespaces]:
    with TwoNamespaces() as made:
        yield made


def at_once(_number: int, data: bytes) -> Sequence[bytes]:
    return [data]


def slowly(number: int, data: bytes) -> Sequence[bytes]:
    if number % SLOW_EVERY == 0:
        time.sleep(LATE_S)
    return [data]


def nothing(_both: TwoNamespaces, _strength: int) -> AbstractContextManager[object]:
    return contextlib.nullcontext()


@contextlib.contextmanager
def shaped(both: TwoNamespaces, _strength: int) -> Generator[None]:
    """A rate of 20 Mbit/s, and another flow that needs 6 ms of it every 50 ms."""
    shaper = ["tc", "qdisc", "replace", "dev", LINK, "root", "tbf", "rate", "20mbit", "burst", "3000"]
    completed = subprocess.run(
        [*both.near, *shaper, "latency", "200ms"], capture_output=True, text=True, check=False
    )
    if completed.returncode:
        pytest.skip(f"this kernel has no tbf: {completed.stderr.strip()}")
    with flow(both, near=True, packets=15, cpu=OTHER):
        yield


def _real_time_poll(both: TwoNamespaces) -> None:
    os.sched_setscheduler(threaded(both, OTHER), os.SCHED_FIFO, os.sched_param(50))


@contextlib.contextmanager
def hog_before_poll(both: TwoNamespaces, _strength: int) -> Generator[None]:
    _real_time_poll(both)
    with bursts(OTHER):
        yield


def hog_before_loop(_both: TwoNamespaces, _strength: int) -> AbstractContextManager[object]:
    return bursts(LOOP)


@contextlib.contextmanager
def storm(both: TwoNamespaces, strength: int) -> Generator[None]:
    _real_time_poll(both)
    with slow_packets(both), flow(both, near=False, packets=100 * strength, cpu=LOOP):
        yield


@contextlib.contextmanager
def steered_storm(both: TwoNamespaces, strength: int) -> Generator[None]:
    write(both, "queues/rx-0/rps_cpus", f"{1 << OTHER:x}")
    with slow_packets(both), flow(both, near=False, packets=100 * strength, cpu=LOOP):
        yield


@contextlib.contextmanager
def storm_on_the_loop(both: TwoNamespaces, strength: int) -> Generator[None]:
    """Packets of another interface interrupt the CPU of the loop. The loop's frames are received on the other
    CPU, so they never wait behind these packets.
    """
    both.other_link()
    write(both, "queues/rx-0/rps_cpus", f"{1 << LOOP:x}", link=OTHER_LINK)
    write(both, "queues/rx-0/rps_cpus", f"{1 << OTHER:x}", far=True)
    with (
        slow_packets(both, 60 * strength, OTHER_LINK),
        flow(both, near=False, packets=100, cpu=OTHER, to=OTHER_NEAR),
    ):
        yield


@contextlib.contextmanager
def deferred(both: TwoNamespaces, _strength: int) -> Generator[None]:
    """As a card does that gathers packets: the poll waits for a timer."""
    polled(both)
    write(both, "napi_defer_hard_irqs", "200")
    write(both, "gro_flush_timeout", str(round(LATE_S * 1e9)))
    yield


React = Callable[[int, bytes], Sequence[bytes]]
Plant = Callable[[TwoNamespaces, int], AbstractContextManager[object]]
PLANTS: dict[str, tuple[React, Plant, Culprit]] = {
    "slow device": (slowly, nothing, Culprit(Kind.FAR_END, LINK, side=DEVICE)),
    "shaper": (at_once, shaped, Culprit(Kind.SEND_QUEUE, LINK, until=OTHER_FLOWS, side=SELF)),
    "hog before the poll": (
        at_once,
        hog_before_poll,
        Culprit(Kind.POLL_KEPT, "python", until="napi/", side=SELF),
    ),
    "late send": (at_once, hog_before_loop, Culprit(Kind.TASK, "python", side=SELF)),
    "another flow": (at_once, storm, Culprit(Kind.POLL, LINK, until=OTHER_FLOWS, side=SELF)),
    "RPS": (at_once, steered_storm, Culprit(Kind.POLL, LINK, mechanism="RPS", until=OTHER_FLOWS, side=SELF)),
    "interrupt": (
        at_once,
        storm_on_the_loop,
        Culprit(Kind.SOFTIRQ, "NET_RX", mechanism="RPS", until=OTHER_LINK, side=SELF),
    ),
    "gathered": (at_once, deferred, Culprit(Kind.POLL, LINK, until=TIMER, side=SELF)),
}
FAR_CPUS = {"interrupt": OTHER}
"""The CPU of the far end, if the cause would delay it on the loop's CPU."""


def is_planted(actual: Culprit, planted: Culprit) -> bool:
    return (
        actual.kind is planted.kind
        and actual.name.startswith(planted.name)
        and actual.mechanism == planted.mechanism
        and actual.until.startswith(planted.until)
        and actual.side == planted.side
    )


def late(actual: Sequence[Explanation]) -> list[Explanation]:
    return [known for known in actual if known.latency_ns > LATE_S / 2 * 1e9]


@pytest.mark.parametrize("name", PLANTS)
def test_the_planted_cause_is_named(name: str, engine: Path, tmp_path: Path) -> None:
    react, plant, culprit = PLANTS[name]
    observed: list[tuple[Culprit, int, int]] = []
    for strength in STRENGTHS:
        with TwoNamespaces() as both:
            end, path = udp_far_end(both, react)
            with end, plant(both, strength):
                end.prefer(FAR_CPUS.get(name, LOOP))
                actual = late(explained(engine, both, path, tmp_path))
        if actual:
            most = max(ranked_culprits(actual), key=lambda ranked: ranked.outliers)
            observed.append((most.culprit, most.outliers, len(actual)))
            if is_planted(most.culprit, culprit):
                return
    pytest.fail(f"{culprit} was not named: {observed}")


class Capture:
    """Every packet of the near end with its time stamp, as a program that captures gets them."""

    def __init__(self, both: TwoNamespaces) -> None:
        script = (
            "import socket, struct, sys, threading, time\n"
            "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))\n"
            "s.setsockopt(socket.SOL_SOCKET, 35, 1); s.bind((sys.argv[1], 3))\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)\n"
            "threading.Thread(target=lambda: (sys.stdin.read(), __import__('os')._exit(0)), daemon=True).start()\n"
            "print(flush=True)\n"
            "while True:\n"
            "    data, extra, _, sender = s.recvmsg(2000, 200)\n"
            "    apart = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()\n"
            "    seconds, ns = struct.unpack('qq', extra[0][2][:16])\n"
            "    print(seconds * 10**9 + ns - apart, int(sender[2] == 4), len(data), flush=True)\n"
        )
        self._process = subprocess.Popen(
            [*both.near, sys.executable, "-c", script, LINK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self._lines: list[str] = []
        self._reader = threading.Thread(target=lambda: self._lines.extend(self._process.stdout or ()))
        self._reader.start()

    def end(self) -> list[tuple[int, bool]]:
        """(CLOCK_MONOTONIC in ns, whether it was sent) of each packet."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join()
        self._process.wait()
        return [(int(line.split()[0]), line.split()[1] == "1") for line in self._lines]


def test_the_wire_and_the_device_took_as_long_as_a_capture_says(
    engine: Path, both: TwoNamespaces, tmp_path: Path
) -> None:
    end, path = udp_far_end(both, slowly)
    capture = Capture(both)
    with end:
        end.prefer(LOOP)
        actual = late(explained(engine, both, path, tmp_path))
    packets = capture.end()
    ratios: list[float] = []
    for known in actual:
        moment = known.moment
        within = [packet for packet in packets if moment.release_ns <= packet[0] <= moment.end_ns]
        sent, got = [at for at, out in within if out], [at for at, out in within if not out]
        parts = [part.ns for part in known.parts if part.culprit.kind is Kind.FAR_END]
        if sent and got and parts:
            ratios.append(parts[0] / (got[-1] - sent[0]))
    assert len(ratios) >= len(actual) / 2 > 0
    assert statistics.median(ratios) == pytest.approx(1, abs=0.1)
