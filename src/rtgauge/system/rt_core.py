# SPDX-License-Identifier: MIT
"""The real-time core of a target, if any: Xenomai Cobalt, EVL (Xenomai 4) or RTAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.system import cobalt, rtai
from rtgauge.system.file_batch import UNKNOWN

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


def facts(files: Files) -> dict[str, Any]:
    """`name`: Xenomai Cobalt, EVL, RTAI, none or unknown; `version`; `cpus`: the CPUs it may use; of Cobalt
    and RTAI more (`cobalt.facts`, `rtai.facts`).
    """
    if files.exists(cobalt.VERSION):
        return {"name": "Xenomai Cobalt", **cobalt.facts(files)}
    if files.exists(f"{EVL}/cpus") or files.exists(f"{EVL}/abi"):
        abi = files.text(f"{EVL}/abi")
        version = files.text(f"{EVL}/version") or (f"ABI {abi}" if abi else UNKNOWN)
        return {"name": "EVL", "version": version, "cpus": files.text(f"{EVL}/cpus") or UNKNOWN}
    if any(files.exists(path) for path in RTAI):
        return {"name": "RTAI", **rtai.facts(files)}
    # Cobalt shows in /proc and EVL in sysfs: both must be readable to say that there is none
    readable = files.exists("/proc/sys/kernel/osrelease") and files.exists("/sys/devices/system/cpu/online")
    name = "none" if readable else UNKNOWN
    return {"name": name, "version": name, "cpus": name}
