# SPDX-License-Identifier: MIT
"""The kernel's answers about network interfaces, from this kernel, in a network namespace of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtgauge.record.facts import NetworkInterface
from rtgauge.system.threads import PATHS as THREADS
from rtgauge.target.file_batch import Files, files_of
from rtgauge_ext.audit import interface_facts as network

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = [pytest.mark.engine, pytest.mark.root]
SYSFS = "mount -t sysfs none /sys"
"""A new namespace shows its interfaces in a new mount only."""
GATHER = """
import array, fcntl, socket, struct, sys
asked = array.array("B", struct.pack("=II", 0x2C, 1))
request = struct.pack("16sP16x", sys.argv[1].encode(), asked.buffer_info()[0])
fcntl.ioctl(socket.socket(), 0x8946, request)
"""
"""Turns GRO on (ETHTOOL_SGRO). A veth then has NAPI instances."""


class Namespace:
    """A network namespace that ends with its process."""

    def __init__(self, engine: Path) -> None:
        self.engine = engine
        self.process = subprocess.Popen(
            ["unshare", "-n", "-m", "sh", "-c", f"{SYSFS} && echo ready && exec sleep 1000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready", "needs network namespaces"

    def run(self, *words: str, given: str = "") -> str:
        inside = ["nsenter", "-t", str(self.process.pid), "-n", "-m", *words]
        completed = subprocess.run(inside, input=given, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def read(self, paths: Iterable[str]) -> Files:
        return files_of(self.run(str(self.engine), "read", "-", given="\n".join(paths)).encode()).files

    def facts(self, name: str) -> NetworkInterface:
        return network.facts(name, self.read([*network.paths(name), *THREADS]), {})


@pytest.fixture
def namespace(engine: Path) -> Iterator[Namespace]:
    made = Namespace(engine)
    yield made
    made.process.kill()
    made.process.wait()


def shown(namespace: Namespace, name: str) -> dict[str, Any]:
    """As iproute2 shows the interface."""
    return json.loads(namespace.run("ip", "-j", "-d", "link", "show", "dev", name))[0]


def test_facts_agree_with_iproute2(namespace: Namespace) -> None:
    namespace.run("ip", "link", "add", "near", "numtxqueues", "3", "type", "veth", "peer", "name", "far")
    namespace.run("ip", "link", "set", "near", "up", "mtu", "1400")
    namespace.run("tc", "qdisc", "add", "dev", "near", "root", "pfifo")
    for name in ("near", "far", "lo"):
        actual, reported = namespace.facts(name), shown(namespace, name)
        assert (actual.mtu, actual.qdisc) == (reported["mtu"], reported["qdisc"])
        assert (actual.tx_queues, actual.rx_queues) == (reported["num_tx_queues"], reported["num_rx_queues"])
        assert actual.driver == reported.get("linkinfo", {}).get("info_kind")
        assert actual.virtual
        assert actual.coalescing.rx_us == "none"
        assert actual.hardware_clock == "none"


def test_a_poll_in_threads_is_reported_with_its_threads(namespace: Namespace) -> None:
    namespace.run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    for name in ("near", "far"):
        namespace.run("ip", "link", "set", name, "up")
        namespace.run(sys.executable, "-c", GATHER, name)
    machine_facts = namespace.facts("near")
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    assert (machine_facts.napi is not None) == (release >= (6, 8)), (
        "the kernel lists NAPI instances since Linux 6.8"
    )
    if machine_facts.napi is None:
        return
    assert machine_facts.threaded is False
    namespace.run("sh", "-c", "echo 1 >/sys/class/net/near/threaded")
    machine_facts = namespace.facts("near")
    assert machine_facts.threaded is True
    for each in machine_facts.napi or []:
        assert each.pid is not None
        assert Path(f"/proc/{each.pid}/comm").read_text().startswith("napi/near")
        os.sched_setscheduler(each.pid, os.SCHED_FIFO, os.sched_param(7))
    assert machine_facts.napi
    assert namespace.facts("near").napi_priority == 7


def test_the_route_leads_to_the_interface(namespace: Namespace) -> None:
    namespace.run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    for words in (["addr", "add", "10.9.0.1/24", "dev", "near"], ["link", "set", "near", "up"]):
        namespace.run("ip", *words)
    namespace.run("ip", "-6", "addr", "add", "fd09::1/64", "dev", "near", "nodad")
    assert network.interface_of(namespace.read, "10.9.0.2") == "near"
    assert network.interface_of(namespace.read, "fd09::2") == "near"
    assert network.interface_of(namespace.read, "far") == "far"
    assert namespace.read(["netlink:route:10.8.0.1"]).error("netlink:route:10.8.0.1") == "ENETUNREACH"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("netlink:link:none", "ENODEV"),
        ("netlink:rings:none", "ENODEV"),
        ("netlink:rings:lo", "ENOTSUP"),
        ("netlink:route:1.2.3", "EINVAL"),
        ("netlink:set:lo", "ENOENT"),
        ("netlink:rings:", "ENOENT"),
        ("netlink:rings:a-name-that-is-too-long", "ENOENT"),
    ],
)
def test_an_unanswerable_request_reads_as_an_error(namespace: Namespace, name: str, error: str) -> None:
    assert namespace.read([name]).error(name) == error
