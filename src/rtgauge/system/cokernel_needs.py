# SPDX-License-Identifier: MIT
"""What the engines of co-kernels need on a target: kernel, modules, devices, libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rtgauge.system import rt_core
from rtgauge.system.file_batch import Files

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCKS = "/proc/locks"
XENOMAI_PREFIXES = ("/usr/xenomai", "/opt/xenomai", "/usr/local", "/usr")
"""Where Xenomai is usually configured to be."""
LIBRARIES = tuple(f"{prefix}/lib" for prefix in XENOMAI_PREFIXES)
DEVICES = "/dev/rtdm"
PATHS = [LOCKS, DEVICES, *LIBRARIES, "/proc/modules", *rt_core.PATHS]


@dataclass(frozen=True)
class Need:
    """Something that a co-kernel's engine needs: whether it is there, and what to do where it is not."""

    cokernel: str
    what: str
    met: bool
    remedy: str


def _listed(files: Mapping[str, Any], folder: str) -> list[str]:
    entry: Any = files.get(folder)
    names: Any = cast("dict[str, Any]", entry).get("directory") if isinstance(entry, dict) else None
    return [str(name) for name in cast("list[Any]", names)] if isinstance(names, list) else []


def needs(files: Mapping[str, Any]) -> list[Need]:
    """The needs of Cobalt's and of RTAI's engine, from the engine's `read` of `PATHS`."""
    read = Files(files)
    modules = {line.split(" ")[0] for line in (read.text("/proc/modules") or "").splitlines()}
    locks = [Need(name, f"file locks ({LOCKS})", read.exists(LOCKS), "CONFIG_FILE_LOCKING=y in the kernel") for name in ("cobalt", "rtai")]
    return [
        Need("cobalt", "Cobalt in the kernel (/proc/xenomai)", read.exists("/proc/xenomai/version"), "boot a kernel with Xenomai 3, xenomai.state=enabled"),
        Need("cobalt", f"RTDM's devices ({DEVICES})", "memdev-private" in _listed(files, DEVICES), "devtmpfs on /dev, and Xenomai not disabled"),
        Need(
            "cobalt",
            f"libcobalt in {', '.join(LIBRARIES)}",
            any(name.startswith("libcobalt.so") for folder in LIBRARIES for name in _listed(files, folder)),
            "Xenomai's libraries below --overlay, where they were configured to be",
        ),
        locks[0],
        *(
            Need("rtai", f"module {name}", name in modules or read.exists(f"/sys/module/{name}"), f"insmod {name}.ko, of RTAI's own modules")
            for name in ("rtai_hal", "rtai_sched")
        ),
        Need("rtai", "RTAI's scheduler (/proc/rtai/scheduler)", read.exists("/proc/rtai/scheduler"), "load rtai_hal, then rtai_sched"),
        locks[1],
    ]
