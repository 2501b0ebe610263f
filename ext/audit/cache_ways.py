# SPDX-License-Identifier: MIT
"""Divides the last-level cache and the memory's bandwidth between the real-time CPUs and all others, with
resctrl (Linux, Documentation/filesystems/resctrl). Not tested on hardware.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rtgauge.system.cpus import RESCTRL
from rtgauge.system.deployment.machine_state import Setting
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.deployment.machine_state import Machine

EXCLUSIVE_WAYS, HALF_BANDWIDTH = "{exclusive-ways}", "{half-bandwidth}"
CACHE, BANDWIDTH = "L3", "MB"
GROUP = "rtgauge"
"""The resource group of the real-time CPUs."""
INFO = f"{RESCTRL}/info"
CACHE_IDS = "/sys/devices/system/cpu/cpu[0-9]*/cache/index3/id"
"""The number of each CPU's last-level cache, which is a domain of resctrl."""
PATHS = [
    f"{RESCTRL}/schemata",
    f"{RESCTRL}/*/schemata",
    f"{RESCTRL}/mon_groups/*/cpus_list",
    f"{INFO}/{CACHE}/min_cbm_bits",
    f"{INFO}/{CACHE}/shareable_bits",
    f"{INFO}/{BANDWIDTH}/bandwidth_gran",
    f"{INFO}/{BANDWIDTH}/min_bandwidth",
    CACHE_IDS,
]
PARTS = 4
"""The real-time CPUs get the cache's ways divided by this."""
ALL_PER_CENT = 100
"""Processors that count bandwidth in MB/s instead of per cent have no half of it that means anything."""


def divided(to: str, machine: Machine, cpus: set[int]) -> list[Setting]:
    """Return the settings that give the CPUs `cpus` exclusive ways of their last-level caches
    (EXCLUSIVE_WAYS), or all other CPUs at most half of the memory's bandwidth (HALF_BANDWIDTH).

    Empty if resctrl is not mounted, if somebody else has made groups, or if the resource is too small.
    """
    if next(machine.files.matching(rf"{RESCTRL}/(?!info/)[^/]+/schemata"), None) is not None:
        return []
    # A CPU that moves to another group leaves its monitoring group, and never returns to it.
    if any(text.strip() for _, text in machine.files.matching(rf"{RESCTRL}/mon_groups/[^/]+/cpus_list")):
        return []
    resource, share = (CACHE, _ways) if to == EXCLUSIVE_WAYS else (BANDWIDTH, _bandwidth)
    before = _domains(machine.text(f"{RESCTRL}/schemata") or "", resource)
    own, rest = _parted(before, share, machine, cpus)
    if not before or rest == before:
        return []
    group = Setting(f"resctrl:{resource}:{GROUP}", f"{format_cpu_list(sorted(cpus))} {_text(own)}")
    return [group, Setting(f"resctrl:{resource}", _text(rest))]


def _domains(schemata: str, resource: str) -> dict[str, str]:
    """Return domain -> share, such as {"0": "fff"}, of one resource."""
    match = re.search(rf"^ *{resource}:([0-9a-f=; ]+)$", schemata, re.MULTILINE)
    found = re.findall(r"(\d+)=([0-9a-f]+)", match[1].replace(" ", "")) if match else []
    return dict(found)


def _text(shares: Mapping[str, str]) -> str:
    return ";".join(f"{domain}={share}" for domain, share in shares.items())


def _parted(
    before: Mapping[str, str],
    share: Callable[[str, Machine], tuple[str, str]],
    machine: Machine,
    cpus: set[int],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the shares of the real-time CPUs and of all others. Only domains with real-time CPUs change; all
    do if the kernel does not number the caches.
    """
    ids = {
        text.strip()
        for match, text in machine.files.matching(r"/sys/devices/system/cpu/cpu(\d+)/cache/index3/id")
        if int(match[1]) in cpus
    }
    shares = {
        domain: share(now, machine) if not ids or domain in ids else (now, now)
        for domain, now in before.items()
    }
    return {domain: own for domain, (own, _) in shares.items()}, {
        domain: rest for domain, (_, rest) in shares.items()
    }


def _ways(now: str, machine: Machine) -> tuple[str, str]:
    """Divide the ways in a mask: the lowest ones are the real-time CPUs', because devices write to the
    highest. The kernel may want each part to be contiguous.
    """
    mask = int(now, 16)
    shared = int(machine.text(f"{INFO}/{CACHE}/shareable_bits") or "0", 16)
    least = max(_number(machine, f"{CACHE}/min_cbm_bits"), 1)
    count = max(mask.bit_count() // PARTS, least)
    lowest = (mask & -mask).bit_length() - 1 if mask else 0
    own = ((1 << count) - 1) << lowest
    rest = mask & ~own
    if own & ~mask or own & shared or rest.bit_count() < count:
        return now, now
    return f"{own:0{len(now)}x}", f"{rest:0{len(now)}x}"


def _bandwidth(now: str, machine: Machine) -> tuple[str, str]:
    step = max(_number(machine, f"{BANDWIDTH}/bandwidth_gran"), 1)
    least = _number(machine, f"{BANDWIDTH}/min_bandwidth")
    half = max(int(now) // 2 // step * step, least) if now.isdigit() else 0
    if not 0 < half < int(now) <= ALL_PER_CENT:
        return now, now
    return now, str(half)


def _number(machine: Machine, name: str) -> int:
    text = machine.text(f"{INFO}/{name}") or ""
    return int(text) if text.isdigit() else 0
