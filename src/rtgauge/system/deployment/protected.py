# SPDX-License-Identifier: MIT
"""Protects from trials: network interfaces that have a route or are part of one that has (bridge, bond,
VLAN), disks with a mounted file system, and the PCI devices of disks and networks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.target.file_batch import glob_pattern

if TYPE_CHECKING:
    from rtgauge.target.file_batch import Files

ROUTES, ROUTES_6, MOUNTS = "/proc/net/route", "/proc/net/ipv6_route", "/proc/mounts"
UPPER = "/sys/class/net/*/upper_*/ifindex"
PATHS = [ROUTES, ROUTES_6, UPPER, MOUNTS, "/sys/bus/pci/devices/*/class"]
LOOPBACK = "lo"
STORAGE_OR_NETWORK = ("0x01", "0x02")
"""Base classes of PCI devices (PCI Code and ID Assignment Specification)."""


def is_protected(path: str, files: Files) -> bool:
    """Return whether a file belongs to a device that no trial may change. `files` has PATHS."""
    interface = re.match(r"(?:/sys/class/net/|ethtool:)([^/:]+)[/:]", path)
    if interface:
        return interface[1] in _reached(files)
    disk = re.match(r"/sys/block/([^/]+)/", path)
    if disk:
        return _is_mounted(disk[1], files.text(MOUNTS) or "")
    device = re.match(r"(/sys/bus/pci/devices/[^/]+)/", path)
    return device is not None and (files.text(f"{device[1]}/class") or "0x01").startswith(STORAGE_OR_NETWORK)


def _reached(files: Files) -> set[str]:
    """Return the interfaces that have a route, and all their parts."""
    lines = (files.text(ROUTES) or "").splitlines()[1:]
    first = {words[0] for line in lines if (words := line.split())}
    last = {words[-1] for line in (files.text(ROUTES_6) or "").splitlines() if (words := line.split())}
    parts = {match[0].split("/")[4] for match, _ in files.matching(glob_pattern(UPPER))}
    return (first | last | parts) - {LOOPBACK}


def _is_mounted(disk: str, mounts: str) -> bool:
    """Return whether the disk is in use. If the root is not on a plain disk (LVM, overlay), every disk counts
    as mounted.
    """
    sources = {words[1]: words[0] for line in mounts.splitlines() if len(words := line.split()) > 1}
    if not re.match(r"/dev/(?!root$|mapper/|dm-|md)", sources.get("/", "")):
        return True
    return any(source.startswith(f"/dev/{disk}") for source in sources.values())
