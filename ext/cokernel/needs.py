# SPDX-License-Identifier: MIT
"""Checks what the co-kernels' engines need on a target: kernel, modules, devices, libraries."""

from __future__ import annotations

import re

from rtgauge.system.loadable_modules import DISABLED, LIST
from rtgauge.system.runtime import Need
from rtgauge.target.file_batch import Files
from rtgauge_ext.cokernel import cobalt_facts, rtai_facts
from rtgauge_ext.cokernel.rtai_modules import FOLDERS, NEEDED, PIPELINE

LOCKS = "/proc/locks"
XENOMAI_PREFIXES = ("/usr/xenomai", "/opt/xenomai", "/usr/local", "/usr")
"""Prefixes that Xenomai is usually built with."""
LIBRARIES = tuple(f"{prefix}/lib" for prefix in XENOMAI_PREFIXES)
PROGRAMS = tuple(f"{prefix}/sbin" for prefix in XENOMAI_PREFIXES)
"""Folders with Xenomai's autotune. They are not in PATH by default."""
DEVICES = "/dev/rtdm"
STATUS = "/proc/self/status"
"""The status of the process that reads it, which is the engine."""
ALLOWED_GROUP = f"{cobalt_facts.PARAMETERS}/allowed_group"
DRIVERS = {
    "autotune": "probe calibrate",
    "timerbench": "--cross-check xenomai-latency in kernel space",
    "switchtest": "--cross-check xenomai-switchtest",
}
"""Maps Xenomai's own devices below DEVICES to their purpose."""
DEV, SHARED = "/dev", "rtai_shm"
TESTSUITES = tuple(
    f"{folder.removesuffix('/modules')}/{suite}"
    for folder in FOLDERS
    for suite in ("testsuite", "testsuite/user/latency")
)
"""Folders with RTAI's latency and display."""
COBALT_PATHS = [LOCKS, DEVICES, *LIBRARIES, *PROGRAMS, DISABLED, STATUS, cobalt_facts.VERSION, ALLOWED_GROUP]
RTAI_PATHS = [LOCKS, LIST, DISABLED, STATUS, DEV, PIPELINE, rtai_facts.SCHEDULER, *FOLDERS, *TESTSUITES]


def _lock(cokernel: str, files: Files) -> Need:
    return Need(
        cokernel,
        f"file locks ({LOCKS})",
        files.exists(LOCKS),
        "boot a kernel with CONFIG_FILE_LOCKING=y",
    )


def cobalt_needs(files: Files) -> list[Need]:
    """Return the needs of the engine for Cobalt, from the engine's `read` of `COBALT_PATHS`."""
    return [
        Need(
            "cobalt",
            "Cobalt in the kernel (/proc/xenomai)",
            files.exists(cobalt_facts.VERSION),
            "boot a kernel with Xenomai 3, with xenomai.state=enabled",
        ),
        Need(
            "cobalt",
            f"RTDM's devices ({DEVICES})",
            "memdev-private" in files.entries(DEVICES),
            "mount devtmpfs on /dev, and boot without xenomai.state=disabled",
        ),
        Need(
            "cobalt",
            f"libcobalt in {', '.join(LIBRARIES)}",
            any(name.startswith("libcobalt.so") for folder in LIBRARIES for name in files.entries(folder)),
            "copy Xenomai's libraries into the --overlay folder, at the path where Xenomai was installed "
            "when it was built",
        ),
        Need(
            "cobalt",
            "root, or a member of the group that xenomai.allowed_group names",
            _may_use_cobalt(files),
            "run as root, or boot with xenomai.allowed_group=GID (GID: the ID of a group of this user)",
        ),
        _lock("cobalt", files),
        *(
            Need(
                "cobalt",
                f"{DEVICES}/{name}",
                name in files.entries(DEVICES),
                f"boot a kernel with CONFIG_XENO_DRIVERS_{name.upper()}=y",
                only_for,
            )
            for name, only_for in DRIVERS.items()
        ),
        Need(
            "cobalt",
            f"Xenomai's autotune, in {' or '.join(PROGRAMS)}",
            any("autotune" in files.entries(folder) for folder in PROGRAMS),
            "copy Xenomai's sbin folder into the --overlay folder, at the path where Xenomai was installed "
            "when it was built",
            DRIVERS["autotune"],
        ),
        Need(
            "cobalt",
            f"modules may be loaded ({DISABLED})",
            files.text(DISABLED) == "0",
            "boot a kernel with CONFIG_MODULES, and leave kernel.modules_disabled at 0",
            "--space kernel",
        ),
    ]


def _ids(files: Files, name: str) -> list[str]:
    """Return the numbers in the line Uid (real, effective, ...), Gid or Groups of STATUS."""
    line = re.search(rf"^{name}:[\t ]*([0-9\t ]*)$", files.text(STATUS) or "", re.MULTILINE)
    return line[1].split() if line is not None else []


def _may_use_cobalt(files: Files) -> bool:
    groups = {*_ids(files, "Groups"), *_ids(files, "Gid")}
    return _ids(files, "Uid")[1:2] == ["0"] or files.text(ALLOWED_GROUP) in groups


def rtai_needs(files: Files) -> list[Need]:
    """Return the needs of the engine for RTAI, from the engine's `read` of `RTAI_PATHS`. RTAI's modules need
    not be loaded, because rtgauge loads them for measuring.
    """
    loaded = files.exists(rtai_facts.SCHEDULER)
    modules = {line.split(" ")[0] for line in (files.text(LIST) or "").splitlines()}
    installed = any(all(f"{name}.ko" in files.entries(folder) for name in NEEDED) for folder in FOLDERS)
    return [
        Need(
            "rtai",
            f"RTAI's I-pipe in the kernel ({PIPELINE})",
            files.exists(PIPELINE),
            "boot the kernel that RTAI was built for",
        ),
        *(
            Need(
                "rtai",
                f"module {name}, loaded or in {' or '.join(FOLDERS)}",
                name in modules or installed,
                f"copy what RTAI's make install installs into the --overlay folder, or insmod {name}.ko",
            )
            for name in NEEDED
        ),
        Need(
            "rtai",
            f"modules may be loaded ({DISABLED})",
            loaded or files.text(DISABLED) == "0",
            "boot a kernel with CONFIG_MODULES, and leave kernel.modules_disabled at 0",
        ),
        Need(
            "rtai",
            "root",
            _ids(files, "Uid")[1:2] == ["0"],
            "run as root, because RTAI accepts only root's threads",
        ),
        Need(
            "rtai",
            f"RTAI's device {DEV}/{SHARED}, once it is loaded",
            not loaded or SHARED in files.entries(DEV),
            "mount devtmpfs on /dev",
        ),
        Need(
            "rtai",
            f"the programs latency and display of RTAI's test suite, in {' or '.join(TESTSUITES)}",
            any({"latency", "display"} <= set(files.entries(folder)) for folder in TESTSUITES),
            "copy what RTAI's make install installs into the --overlay folder",
            "--cross-check rtai-latency",
        ),
        _lock("rtai", files),
    ]
