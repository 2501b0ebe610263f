# SPDX-License-Identifier: MIT
"""Reads a target's real-time core, if any: Xenomai Cobalt, EVL (Xenomai 4) or RTAI."""

from __future__ import annotations

import re

from rtgauge.record.facts import ForcedSoft, Gravity, RealTimeCore, RtaiCalibration
from rtgauge.target.file_batch import Files, cpu_list
from rtgauge.units import format_cpu_list

VERSION = "/proc/xenomai/version"
CLOCK = "/proc/xenomai/clock/coreclk"
AFFINITY = "/proc/xenomai/affinity"
PIPELINE = "/proc/ipipe"
BUILD = "/proc/sys/kernel/version"
PARAMETERS = "/sys/module/xenomai/parameters"
POSSIBLE = "/sys/devices/system/cpu/possible"
COBALT_PATHS = [
    VERSION,
    CLOCK,
    AFFINITY,
    PIPELINE,
    BUILD,
    POSSIBLE,
    *(f"{PARAMETERS}/{name}" for name in ("supported_cpus", "allowed_group", "state", "smi")),
]
GRAVITY = re.compile(
    r"^ *gravity: irq=(-?[0-9]{1,15}) kernel=(-?[0-9]{1,15}) user=(-?[0-9]{1,15})$", re.MULTILINE
)
DEVICES = re.compile(r"^ *devices: timer=([^,\n]{1,60}), clock=([^\n]{1,60})$", re.MULTILINE)
FOUND = re.compile(r"^(irq|kernel|user) gravity\.\.\. ([0-9]{1,10}) ns$", re.MULTILINE)
BEGUN = re.compile(r"^(irq|kernel|user) gravity\.\.\. ?$", re.MULTILINE)
CONTEXTS = ("irq", "kernel", "user")
WATCHDOG = re.compile(r"^ *watchdog: (on|off)$", re.MULTILINE)
NOBODY = "-1"


def cobalt(files: Files) -> RealTimeCore:
    """Return what Cobalt reports: version, CPUs, state, pipeline, gravity, timer and clock."""
    clock = files.text(CLOCK) or ""
    devices, watchdog = DEVICES.search(clock), WATCHDOG.search(clock)
    group = files.text(f"{PARAMETERS}/allowed_group") or ""
    gravity = gravity_of(clock) or {f"{context}_ns": None for context in CONTEXTS}
    return RealTimeCore(
        name="Xenomai Cobalt",
        version=files.text(VERSION),
        cpus=_of_mask(files, files.text(f"{PARAMETERS}/supported_cpus"), r"[0-9]{1,20}", 10),
        affinity=_of_mask(files, files.text(AFFINITY), r"[0-9a-fA-F]{1,16}", 16),
        state=files.text(f"{PARAMETERS}/state"),
        pipeline=_pipeline(files),
        gravity=Gravity.model_validate(gravity),
        timer=devices[1] if devices is not None else None,
        clock=devices[2] if devices is not None else None,
        clock_watchdog=watchdog[1] if watchdog is not None else None,
        allowed_group="none" if group == NOBODY else group if re.fullmatch(r"[0-9]{1,10}", group) else None,
        smi=files.text(f"{PARAMETERS}/smi"),
    )


def gravity_of(clock: str) -> dict[str, int] | None:
    """Return `irq_ns`, `kernel_ns` and `user_ns` from the text of CLOCK; None if it has none."""
    match = GRAVITY.search(clock)
    if match is None:
        return None
    return {f"{context}_ns": int(ns) for context, ns in zip(CONTEXTS, match.groups(), strict=True)}


def autotuned(printed: str) -> dict[str, int]:
    """Return the gravities that Xenomai's autotune has printed up to now, in the form of `gravity_of`."""
    return {f"{match[1]}_ns": int(match[2]) for match in FOUND.finditer(printed)}


def autotune_looks_for(printed: str) -> str | None:
    """Return the gravity that autotune is searching for now (irq, kernel or user), from its last line, or
    None.
    """
    begun = BEGUN.findall(printed)
    return begun[-1] if begun else None


def _of_mask(files: Files, mask: str | None, pattern: str, base: int) -> str | None:
    """Return the CPUs of a mask that are possible CPUs."""
    possible = cpu_list(files.text(POSSIBLE))
    if possible is None or mask is None or not re.fullmatch(pattern, mask):
        return None
    return format_cpu_list([cpu for cpu in possible if int(mask, base) >> cpu & 1])


def _pipeline(files: Files) -> str | None:
    if files.exists(PIPELINE):
        return "I-pipe"
    return "Dovetail" if "IRQPIPE" in (files.text(BUILD) or "").split() else None


FOLDER = "/proc/rtai"
HAL, SCHEDULER = f"{FOLDER}/hal", f"{FOLDER}/scheduler"
MODULES = "/proc/modules"
INSTALLED = r"/(?:usr/realtime|usr|usr/local|opt/rtai)/share/rtai/config-rtai-([0-9][A-Za-z0-9._-]{0,31})"
"""The path of RTAI's configuration file, whose name has the version. The running modules do not report it."""
RTAI_PATHS = [
    FOLDER,
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


def rtai(files: Files) -> RealTimeCore:
    """Return RTAI's version, isolated CPUs, modules, and the content of /proc/rtai/scheduler.

    RTAI numbers its CPUs from 0.
    """
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


EVL = "/sys/devices/virtual/evl/control"
RUNTIMES = {"Xenomai Cobalt": "cobalt", "RTAI": "rtai"}
"""Maps a core's name in the facts to the parameter `rt` of probes that can run on it."""
RTAI = ("/proc/rtai", "/sys/module/rtai_hal")
"""The second path exists even if /proc/rtai cannot be read."""
PATHS = [*COBALT_PATHS, f"{EVL}/abi", f"{EVL}/cpus", f"{EVL}/version", *RTAI, *RTAI_PATHS]


def facts(files: Files) -> RealTimeCore:
    """Return the real-time core. Its `name` is Xenomai Cobalt, EVL, RTAI, none or unknown."""
    if files.exists(VERSION):
        return cobalt(files)
    if files.exists(f"{EVL}/cpus") or files.exists(f"{EVL}/abi"):
        abi = files.text(f"{EVL}/abi")
        version = files.text(f"{EVL}/version") or (f"ABI {abi}" if abi else None)
        return RealTimeCore(name="EVL", version=version, cpus=files.text(f"{EVL}/cpus") or None)
    if any(files.exists(path) for path in RTAI):
        return rtai(files)
    # Cobalt appears in /proc and EVL in sysfs. Only if both are readable can the answer be none.
    readable = files.exists("/proc/sys/kernel/osrelease") and files.exists("/sys/devices/system/cpu/online")
    name = "none" if readable else None
    return RealTimeCore(name=name, version=name, cpus=name)
