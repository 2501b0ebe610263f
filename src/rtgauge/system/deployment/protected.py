# SPDX-License-Identifier: MIT
"""Protects from trials: network interfaces that have a route or are part of another one (bridge, bond, VLAN),
disks in use, and the PCI and devfreq devices that disks or networks may depend on.
"""

from __future__ import annotations

import re

from rtgauge.target.file_batch import Files, glob_pattern

ROUTES, ROUTES_6, MOUNTS, SWAPS = "/proc/net/route", "/proc/net/ipv6_route", "/proc/mounts", "/proc/swaps"
UPPER = "/sys/class/net/*/upper_*/ifindex"
HOLDERS = ["/sys/block/*/holders/*/dev", "/sys/block/*/*/holders/*/dev"]
"""Devices that are made of a disk, or of its partition: LVM, RAID, encryption."""
BTRFS = "/sys/fs/btrfs/*/devices/*/dev"
"""The devices of each mounted btrfs, which may have several."""
DEVFREQ = "/sys/class/devfreq/*/device/uevent"
PATHS = [
    ROUTES,
    ROUTES_6,
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


def is_protected(path: str, files: Files) -> bool:
    """Return whether a file belongs to a device that no trial may change. `files` has PATHS."""
    interface = re.match(r"(?:/sys/class/net/|ethtool:)([^/:]+)[/:]", path)
    if interface:
        return interface[1] in _reached(files)
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


def _reached(files: Files) -> set[str]:
    """Return the interfaces that have a route, and the ones that are a part of another interface."""
    lines = (files.text(ROUTES) or "").splitlines()[1:]
    first = {words[0] for line in lines if (words := line.split())}
    last = {words[-1] for line in (files.text(ROUTES_6) or "").splitlines() if (words := line.split())}
    parts = {match[0].split("/")[4] for match, _ in files.matching(glob_pattern(UPPER))}
    return (first | last | parts) - {LOOPBACK}


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
