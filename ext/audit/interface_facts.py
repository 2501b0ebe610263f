# SPDX-License-Identifier: MIT
"""Collects the facts of one network interface: its driver, queues, interrupts and settings.

The numbers of attributes are from include/uapi/linux: ethtool_netlink_generated.h, netdev.h and if_link.h.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal

from rtgauge.errors import InputError, MeasureError
from rtgauge.record.facts import Coalescing, InterruptLine, Napi, NetworkInterface
from rtgauge.system.threads import COMM_BYTES, threads
from rtgauge.target.file_batch import Files, Read
from rtgauge.units import format_cpu_list, parse_cpu_list, parse_cpu_mask
from rtgauge_ext.audit.netlink import GENERIC_BYTES, LINK_BYTES, ROUTE_BYTES, Nest, messages

NET = "/sys/class/net"
KINDS = (
    "link",
    "features",
    "rings",
    "channels",
    "coalesce",
    "pause",
    "eee",
    "stamping",
    "queues",
    "napi",
)
"""The questions that the engine asks about an interface by netlink."""
LACKS = frozenset({"ENOTSUP", "EOPNOTSUPP"})
OUTPUT_INTERFACE = 4
"""RTA_OIF"""
FEATURES = {"rx-lro": "lro", "rx-gro-hw": "gro-hw"}
"""The kernel's names of the features that gather packets, and their names in the facts."""


def interface_of(read: Read, named: str) -> str:
    """Return the name of an interface that is given by its name, or by the IP address of a peer to which the
    target's route leads.

    Raises InputError if there is no such interface, MeasureError if the peer has no route.
    """
    try:
        address = str(ipaddress.ip_address(named))
    except ValueError:
        path = f"{NET}/{named}/ifindex"
        is_name = re.fullmatch(r"[^/:\s\x00-\x1f]{1,15}", named) and named not in {".", ".."}
        if is_name and read([path]).number(path) is not None:
            return named
        raise InputError(
            f"'{named}' is not a network interface of the target; list its interfaces with ip link, or give "
            "the IP address of the peer"
        ) from None
    question = f"netlink:route:{address}"
    files = read([question, f"{NET}/*/ifindex"])
    index = _nest(files, question, ROUTE_BYTES).number(OUTPUT_INTERFACE)
    for match, text in files.matching(rf"{NET}/([^/]{{1,15}})/ifindex"):
        if index is not None and text == str(index):
            return match[1]
    why = files.error(question)
    raise MeasureError(
        f"the target has no route to {address}{f' ({why})' if why else ''}; add one with ip route"
    )


def paths(name: str) -> list[str]:
    """Return what to read for the facts of an interface."""
    folder = f"{NET}/{name}"
    return [
        *(f"netlink:{kind}:{name}" for kind in KINDS),
        *(f"{folder}/{file}" for file in ("device", "device/driver", "device/irq", "device/msi_irqs")),
        *(f"{folder}/{file}" for file in ("speed", "threaded", "gro_flush_timeout", "napi_defer_hard_irqs")),
        *(f"{folder}/queues/{file}" for file in ("rx-*/rps_cpus", "rx-*/rps_flow_cnt", "tx-*/xps_cpus")),
    ]


