# SPDX-License-Identifier: MIT
"""Two unnamed network namespaces, joined by a veth pair, and far ends that the tests themselves play."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

NEAR, FAR, PREFIX = "198.18.45.1", "198.18.45.2", 30
"""Addresses for benchmarks (RFC 2544)."""
NEAR_MAC, FAR_MAC = "02:00:00:00:45:01", "02:00:00:00:45:02"
LINK = "rtg-near"
OTHER_NEAR, OTHER_FAR, OTHER_LINK = "198.18.47.1", "198.18.47.2", "rtg-near-2"
CLONE_NEWNET = 0x40000000
READY = b"ready\n"


class TwoNamespaces:
    """A context. The namespaces vanish with the processes that hold them, however the test ends."""

    def __enter__(self) -> Self:
        self._holders = [
            subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for _ in range(2)
        ]
        if not all(holder.stdout and holder.stdout.readline() == READY for holder in self._holders):
            self.__exit__()
            raise AssertionError("needs network namespaces")
        far = self._holders[1].pid
        self._ip(f"link add {LINK} address {NEAR_MAC} type veth peer name rtg-far address {FAR_MAC}")
        self._ip(f"link set rtg-far netns {far}")
        for number, (link, address) in enumerate(((LINK, NEAR), ("rtg-far", FAR))):
            self._ip("link set lo up", number)
            self._ip(f"address add {address}/{PREFIX} dev {link}", number)
            self._ip(f"link set {link} up", number)
        return self

    def __exit__(self, *_: object) -> None:
        for holder in self._holders:
            holder.communicate()

    def _prefix(self, number: int) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._holders[number].pid}/ns/net", "--"]

    def _ip(self, words: str, number: int = 0) -> None:
        subprocess.run([*self._prefix(number), "ip", *words.split()], check=True)

    def other_link(self) -> None:
        """Join the namespaces by one more veth pair."""
        self._ip(f"link add {OTHER_LINK} type veth peer name rtg-far-2 netns {self._holders[1].pid}")
        for number, (link, address) in enumerate(((OTHER_LINK, OTHER_NEAR), ("rtg-far-2", OTHER_FAR))):
            self._ip(f"address add {address}/{PREFIX} dev {link}", number)
            self._ip(f"link set {link} up", number)

    @property
    def near(self) -> list[str]:
        """What puts a command into the namespace that measures."""
        return self._prefix(0)

    @property
    def far(self) -> list[str]:
        """What puts a command into the namespace of the far end."""
        return self._prefix(1)

    def far_socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A socket in the namespace of the far end."""
        return self._socket_in(1, family, kind, protocol)

    def near_socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A socket in the namespace that measures."""
        return self._socket_in(0, family, kind, protocol)

    def _socket_in(self, number: int, family: int, kind: int, protocol: int) -> socket.socket:
        made: list[socket.socket] = []

        def make() -> None:
            namespace = os.open(f"/proc/{self._holders[number].pid}/ns/net", os.O_RDONLY)
            try:
                assert ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) == 0
                made.append(socket.socket(family, kind, protocol))
            finally:
                os.close(namespace)

        thread = threading.Thread(target=make)  # only this thread changes its namespace
        thread.start()
        thread.join()
        return made[0]

    def pings_without_rights(self) -> None:
        """Let every user send echo requests."""
        path = "/proc/sys/net/ipv4/ping_group_range"
        subprocess.run([*self.near, "sh", "-c", f"echo 0 2147483647 > {path}"], check=True)


class FarEnd:
    """A far end in the test: each frame is given to `react`, which returns the frames to send back."""

    def __init__(self, end: socket.socket, react: Callable[[int, bytes], Sequence[bytes]]) -> None:
        self._socket, self._react = end, react
        self.seen = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        self._socket.settimeout(0.05)
        while not self._over.is_set():
            try:
                data, sender = self._socket.recvfrom(2000)
            except TimeoutError:
                continue
            for frame in self._react(self.seen, data):
                self._socket.sendto(frame, sender)
            self.seen += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def prefer(self, cpu: int) -> None:
        """Run before everything else on this CPU except the measured thread."""
        task = self._thread.native_id or 0
        os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(90))
        os.sched_setaffinity(task, {cpu})

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()


class ClockedDevice(FarEnd):
    """A far end that looks into its mailbox only once in a cycle of its own, and keeps a log of its cycles."""

    def __init__(self, end: socket.socket, period_ns: int) -> None:
        super().__init__(end, lambda _number, data: [data])
        self._period_ns = period_ns
        self.log: list[tuple[int, int]] = []
        """For each frame: the cycle of the device, and the loop's cycle."""

    def _serve(self) -> None:
        self._socket.setblocking(False)
        os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(50))
        start_ns, cycle = time.monotonic_ns(), 0
        while not self._over.is_set():
            cycle += 1
            time.sleep(max(0, start_ns + cycle * self._period_ns - time.monotonic_ns()) / 1e9)
            while True:
                try:
                    data, sender = self._socket.recvfrom(2000)
                except BlockingIOError:
                    break
                self._socket.sendto(data, sender)
                self.log.append((cycle, int.from_bytes(data[8:16], "big")))


def clocked_device(both: TwoNamespaces, period_ns: int) -> tuple[ClockedDevice, str]:
    """A device with a clock of its own at a UDP port, and its path."""
    end = both.far_socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((FAR, 0))
    return ClockedDevice(end, period_ns), f"udp:{FAR}:{end.getsockname()[1]}"


def udp_far_end(both: TwoNamespaces, react: Callable[[int, bytes], Sequence[bytes]]) -> tuple[FarEnd, str]:
    """A far end at a UDP port, and its path."""
    end = both.far_socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((FAR, 0))
    return FarEnd(end, react), f"udp:{FAR}:{end.getsockname()[1]}"


def packet_far_end(
    both: TwoNamespaces, ethertype: int, react: Callable[[int, bytes], Sequence[bytes]]
) -> FarEnd:
    """A far end for Ethernet frames of this type; `react` gets and returns what is after their header."""
    end = both.far_socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ethertype))
    end.bind(("rtg-far", ethertype))
    return FarEnd(end, react)
