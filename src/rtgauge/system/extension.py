# SPDX-License-Identifier: MIT
"""Whether a real-time core runs beside a target's kernel: Xenomai Cobalt, EVL (Xenomai 4) or RTAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.system.reading import UNKNOWN

if TYPE_CHECKING:
    from rtgauge.system.reading import Files

COBALT = "/proc/xenomai/version"
EVL = "/sys/devices/virtual/evl/control"
RTAI = ("/proc/rtai", "/sys/module/rtai_hal")
PATHS = [
    COBALT,
    "/proc/xenomai/affinity",
    "/sys/module/xenomai/parameters/supported_cpus",
    "/proc/ipipe/version",
    f"{EVL}/abi",
    f"{EVL}/cpus",
    f"{EVL}/version",
    *RTAI,
]


def facts(files: Files) -> dict[str, Any]:
    """`name`: Xenomai Cobalt, EVL, RTAI, none or unknown; `version`; `cpus`: those that it may use, as it writes them."""
    if files.exists(COBALT):
        cpus = files.text("/sys/module/xenomai/parameters/supported_cpus") or files.text("/proc/xenomai/affinity")
        return {"name": "Xenomai Cobalt", "version": files.text(COBALT) or UNKNOWN, "cpus": cpus or UNKNOWN}
    if files.exists(f"{EVL}/cpus") or files.exists(f"{EVL}/abi"):
        abi = files.text(f"{EVL}/abi")
        version = files.text(f"{EVL}/version") or (f"ABI {abi}" if abi else UNKNOWN)
        return {"name": "EVL", "version": version, "cpus": files.text(f"{EVL}/cpus") or UNKNOWN}
    if any(files.exists(path) for path in RTAI):
        return {"name": "RTAI", "version": UNKNOWN, "cpus": UNKNOWN}
    # /proc is there wherever the kernel said its version, and Cobalt shows itself there; EVL needs sysfs
    looked = files.exists("/proc/sys/kernel/osrelease") and files.exists("/sys/devices/system/cpu/online")
    name = "none" if looked else UNKNOWN
    return {"name": name, "version": name, "cpus": name}
