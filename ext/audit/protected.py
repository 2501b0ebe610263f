# SPDX-License-Identifier: MIT
"""Protects from trials: network interfaces that have a route or are part of another one (bridge, bond, VLAN),
disks in use, and the PCI and devfreq devices that disks or networks may depend on.

If the user names an interface, trials may change it although it has a route, unless the machine is reached
through it.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from rtgauge.target.file_batch import Files, glob_pattern

ROUTES, ROUTES_6, MOUNTS, SWAPS = "/proc/net/route", "/proc/net/ipv6_route", "/proc/mounts", "/proc/swaps"
CONNECTIONS, CONNECTIONS_6 = "/proc/net/tcp", "/proc/net/tcp6"
UPPER = "/sys/class/net/*/upper_*/ifindex"
HOLDERS = ["/sys/block/*/holders/*/dev", "/sys/block/*/*/holders/*/dev"]
"""Devices that are made of a disk, or of its partition: LVM, RAID, encryption."""
BTRFS = "/sys/fs/btrfs/*/devices/*/dev"
"""The devices of each mounted btrfs, which may have several."""
DEVFREQ = "/sys/class/devfreq/*/device/uevent"
PATHS = [
    ROUTES,
    ROUTES_6,
    CONNECTIONS,
    CONNECTIONS_6,
    UPPER,
    MOUNTS,
    SWAPS,
    "/sys/block/*/size",
    *HOLDERS,
    BTRFS,
    "/sys/bus/pci/devices/*/class",
    DEVFREQ,
]
LOOPBACK = "lo"
NEITHER_DISK_NOR_NETWORK = ("0x03", "0x04", "0x09", "0x0b", "0x10", "0x11", "0x12")
"""Base classes of PCI devices (PCI Code and ID Assignment Specification): display, multimedia, input,
processor, encryption, signal processing, accelerator. Bridges and USB controllers are missing, because
a disk or a network interface may be behind them.
"""
GPU_OR_MEMORY = re.compile(r"^OF_NAME=(gpu|mali|dmc|memory-controller)$", re.MULTILINE)
"""The nodes of the device tree; others, such as ufs and mmc, may carry the root disk."""


def is_protected(path: str, files: Files, named: str | None = None) -> bool:
    """Return whether a file belongs to a device that no trial may change. `files` has PATHS. `named`: the
    only network interface that trials may change.
    """
    interface = interface_of(path)
    if interface is not None and named is not None:
        return interface != named or why_kept(named, files) is not None
    if interface is not None:
        return interface in _in_use(files)
    disk = re.match(r"/sys/block/([^/]+)/", path)
    if disk:
        return _is_used(disk[1], files)
    scaled = re.match(r"(/sys/class/devfreq/[^/]+)/", path)
    if scaled:
        return GPU_OR_MEMORY.search(files.text(f"{scaled[1]}/device/uevent") or "") is None
    device = re.match(r"(/sys/bus/pci/devices/[^/]+)/", path)
    return device is not None and not (files.text(f"{device[1]}/class") or "").startswith(
        NEITHER_DISK_NOR_NETWORK
    )


def interface_of(path: str) -> str | None:
    """Return the network interface that a setting belongs to; None if it is another setting."""
    match = re.match(r"(?:/sys/class/net/|ethtool:)([^/:]+)[/:]", path)
    return None if match is None else match[1]


def why_kept(interface: str, files: Files) -> str | None:
    """Return why no trial may change an interface that the user named; None if trials may."""
    if interface in _parts(files):
        return f"{interface} is a part of another interface"
    for line in _routes(files):
        if line.interface == interface and line.network.prefixlen == 0:
            return f"{interface} has the default route"
    if interface in {_through(address, files) for address in _connected(files)}:
        return f"a TCP connection to this machine uses {interface}, so the machine may be reached through it"
    return None


def _in_use(files: Files) -> set[str]:
    """Return the interfaces that have a route, and the ones that are a part of another interface."""
    return ({line.interface for line in _routes(files)} | _parts(files)) - {LOOPBACK}


def _parts(files: Files) -> set[str]:
    return {match[0].split("/")[4] for match, _ in files.matching(glob_pattern(UPPER))}


Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Route(NamedTuple):
    interface: str
    network: Network
    metric: int


def _routes(files: Files) -> Iterator[_Route]:
    """Yield the routes to networks (Documentation/networking/proc_net_tcp.rst, net/ipv4/fib_trie.c,
    net/ipv6/route.c). A line that cannot be read is a default route, so that its interface is kept.
    """
    for line in (files.text(ROUTES) or "").splitlines()[1:]:
        words = line.split()
        if words:
            yield _Route(words[0], _network_4(words), _hex(words[6:7]))
    for line in (files.text(ROUTES_6) or "").splitlines():
        words = line.split()
        if words and words[-1] != LOOPBACK:
            yield _Route(words[-1], _network_6(words), _hex(words[5:6]))


def _hex(words: list[str]) -> int:
    return int(words[0], 16) if words and re.fullmatch(r"[0-9a-fA-F]{1,8}", words[0]) else 0


def _network_4(words: list[str]) -> Network:
    try:
        destination, mask = (struct.pack("=I", int(words[at], 16)) for at in (1, 7))
        return ipaddress.IPv4Network((destination, str(ipaddress.IPv4Address(mask))), strict=False)
    except (IndexError, ValueError, struct.error):
        return ipaddress.IPv4Network("0.0.0.0/0")


def _network_6(words: list[str]) -> Network:
    try:
        return ipaddress.IPv6Network((bytes.fromhex(words[0]), int(words[1], 16)), strict=False)
    except (IndexError, ValueError):
        return ipaddress.IPv6Network("::/0")


ESTABLISHED = "01"
"""TCP_ESTABLISHED (include/net/tcp_states.h)"""


def _connected(files: Files) -> Iterator[Address]:
    """Yield the address of the other end of each TCP connection. The kernel writes it in words of its own
    byte order (net/ipv4/tcp_ipv4.c).
    """
    for path in (CONNECTIONS, CONNECTIONS_6):
        for line in (files.text(path) or "").splitlines()[1:]:
            words = line.split()
            if len(words) < 4 or words[3] != ESTABLISHED:
                continue
            text = words[2].partition(":")[0]
            if not re.fullmatch(r"[0-9A-F]{8}|[0-9A-F]{32}", text):
                continue
            packed = b"".join(struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8))
            address = ipaddress.ip_address(packed)
            mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
            yield mapped or address


def _through(address: Address, files: Files) -> str | None:
    """Return the interface that the most specific route to an address uses; None without a route."""
    routes = [line for line in _routes(files) if address in line.network]
    best = max(routes, key=lambda line: (line.network.prefixlen, -line.metric), default=None)
    return None if best is None else best.interface


def _is_used(disk: str, files: Files) -> bool:
    """Return whether a disk has a mounted file system or swap, is a part of another device, or is empty like
    a loop device without a file. If /proc does not name the disk of a file system (root on LVM or overlay,
    ZFS), every disk counts as used.
    """
    lines = [line.split() for line in (files.text(MOUNTS) or "").splitlines()]
    mounts = [words for words in lines if len(words) > 2]
    root = next((words[0] for words in reversed(mounts) if words[1] == "/"), "")
    hidden = any(words[0].startswith("/dev/disk/") or words[2] in ("zfs", "bcachefs") for words in mounts)
    if hidden or re.fullmatch(r"/dev/(?!root$|dm-|md)[^/]+", root) is None:
        return True
    if disk.startswith(("dm-", "md")) or files.text(f"/sys/block/{disk}/size") == "0":
        return True  # Mounts have another name for dm and md.
    # The parts of an eMMC, and the paths to an NVMe disk, are disks too.
    disk = re.sub(r"^(mmcblk[0-9]+)(?:boot|gp)[0-9]+$", r"\1", disk)
    disk = re.sub(r"^(nvme[0-9]+)c[0-9]+(n[0-9]+)$", r"\1\2", disk)
    swaps = [line.split()[0] for line in (files.text(SWAPS) or "").splitlines()[1:] if line.split()]
    members = [f"/dev/{match[0].split('/')[6]}" for match, _ in files.matching(glob_pattern(BTRFS))]
    used = [*(words[0] for words in mounts), *swaps, *members]
    held = (match[0] for each in HOLDERS for match, _ in files.matching(glob_pattern(each)))
    return any(source.startswith(f"/dev/{disk}") for source in used) or any(
        path.startswith(f"/sys/block/{disk}/") for path in held
    )
