# SPDX-License-Identifier: MIT
"""Checks what the engines of co-kernels need on a target: kernel, modules, devices, libraries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from rtgauge.system import rt_core
from rtgauge.system.file_batch import Files
from rtgauge.system.kernel_modules import DISABLED, LIST
from rtgauge.system.rtai import FOLDERS, NEEDED, PIPELINE

LOCKS = "/proc/locks"
XENOMAI_PREFIXES = ("/usr/xenomai", "/opt/xenomai", "/usr/local", "/usr")
"""Prefixes that Xenomai is usually configured with."""
LIBRARIES = tuple(f"{prefix}/lib" for prefix in XENOMAI_PREFIXES)
PROGRAMS = tuple(f"{prefix}/sbin" for prefix in XENOMAI_PREFIXES)
"""Folders that hold Xenomai's autotune; by default they are in no PATH."""
DEVICES = "/dev/rtdm"
STATUS = "/proc/self/status"
"""The status of the engine, because the engine reads it."""
ALLOWED_GROUP = f"{rt_core.PARAMETERS}/allowed_group"
DRIVERS = {
    "autotune": "probe calibrate",
    "timerbench": "--cross-check xenomai-latency in kernel space",
    "switchtest": "--cross-check xenomai-switchtest",
}
"""Xenomai's own devices below DEVICES -> what they are for."""
DEV, SHARED = "/dev", "rtai_shm"
TESTSUITES = tuple(
    f"{folder.removesuffix('/modules')}/{suite}"
    for folder in FOLDERS
    for suite in ("testsuite", "testsuite/user/latency")
)
"""Folders that hold RTAI's latency and display."""
PATHS = [
    LOCKS,
    DEVICES,
    *LIBRARIES,
    *PROGRAMS,
    LIST,
    DISABLED,
    STATUS,
    DEV,
    PIPELINE,
    *FOLDERS,
    *TESTSUITES,
    *rt_core.PATHS,
]


@dataclass(frozen=True)
class Need:
    """Something that a co-kernel's engine needs: whether the target has it, and the remedy if it does not."""

    cokernel: str
    what: str
    met: bool
    remedy: str
    only_for: str | None = None
    """The only feature of rtgauge that needs it, if the probes in user space do not."""


def _listed(files: Mapping[str, Any], folder: str) -> list[str]:
    entry: Any = files.get(folder)
    names: Any = cast("dict[str, Any]", entry).get("directory") if isinstance(entry, dict) else None
    return [str(name) for name in cast("list[Any]", names)] if isinstance(names, list) else []


def needs(files: Mapping[str, Any]) -> list[Need]:
    """Return the needs of the engines for Cobalt and RTAI, from the engine's `read` of `PATHS`."""
    read = Files(files)
    lock = (f"file locks ({LOCKS})", read.exists(LOCKS), "CONFIG_FILE_LOCKING=y in the kernel")
    return [
        Need(
            "cobalt",
            "Cobalt in the kernel (/proc/xenomai)",
            read.exists("/proc/xenomai/version"),
            "boot a kernel with Xenomai 3, xenomai.state=enabled",
        ),
        Need(
            "cobalt",
            f"RTDM's devices ({DEVICES})",
            "memdev-private" in _listed(files, DEVICES),
            "devtmpfs on /dev, and Xenomai not disabled",
        ),
        Need(
            "cobalt",
            f"libcobalt in {', '.join(LIBRARIES)}",
            any(name.startswith("libcobalt.so") for folder in LIBRARIES for name in _listed(files, folder)),
            "Xenomai's libraries below --overlay, in the folder they were configured for",
        ),
        Need(
            "cobalt",
            "root, or the group of xenomai.allowed_group",
            _may_use_cobalt(read),
            "root, or boot with xenomai.allowed_group=GID of a group of this user",
        ),
        Need("cobalt", *lock),
        *(
            Need(
                "cobalt",
                f"{DEVICES}/{name}",
                name in _listed(files, DEVICES),
                f"CONFIG_XENO_DRIVERS_{name.upper()}=y in the kernel",
                only_for,
            )
            for name, only_for in DRIVERS.items()
        ),
        Need(
            "cobalt",
            f"Xenomai's autotune, in {' or '.join(PROGRAMS)}",
            any("autotune" in _listed(files, folder) for folder in PROGRAMS),
            "Xenomai's sbin below --overlay, in the folder it was configured for",
            DRIVERS["autotune"],
        ),
        Need(
            "cobalt",
            f"modules may be loaded ({DISABLED})",
            read.text(DISABLED) == "0",
            "CONFIG_MODULES in the kernel, and modules_disabled 0",
            "--space kernel",
        ),
        *_rtai_needs(read, files),
        Need("rtai", *lock),
    ]


def _ids(read: Files, name: str) -> list[str]:
    """Return the numbers in a line of STATUS: Uid (real, effective, ...), Gid or Groups."""
    line = re.search(rf"^{name}:[\t ]*([0-9\t ]*)$", read.text(STATUS) or "", re.MULTILINE)
    return line[1].split() if line is not None else []


def _may_use_cobalt(read: Files) -> bool:
    groups = {*_ids(read, "Groups"), *_ids(read, "Gid")}
    return _ids(read, "Uid")[1:2] == ["0"] or read.text(ALLOWED_GROUP) in groups


def _rtai_needs(read: Files, files: Mapping[str, Any]) -> list[Need]:
    """Return RTAI's needs. Its modules need not be loaded: rtgauge loads them while it measures."""
    loaded = read.exists(rt_core.SCHEDULER)
    modules = {line.split(" ")[0] for line in (read.text(LIST) or "").splitlines()}
    installed = any(all(f"{name}.ko" in _listed(files, folder) for name in NEEDED) for folder in FOLDERS)
    return [
        Need(
            "rtai",
            f"RTAI's I-pipe in the kernel ({PIPELINE})",
            read.exists(PIPELINE),
            "boot the kernel that RTAI was built for",
        ),
        *(
            Need(
                "rtai",
                f"module {name}, loaded or in {' or '.join(FOLDERS)}",
                name in modules or installed,
                f"copy what RTAI's make install made below --overlay, or insmod {name}.ko",
            )
            for name in NEEDED
        ),
        Need(
            "rtai",
            f"modules may be loaded ({DISABLED})",
            loaded or read.text(DISABLED) == "0",
            "CONFIG_MODULES in the kernel, and modules_disabled 0",
        ),
        Need("rtai", "root", _ids(read, "Uid")[1:2] == ["0"], "RTAI accepts only root's threads"),
        Need(
            "rtai",
            f"RTAI's device {DEV}/{SHARED}, once it is loaded",
            not loaded or SHARED in _listed(files, DEV),
            "devtmpfs on /dev",
        ),
        Need(
            "rtai",
            f"RTAI's latency and display, in {' or '.join(TESTSUITES)}",
            any({"latency", "display"} <= set(_listed(files, folder)) for folder in TESTSUITES),
            "copy what RTAI's make install made below --overlay",
            "--cross-check rtai-latency",
        ),
    ]
