# SPDX-License-Identifier: MIT
"""The real-time core of a target, if any: Xenomai Cobalt, EVL (Xenomai 4) or RTAI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import UNKNOWN, cpu_list
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

COBALT = "/proc/xenomai/version"
SUPPORTED = "/sys/module/xenomai/parameters/supported_cpus"
POSSIBLE = "/sys/devices/system/cpu/possible"
EVL = "/sys/devices/virtual/evl/control"
RTAI = ("/proc/rtai", "/sys/module/rtai_hal")
PATHS = [
    COBALT,
    SUPPORTED,
    POSSIBLE,
    f"{EVL}/abi",
    f"{EVL}/cpus",
    f"{EVL}/version",
    *RTAI,
]


def _supported(files: Files) -> str:
    """The CPUs that Cobalt may use; its parameter is a mask in decimal digits, all bits by default."""
    mask = files.text(SUPPORTED) or ""
    possible = cpu_list(files.text(POSSIBLE))
    if possible is None or not re.fullmatch(r"[0-9]{1,20}", mask):
        return UNKNOWN
    return format_cpu_list([cpu for cpu in possible if int(mask) >> cpu & 1])


def facts(files: Files) -> dict[str, Any]:
    """`name`: Xenomai Cobalt, EVL, RTAI, none or unknown; `version`; `cpus`: the CPUs it may use."""
    if files.exists(COBALT):
        return {"name": "Xenomai Cobalt", "version": files.text(COBALT) or UNKNOWN, "cpus": _supported(files)}
    if files.exists(f"{EVL}/cpus") or files.exists(f"{EVL}/abi"):
        abi = files.text(f"{EVL}/abi")
        version = files.text(f"{EVL}/version") or (f"ABI {abi}" if abi else UNKNOWN)
        return {"name": "EVL", "version": version, "cpus": files.text(f"{EVL}/cpus") or UNKNOWN}
    if any(files.exists(path) for path in RTAI):
        return {"name": "RTAI", "version": UNKNOWN, "cpus": UNKNOWN}
    # Cobalt shows in /proc and EVL in sysfs: both must be readable to say that there is none
    readable = files.exists("/proc/sys/kernel/osrelease") and files.exists("/sys/devices/system/cpu/online")
    name = "none" if readable else UNKNOWN
    return {"name": name, "version": name, "cpus": name}