def facts(name: str, files: Files, lines: Mapping[str, InterruptLine]) -> NetworkInterface:
    """Return the facts of an interface, from `paths` and the threads' files. `lines`: all interrupts."""
    folder = f"{NET}/{name}"
    link = _nest(files, f"netlink:link:{name}", LINK_BYTES)
    kind = link.nest(18).text(1)  # IFLA_LINKINFO, IFLA_INFO_KIND
    driver = PurePosixPath(str(files.get(f"{folder}/device/driver", {}).get("link", ""))).name
    features = _answer(files, "features", name)
    channels, rings = _answer(files, "channels", name), _answer(files, "rings", name)
    pause, stamping = _answer(files, "pause", name), _answer(files, "stamping", name)
    napi = _napi(files, name)
    irqs = _irqs(files, name, napi, lines)
    active = None if features is None else features.bits(4)
    stamps = None if stamping is None else stamping.bits(2)
    priorities = _thread_priorities(files, name, napi)
    return NetworkInterface(
        name=name,
        driver=driver or kind,
        virtual=f"{folder}/device" not in files or not files.exists(f"{folder}/device"),
        speed_mbit=speed if (speed := files.number(f"{folder}/speed")) and speed > 0 else None,
        mtu=link.number(4),
        qdisc=link.text(6),
        rx_queues=link.number(32),
        tx_queues=link.number(31),
        channels=None if channels is None else (channels.number(9) or channels.number(6)),
        irqs=irqs,
        irq_cpus=_cpus_of(irqs, lines),
        napi=napi,
        threaded=_threaded(files, folder, napi),
        napi_priority=min(priorities, default=None),
        gro_flush_timeout_ns=files.number(f"{folder}/gro_flush_timeout"),
        defer_hard_irqs=files.number(f"{folder}/napi_defer_hard_irqs"),
        coalescing=_coalescing(files, name),
        energy_efficient=_energy_efficient(files, name),
        rx_ring=None if rings is None else rings.number(6),
        tx_ring=None if rings is None else rings.number(9),
        rps_cpus=_steered(files, folder, "rx", "rps"),
        xps_cpus=_steered(files, folder, "tx", "xps"),
        rfs_flows=_most(files, rf"{re.escape(folder)}/queues/rx-[0-9]{{1,4}}/rps_flow_cnt"),
        gathers=None if active is None else [FEATURES[each] for each in active if each in FEATURES],
        flow_control=_pauses(files, name, pause),
        stamps=stamps,
        hardware_clock=_clock(stamping),
    )


def _content(files: Files, name: str) -> bytes:
    try:
        return base64.b64decode(str(files.get(name, {}).get("base64", "")), validate=True)
    except ValueError:
        return b""


def _nest(files: Files, name: str, header: int) -> Nest:
    """Return the attributes of the first message of an answer; empty if there is none."""
    return Nest(next(messages(_content(files, name)), b"")[header:])


def _answer(files: Files, kind: str, name: str) -> Nest | None:
    """Return the attributes of an answer; None if there is none."""
    question = f"netlink:{kind}:{name}"
    return _nest(files, question, GENERIC_BYTES) if _content(files, question) else None


def _all(files: Files, kind: str, name: str) -> Iterator[Nest]:
    for message in messages(_content(files, f"netlink:{kind}:{name}")):
        yield Nest(message[GENERIC_BYTES:])


def _lacks(files: Files, kind: str, name: str) -> bool:
    return files.error(f"netlink:{kind}:{name}") in LACKS


NO: Literal["none"] = "none"
"""What the driver does not have."""


def _coalescing(files: Files, name: str) -> Coalescing:
    answer = _answer(files, "coalesce", name)
    if answer is None:
        each = NO if _lacks(files, "coalesce", name) else None
        return Coalescing(
            adaptive_rx=each, adaptive_tx=each, rx_us=each, rx_frames=each, tx_us=each, tx_frames=each
        )

    def number(attribute: int) -> int | Literal["none"]:
        value = answer.number(attribute)
        return NO if value is None else value

    def switch(attribute: int) -> bool | Literal["none"]:
        value = answer.switch(attribute)
        return NO if value is None else value

    return Coalescing(
        adaptive_rx=switch(11),
        adaptive_tx=switch(12),
        rx_us=number(2),
        rx_frames=number(3),
        tx_us=number(6),
        tx_frames=number(7),
    )


def _energy_efficient(files: Files, name: str) -> bool | Literal["none"] | None:
    answer = _answer(files, "eee", name)
    return NO if answer is None and _lacks(files, "eee", name) else answer and answer.switch(5)


def _pauses(files: Files, name: str, pause: Nest | None) -> str | None:
    """Return which pause frames are used: both, receive, send or none; None if unknown."""
    if pause is None:
        return NO if _lacks(files, "pause", name) else None
    receives, sends = pause.switch(3), pause.switch(4)
    if receives is None or sends is None:
        return None
    return ("both" if sends else "receive") if receives else "send" if sends else NO


def _clock(stamping: Nest | None) -> str | None:
    """Return the name of the card's clock, such as ptp0; none if it has no clock, None if unknown."""
    if stamping is None:
        return None
    index = stamping.number(5)
    return NO if index is None else f"ptp{index}"


