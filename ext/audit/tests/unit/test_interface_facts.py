# SPDX-License-Identifier: MIT
"""The facts of a network interface, what the audit makes of them, and what trials may change of it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.system import machines

from rtgauge.errors import InputError, MeasureError
from rtgauge.record.facts import NetworkInterface
from rtgauge.system.collect_facts import facts
from rtgauge.system.deployment.definition import parse_deployment
from rtgauge.system.deployment.machine_state import Machine
from rtgauge.target.file_batch import Files
from rtgauge_ext.audit import interface_facts as network
from rtgauge_ext.audit.audit import Finding, audit
from rtgauge_ext.audit.interface_facts import KINDS, interface_of
from rtgauge_ext.audit.netlink import Nest, attributes, messages
from rtgauge_ext.audit.protected import PATHS, why_kept
from rtgauge_ext.audit.rules import read_rules
from rtgauge_ext.audit.trial_settings import trial_settings

GENERIC, LINK, ROUTE = bytes(4), bytes(16), bytes(12)
"""Headers that precede the attributes."""


def attribute(number: int, content: bytes | int | str) -> bytes:
    match content:
        case int():
            content = struct.pack("=I", content)
        case str():
            content = content.encode() + b"\0"
        case _:
            pass
    length = 4 + len(content)
    return struct.pack("=HH", length, number) + content + bytes(-length % 4)


def nest(number: int, *inside: bytes) -> bytes:
    return attribute(number | 0x8000, b"".join(inside))


def message(header: bytes, *inside: bytes) -> bytes:
    content = header + b"".join(inside)
    return struct.pack("=IHHII", 16 + len(content), 30, 0, 1, 0) + content


def bits(number: int, *names: str) -> bytes:
    """A bit set of ethtool with names."""
    return nest(number, attribute(1, b""), nest(3, *(nest(1, attribute(2, name)) for name in names)))


def switch(number: int, value: bool) -> bytes:
    return attribute(number, bytes([value]))


def napi(number: int, irq: int, pid: int, defer: int) -> bytes:
    values = ((1, 3), (2, number), (3, irq), (4, pid), (5, defer), (7, 20_000), (8, 1))
    return message(GENERIC, *(attribute(*value) for value in values), attribute(6, struct.pack("=Q", 30_000)))


def queue(number: int, kind: int, served_by: int) -> bytes:
    return message(
        GENERIC, *(attribute(*value) for value in ((1, number), (2, 3), (3, kind), (4, served_by)))
    )


ANSWERS = {
    "link": message(
        LINK,
        attribute(3, "eth1"),
        attribute(4, 1500),
        attribute(6, "tbf"),
        attribute(31, 2),
        attribute(32, 4),
        nest(18, attribute(1, "veth")),
    ),
    "features": message(GENERIC, bits(4, "rx-gro", "rx-lro", "tx-nocache-copy")),
    "rings": message(GENERIC, attribute(2, 4096), attribute(6, 256), attribute(9, 512)),
    "channels": message(GENERIC, attribute(5, 8), attribute(9, 2)),
    "coalesce": message(GENERIC, attribute(2, 50), attribute(3, 0), attribute(6, 0), switch(11, value=True)),
    "pause": message(GENERIC, switch(2, value=True), switch(3, value=True), switch(4, value=False)),
    "eee": message(GENERIC, switch(4, value=False), switch(5, value=True)),
    "stamping": message(GENERIC, bits(2, "software-transmit", "hardware-receive"), attribute(5, 1)),
    "queues": queue(0, 0, 70) + queue(0, 1, 70) + queue(1, 0, 71),
    "napi": napi(70, 33, 900, 0) + napi(71, 34, 901, 2),
}


def thread(tid: int, name: str, policy: int, priority: int) -> dict[str, str]:
    fields = ["S", "2", "0", "0", "0", "-1", str(0x00200000), *["0"] * 12, "100", *["0"] * 17, str(priority)]
    return {f"/proc/{tid}/task/{tid}/stat": f"{tid} ({name}) {' '.join([*fields, str(policy)])}"}


def card(**answers: bytes) -> Files:
    """A PC with the card eth1."""
    folder = "/sys/class/net/eth1"
    requested = {
        f"netlink:{kind}:eth1": {"base64": base64.b64encode(content).decode()}
        for kind, content in (ANSWERS | answers).items()
    }
    links = {
        f"{folder}/device": {"link": "../../../0000:02:00.0", "directory": ["driver"]},
        f"{folder}/device/driver": {"link": "../../../../bus/pci/drivers/igc", "directory": []},
        f"{folder}/device/msi_irqs": {"directory": ["33", "34", "35"]},
    }
    texts = machines.texts(
        {
            **{f"/proc/irq/{irq}/smp_affinity_list": "3\n" for irq in (33, 34, 35, 40, 41)},
            "/proc/irq/34/smp_affinity_list": "0-1\n",
            "/sys/kernel/irq/33/actions": "eth1-TxRx-0\n",
            "/sys/kernel/irq/34/actions": "eth1-TxRx-1\n",
            "/sys/kernel/irq/40/actions": "eth10-TxRx-0\n",
            f"{folder}/speed": "1000\n",
            f"{folder}/threaded": "1\n",
            f"{folder}/gro_flush_timeout": "20000\n",
            f"{folder}/napi_defer_hard_irqs": "0\n",
            f"{folder}/queues/rx-0/rps_cpus": "8\n",
            f"{folder}/queues/rx-1/rps_cpus": "0\n",
            f"{folder}/queues/tx-0/xps_cpus": "3\n",
            **thread(900, "napi/eth1-70", 1, 50),
            **thread(901, "napi/eth1-71", 0, 0),
            **thread(902, "napi/eth10-72", 0, 0),
        }
    )
    return machines.bare_metal_rt() | texts | requested | links


def test_what_the_kernel_says_of_a_card() -> None:
    actual = facts(card(), interface="eth1").as_json()["network"]
    assert {key: value for key, value in actual.items() if key not in {"napi", "coalescing"}} == {
        "name": "eth1",
        "driver": "igc",
        "virtual": False,
        "speed_mbit": 1000,
        "mtu": 1500,
        "qdisc": "tbf",
        "rx_queues": 4,
        "tx_queues": 2,
        "channels": 2,
        "irqs": ["33", "34"],
        "irq_cpus": "0-1,3",
        "threaded": True,
        "napi_priority": 0,
        "gro_flush_timeout_ns": 20000,
        "defer_hard_irqs": 0,
        "energy_efficient": True,
        "rx_ring": 256,
        "tx_ring": 512,
        "rps_cpus": "3",
        "xps_cpus": "0-1",
        "rfs_flows": "unknown",
        "gathers": ["lro"],
        "flow_control": "receive",
        "stamps": ["software-transmit", "hardware-receive"],
        "hardware_clock": "ptp1",
    }
    assert actual["coalescing"] == {
        "adaptive_rx": True,
        "adaptive_tx": "none",
        "rx_us": 50,
        "rx_frames": 0,
        "tx_us": 0,
        "tx_frames": "none",
    }
    assert actual["napi"][1] == {
        "id": 71,
        "irq": 34,
        "pid": 901,
        "threaded": True,
        "defer_hard_irqs": 2,
        "gro_flush_timeout_ns": 30000,
        "irq_suspend_timeout_ns": 20000,
        "queues": ["rx-1"],
    }


def test_what_is_not_known_is_not_filled_in() -> None:
    nothing = facts(Files(), interface="eth1").as_json()["network"]
    assert nothing.pop("name") == "eth1"
    coalescing = nothing.pop("coalescing")
    assert set(coalescing.values()) == {"unknown"}
    assert {key for key, value in nothing.items() if value != "unknown"} <= {"virtual", "irqs", "irq_cpus"}
    lacking = Files({f"netlink:{kind}:eth1": {"error": "ENOTSUP"} for kind in KINDS})
    actual = facts(lacking, interface="eth1").as_json()["network"]
    assert (actual["energy_efficient"], actual["flow_control"], actual["napi"]) == ("none", "none", "unknown")
    assert set(actual["coalescing"].values()) == {"none"}


@given(st.binary(max_size=200))
def test_no_answer_raises_an_error(content: bytes) -> None:
    for each in messages(content):
        assert content.find(each) >= 0
    assert sum(len(each.content) + 4 for each in attributes(content)) <= len(content)
    assert Nest(content).text(1) is None or Nest(content).text(1) != ""
    network.facts("eth1", card(**dict.fromkeys(KINDS, content)), {})
    for kind, answer in ANSWERS.items():
        network.facts("eth1", card(**{kind: answer[:-1] + content}), {})


@given(st.data())
def test_a_cut_or_changed_answer_raises_no_error(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    changed = bytearray(ANSWERS[kind])
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(changed[: data.draw(st.integers(0, len(changed)))])
    machine_facts = network.facts("eth1", card(**{kind: cut}), {})
    assert NetworkInterface.model_validate(machine_facts.model_dump()) == machine_facts


@given(st.lists(st.tuples(st.integers(1, 0x3FFF), st.binary(max_size=9)), max_size=5))
def test_what_is_written_is_read(inside: list[tuple[int, bytes]]) -> None:
    written = message(GENERIC, *(attribute(number, content) for number, content in inside))
    (read,) = messages(written)
    assert [*attributes(read[4:])] == inside


def findings(files: Files, interface: str | None) -> dict[str, Finding]:
    actual = audit(read_rules(), facts(files, interface=interface), files).findings
    names = {rule.id for rule in read_rules() if rule.interface}
    return {each.rule: each for each in actual if each.rule in names}


def test_the_audit_judges_the_interface_that_is_named() -> None:
    assert findings(card(), None) == {}
    actual = findings(card(), "eth1")
    differing = {
        "rps",
        "network-interrupts-at-once",
        "energy-efficient-ethernet",
        "network-polls-at-once",
        "napi-thread-priority",
        "network-irqs-on-isolated",
        "network-gathers",
        "network-flow-control",
        "network-shaper",
    }
    assert {name for name, each in actual.items() if each.result == "differs"} == differing
    assert (actual["threaded-napi"].result, actual["rfs"].result) == ("ok", "unknown")
    assert "ethtool -C eth1 adaptive-rx off" in actual["network-interrupts-at-once"].remedy
    assert "/sys/class/net/eth1/gro_flush_timeout" in actual["network-polls-at-once"].remedy


def read_from(files: Files, address: str) -> str:
    def read(requested: Iterable[str]) -> Files:
        actual = {path: files.get(path, {"error": "ENOENT"}) for path in requested if "*" not in path}
        return Files(actual | {path: files[path] for path in files if path.endswith("/ifindex")})

    return interface_of(read, address)


def test_an_interface_is_found_by_its_name_or_by_the_route() -> None:
    route = base64.b64encode(message(ROUTE, attribute(1, b"\x0a\0\0\x02"), attribute(4, 3))).decode()
    files = machines.texts({"/sys/class/net/eth0/ifindex": "2\n", "/sys/class/net/eth1/ifindex": "3\n"})
    files |= {
        "netlink:route:10.0.0.2": {"base64": route},
        "netlink:route:10.0.0.9": {"error": "ENETUNREACH"},
    }
    assert read_from(files, "eth0") == "eth0"
    assert read_from(files, "10.0.0.2") == "eth1"
    with pytest.raises(MeasureError, match=r"no route to 10\.0\.0\.9 \(ENETUNREACH\)"):
        read_from(files, "10.0.0.9")
    for wrong in ("eth2", "", "..", "a/b", "host.name.of.a.peer"):
        with pytest.raises(InputError, match="is not a network interface"):
            read_from(files, wrong)


ROUTES = """Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
eth1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth2\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def reached(connection: str = "", path: str = "/proc/net/tcp", **files: str) -> Files:
    return machines.texts(
        {
            "/sys/devices/system/cpu/online": "0-3",
            "/proc/net/route": ROUTES,
            path: f"{HEADER}   0: 0201A8C0:0016 {connection} 01 00000000:00000000\n"
            if connection
            else HEADER,
            **{f"/sys/class/net/eth{number}/threaded": "0" for number in range(4)},
            **files,
        }
    )


