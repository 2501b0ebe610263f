# SPDX-License-Identifier: MIT
"""Reads a target's kernel: release, configuration, preemption model and boot parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rtgauge.record.facts import UNKNOWN, Kernel, Preemption
from rtgauge.system.runtime import real_time_core
from rtgauge.target.file_batch import Files

REALTIME = "/sys/kernel/realtime"
DEBUGFS_PREEMPT = "/sys/kernel/debug/sched/preempt"
PACKED_CONFIG = "/proc/config.gz"
PATHS = [
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    "/proc/sys/kernel/arch",
    "/proc/sys/kernel/tainted",
    "/proc/cmdline",
    "/proc/xenomai/version",
    "/sys/kernel/security/lockdown",
    REALTIME,
    DEBUGFS_PREEMPT,
    PACKED_CONFIG,
]
MODELS = {
    "CONFIG_PREEMPT_RT": "PREEMPT_RT",
    "CONFIG_PREEMPT_LAZY": "lazy",
    "CONFIG_PREEMPT": "full",
    "CONFIG_PREEMPT_VOLUNTARY": "voluntary",
    "CONFIG_PREEMPT_NONE": "none",
}

ARCHITECTURES = {
    "CONFIG_X86_64": "x86_64",
    "CONFIG_ARM64": "aarch64",
    "CONFIG_ARM": "arm",
    "CONFIG_ARCH_RV64I": "riscv64",
    "CONFIG_LOONGARCH": "loongarch64",
}
"""The architecture (`uname -m`) that an option shows. Kernels before 6.1 do not show it in /proc."""


def config_paths(release: str) -> list[str]:
    """Return the paths where distributions keep a kernel's configuration."""
    return [
        f"/boot/config-{release}",
        f"/lib/modules/{release}/config",
        f"/lib/modules/{release}/build/.config",
    ]


def version_tuple(release: str | None) -> tuple[int, int] | None:
    """Return (6, 12) for `"6.12.0-rt5"`; None for any other text."""
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", release or "")
    return (int(match[1]), int(match[2])) if match else None


class Configuration(NamedTuple):
    """The options that a kernel sets, and the file that lists them."""

    options: dict[str, str]
    path: str


def config(files: Files) -> Configuration | None:
    """Return the running kernel's configuration; None if it cannot be read."""
    path, text = PACKED_CONFIG, files.unpacked(PACKED_CONFIG)
    if text is None:
        release = files.text("/proc/sys/kernel/osrelease") or ""
        path, text = next(
            ((path, content) for path in config_paths(release) if (content := files.text(path))), (path, None)
        )
    if not text:
        return None
    options = re.finditer(r"^(CONFIG_[A-Z0-9_]+)=(.*)$", text, re.MULTILINE)
    return Configuration({match[1]: match[2] for match in options}, path)


def preemption(files: Files) -> Preemption:
    """Return the preemption model, and what each source reports."""
    release = files.text("/proc/sys/kernel/osrelease")
    version = files.text("/proc/sys/kernel/version") or ""
    realtime = files.text(REALTIME)
    debugfs = files.text(DEBUGFS_PREEMPT)
    flag = re.search(r"\bPREEMPT(?:[_ ]RT|_DYNAMIC|_LAZY)?\b", version)
    requested = re.findall(
        r"(?:^|\s)preempt=(none|voluntary|full|lazy)(?=\s|$)", files.text("/proc/cmdline") or ""
    )
    configured = _first_set(config(files), MODELS)
    sources: dict[str, str | dict[str, str | int]] = {
        REALTIME: realtime or UNKNOWN,
        "version": flag[0] if flag else "no PREEMPT" if version else UNKNOWN,
        DEBUGFS_PREEMPT: debugfs or UNKNOWN,
        "cmdline": f"preempt={requested[-1]}" if requested else "no preempt=",
        "config": configured or UNKNOWN,
    }

    chosen = re.search(r"\((none|voluntary|full|lazy)\)", debugfs or "")
    flag_text = flag[0].replace(" ", "_") if flag else None
    if realtime == "1" or flag_text == "PREEMPT_RT":
        model = "PREEMPT_RT"
    elif chosen:
        model = chosen[1]
    elif not version:
        model = None
    elif flag_text == "PREEMPT_DYNAMIC":
        # debugfs can change the model at any time; without it, the boot parameter is the best source.
        model = requested[-1] if requested else configured
    elif configured:
        model = configured
    elif flag_text == "PREEMPT_LAZY":
        model = "lazy"
    elif flag_text == "PREEMPT":
        # Since 6.13, a kernel with lazy preemption has the same flag.
        model = "full or lazy" if (number := version_tuple(release)) is None or number >= (6, 13) else "full"
    else:
        model = "none or voluntary"
    return Preemption(model=model, sources=sources)


def lockdown(text: str | None) -> str | None:
    """Return the selected word: `"integrity"` for `"none [integrity] confidentiality"`."""
    match = re.search(r"\[([a-z]{1,32})\]", text or "")
    return match[1] if match else None


def _first_set(built: Configuration | None, names: Mapping[str, str]) -> str | None:
    """Return the name (from option -> name) of the first option that is `y`; None if no option is."""
    options = {} if built is None else built.options
    return next((name for option, name in names.items() if options.get(option) == "y"), None)


def facts(files: Files, machine: str | None = None) -> Kernel:
    """Return release, version, architecture, preemption model, command line and real-time core.

    `machine`: the output of `uname -m`, if known.
    """
    built = config(files)
    hz = "" if built is None else built.options.get("CONFIG_HZ", "")
    return Kernel(
        release=files.text("/proc/sys/kernel/osrelease"),
        version=files.text("/proc/sys/kernel/version"),
        architecture=files.text("/proc/sys/kernel/arch") or machine or _first_set(built, ARCHITECTURES),
        preemption=preemption(files),
        cmdline=files.text("/proc/cmdline"),
        tainted=files.number("/proc/sys/kernel/tainted"),
        lockdown=lockdown(files.text("/sys/kernel/security/lockdown")),
        xenomai=files.text("/proc/xenomai/version") if files.exists("/proc/xenomai/version") else "none",
        hz=int(hz) if re.fullmatch(r"[0-9]{1,5}", hz) else None,
        rt_group_sched=None if built is None else built.options.get("CONFIG_RT_GROUP_SCHED") == "y",
        steal_excluded=None if built is None else built.options.get("CONFIG_PARAVIRT_TIME_ACCOUNTING") == "y",
        config=None if built is None else built.path,
        extension=real_time_core(files),
    )
