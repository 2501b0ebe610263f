# SPDX-License-Identifier: MIT
"""The real-time core of a target, if any: Xenomai Cobalt, EVL (Xenomai 4) or RTAI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.facts import RealTimeCore
from rtgauge.system import cobalt, rtai

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

EVL = "/sys/devices/virtual/evl/control"
RUNTIMES = {"Xenomai Cobalt": "cobalt", "RTAI": "rtai"}
"""A core's name in the facts -> parameter `rt` of the probes that can be measured on it."""
RTAI = ("/proc/rtai", "/sys/module/rtai_hal")
"""The second is there also where /proc/rtai cannot be read."""
PATHS = [
    *cobalt.PATHS,
    f"{EVL}/abi",
    f"{EVL}/cpus",
    f"{EVL}/version",
    *RTAI,
    *rtai.PATHS,
]


def facts(files: Files) -> RealTimeCore:
    """`name`: Xenomai Cobalt, EVL, RTAI, none or unknown."""
    if files.exists(cobalt.VERSION):
        return cobalt.facts(files)
    if files.exists(f"{EVL}/cpus") or files.exists(f"{EVL}/abi"):
        abi = files.text(f"{EVL}/abi")
        version = files.text(f"{EVL}/version") or (f"ABI {abi}" if abi else None)
        return RealTimeCore(name="EVL", version=version, cpus=files.text(f"{EVL}/cpus") or None)
    if any(files.exists(path) for path in RTAI):
        return rtai.facts(files)
    # Cobalt shows in /proc and EVL in sysfs: both must be readable to say that there is none
    readable = files.exists("/proc/sys/kernel/osrelease") and files.exists("/sys/devices/system/cpu/online")
    name = "none" if readable else None
    return RealTimeCore(name=name, version=name, cpus=name)
