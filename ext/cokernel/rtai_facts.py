# SPDX-License-Identifier: MIT
"""Reads the facts of RTAI."""

from __future__ import annotations

import re

from rtgauge.record.facts import ForcedSoft, RealTimeCore, RtaiCalibration
from rtgauge.target.file_batch import Files
from rtgauge.units import format_cpu_list

FOLDER = "/proc/rtai"
HAL, SCHEDULER = f"{FOLDER}/hal", f"{FOLDER}/scheduler"
MODULES = "/proc/modules"
SIGNS = (FOLDER, "/sys/module/rtai_hal")
"""The second path exists even if the first one cannot be read."""
INSTALLED = r"/(?:usr/realtime|usr|usr/local|opt/rtai)/share/rtai/config-rtai-([0-9][A-Za-z0-9._-]{0,31})"
"""The path of RTAI's configuration file, whose name has the version. The running modules do not report it."""
PATHS = [
    *SIGNS,
    HAL,
    SCHEDULER,
    MODULES,
    *(
        f"{prefix}/share/rtai/config-rtai-*"
        for prefix in ("/usr/realtime", "/usr", "/usr/local", "/opt/rtai")
    ),
]
NUMBER = r"\s*(-?[0-9]{1,15})\b"
CALIBRATION = {
    "time_base_hz": rf"Calibrated Time Base Frequency:{NUMBER} Hz",
    "user_latency_ns": rf"Calibrated user space latency:{NUMBER} ns",
    "kernel_latency_ns": rf"Calibrated kernel space latency:{NUMBER} ns",
    "setup_to_firing_ns": rf"Calibrated oneshot timer setup_to_firing time:{NUMBER} ns",
}
KIND = re.compile(r"^RTAI ([A-Za-z0-9 ]{1,60}) Task Scheduler", re.MULTILINE)
CPUS = re.compile(r"Number of RT CPUs in system: ([0-9]{1,5})\b")
FORCED = re.compile(
    r"Number of forced hard/soft/hard transitions: traps ([0-9]{1,10}), syscalls ([0-9]{1,10})\b"
)
TASK = re.compile(r"^[0-9]{1,10} +[0-9]{1,20} +\S+ +\S+ +0x[0-9a-f]{1,8} .*$", re.MULTILINE)
ISOLATED = re.compile(r"MASK OF CPUs ISOLATED FOR RTAI: 0x([0-9a-f]{1,16})\b")
MODULE = re.compile(r"^(rtai_[a-z0-9_]{1,50}) ", re.MULTILINE)


def rtai(files: Files) -> RealTimeCore | None:
    """Return RTAI's version, isolated CPUs, modules, and the content of /proc/rtai/scheduler; None if RTAI is
    not loaded.

    RTAI numbers its CPUs from 0.
    """
    if not any(files.exists(path) for path in SIGNS):
        return None
    scheduler, modules = files.text(SCHEDULER), files.text(MODULES)
    forced = FORCED.search(scheduler or "")
    kind, cpus = KIND.search(scheduler or ""), CPUS.search(scheduler or "")
    return RealTimeCore(
        name="RTAI",
        version=version(files),
        cpus=format_cpu_list(list(range(int(cpus[1])))) if cpus is not None else None,
        isolated_cpus=_isolated(files.text(HAL)),
        modules=sorted(MODULE.findall(modules)) if modules is not None else None,
        scheduler=kind[1].strip() if kind is not None else None,
        cpu_number=int(cpus[1]) if cpus is not None else None,
        calibration=loaded_calibration(files),
        tasks=len(TASK.findall(scheduler)) if scheduler is not None else None,
        forced_soft=None if forced is None else ForcedSoft(traps=int(forced[1]), system_calls=int(forced[2])),
    )


def loaded_calibration(files: Files) -> RtaiCalibration:
    """Return RTAI's calibration from the content of SCHEDULER; empty if RTAI is not loaded."""
    scheduler = files.text(SCHEDULER)
    return RtaiCalibration.model_validate(
        {name: _number(pattern, scheduler) for name, pattern in CALIBRATION.items()}
    )


def version(files: Files) -> str | None:
    """Return the version of the installed RTAI; None if the usual places have none or more than one."""
    versions = {match[1] for match, _ in files.matching(INSTALLED)}
    return versions.pop() if len(versions) == 1 else None


def _number(pattern: str, text: str | None) -> int | None:
    match = re.search(pattern, text or "")
    return int(match[1]) if match is not None else None


def _isolated(hal: str | None) -> str | None:
    match = ISOLATED.search(hal or "")
    if match is None:
        return None
    mask = int(match[1], 16)
    return format_cpu_list([cpu for cpu in range(64) if mask >> cpu & 1])