def _napi(files: Files, name: str) -> list[Napi] | None:
    """Return the interface's NAPI instances; None if the kernel does not list them (before Linux 6.8)."""
    if files.error(f"netlink:napi:{name}") is not None or f"netlink:napi:{name}" not in files:
        return None
    queues: dict[int, list[str]] = {}
    for queue in _all(files, "queues", name):
        number, kind, served_by = queue.number(1), queue.number(3), queue.number(4)
        if number is not None and kind is not None and served_by is not None:
            queues.setdefault(served_by, []).append(f"{'tx' if kind else 'rx'}-{number}")
    return [
        Napi(
            id=number,
            irq=each.number(3),
            pid=each.number(4),
            defer_hard_irqs=each.number(5),
            gro_flush_timeout_ns=each.number(6),
            irq_suspend_timeout_ns=each.number(7),
            threaded=None if (mode := each.number(8)) is None else mode != 0,
            queues=queues.get(number, []),
        )
        for each in _all(files, "napi", name)
        if (number := each.number(2)) is not None
    ]


def _threaded(files: Files, folder: str, napi: list[Napi] | None) -> bool | None:
    """Return whether threads poll every queue."""
    number = files.number(f"{folder}/threaded")
    known = [each.threaded for each in napi or [] if each.threaded is not None]
    return all(known) if known else None if number is None else number != 0


def _thread_priorities(files: Files, name: str, napi: list[Napi] | None) -> list[int]:
    """Return the real-time priority of each NAPI thread; 0 without a real-time policy."""
    numbers = {each.pid for each in napi or [] if each.pid}
    return [
        thread.priority if thread.policy in {"fifo", "rr"} else 0
        for thread in threads(files)
        if thread.kernel and (thread.tid in numbers or thread.name.startswith(f"napi/{name}-"[:COMM_BYTES]))
    ]


def _irqs(files: Files, name: str, napi: list[Napi] | None, lines: Mapping[str, InterruptLine]) -> list[str]:
    """Return the numbers of the interface's interrupts that a driver uses."""
    folder = f"{NET}/{name}"
    device = PurePosixPath(str(files.get(f"{folder}/device", {}).get("link", ""))).name
    candidates = {str(each.irq) for each in napi or [] if each.irq}
    candidates |= {*files.entries(f"{folder}/device/msi_irqs")}
    candidates |= {files.text(f"{folder}/device/irq") or ""}
    starts = tuple(start for start in (name, device) if start)
    return [
        number
        for number, line in lines.items()
        if line.devices is not None
        and (number in candidates or any(_is_of(action, starts) for action in line.devices.split(",")))
    ]


def _is_of(action: str, starts: tuple[str, ...]) -> bool:
    """Return whether a handler's name is an interface's or a device's, or continues it: `eth0-rx-0`."""
    return any(re.fullmatch(rf"{re.escape(start)}(?:[^0-9a-zA-Z].*)?", action.strip()) for start in starts)


def _cpus_of(irqs: list[str], lines: Mapping[str, InterruptLine]) -> str | None:
    """Return the CPUs that handle the interrupts."""
    lists = [lines[number].cpus for number in irqs]
    known = {cpu for text in lists if text for cpu in parse_cpu_list(text)}
    return None if irqs and not known else format_cpu_list(sorted(known))


def _steered(files: Files, folder: str, side: str, kind: str) -> str | None:
    """Return the CPUs in the masks of the interface's queues; None if no queue has a mask."""
    cpus: set[int] = set()
    has_mask = False
    pattern = rf"{re.escape(folder)}/queues/{side}-[0-9]{{1,4}}/{kind}_cpus"
    for _, text in files.matching(pattern):
        try:
            cpus |= {*parse_cpu_mask(text)}
        except ValueError:
            continue
        has_mask = True
    return format_cpu_list(sorted(cpus)) if has_mask else None


def _most(files: Files, pattern: str) -> int | None:
    numbers = [files.number(match[0]) for match, _ in files.matching(pattern)]
    return max((number for number in numbers if number is not None), default=None)