def test_a_named_interface_is_changed_and_no_other() -> None:
    def changed(interface: str | None, files: Files) -> list[str]:
        return [
            setting.path
            for setting in trial_settings(["threaded-napi"], Machine(files), None, None, interface)
        ]

    assert changed("eth1", reached()) == ["/sys/class/net/eth1/threaded"]
    assert changed("eth3", reached()) == ["/sys/class/net/eth3/threaded"]
    assert changed(None, reached()) == ["/sys/class/net/eth3/threaded"]
    assert changed("eth0", reached()) == []


@pytest.mark.parametrize(
    ("connection", "path", "kept"),
    [
        ("0901A8C0:C350", "/proc/net/tcp", "eth1"),
        ("0902A8C0:C350", "/proc/net/tcp", "eth2"),
        ("0000000000000000FFFF00000901A8C0:C350", "/proc/net/tcp6", "eth1"),
        ("0908080808:C350", "/proc/net/tcp", ""),
        ("08080808:C350", "/proc/net/tcp", ""),
    ],
)
def test_the_interface_that_reaches_a_machine_is_kept(connection: str, path: str, kept: str) -> None:
    assert {"/proc/net/tcp", "/proc/net/tcp6"} <= set(PATHS)
    files = reached(connection, path)
    assert {name for name in ("eth1", "eth2") if why_kept(name, files)} == ({kept} - {""})
    assert "default route" in (why_kept("eth0", files) or "")
    listening = reached(connection.replace(" 01 ", " 0A "), path)
    assert why_kept("eth0", listening) is not None


def test_a_connection_by_ipv6_keeps_the_interface() -> None:
    line = (
        f"{'fd00' + 4 * '0000' + 3 * '0000'} 40 {'0' * 32} 00 {'0' * 32} 00000100 00000001 00000000 00000001"
    )
    words = "".join(f"{word:08X}" for word in struct.unpack("=4I", bytes.fromhex("fd00" + 13 * "00" + "09")))
    files = reached(f"{words}:0016", "/proc/net/tcp6", **{"/proc/net/ipv6_route": f"{line}     eth2\n"})
    assert why_kept("eth2", files) is not None
    assert why_kept("eth1", files) is None


def test_a_deployment_names_the_interface() -> None:
    deployment = parse_deployment("settings=threaded-napi,interface=eth1")
    assert parse_deployment(deployment.name) == deployment
    assert deployment.interface == "eth1"
    with pytest.raises(InputError, match="must be a network interface such as eth1"):
        parse_deployment("settings=threaded-napi,interface=../eth1")
