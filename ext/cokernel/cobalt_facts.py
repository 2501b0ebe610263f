# SPDX-License-Identifier: MIT
"""Reads the facts of Xenomai: of Cobalt (Xenomai 3) and of EVL (Xenomai 4)."""

from __future__ import annotations

import re

from rtgauge.record.facts import Gravity, RealTimeCore
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
GRAVITY_LINE = re.compile(r"^(irq|kernel|user) gravity\.\.\. ([0-9]{1,10}) ns$", re.MULTILINE)
BEGUN = re.compile(r"^(irq|kernel|user) gravity\.\.\. ?$", re.MULTILINE)
CONTEXTS = ("irq", "kernel", "user")
WATCHDOG = re.compile(r"^ *watchdog: (on|off)$", re.MULTILINE)
NOBODY = "-1"
EVL = "/sys/devices/virtual/evl/control"
PATHS = [*COBALT_PATHS, f"{EVL}/abi", f"{EVL}/cpus", f"{EVL}/version"]


def xenomai(files: Files) -> RealTimeCore | None:
    """Return the facts of Cobalt or EVL; None if neither runs."""
    if files.exists(VERSION):
        return cobalt(files)
    if files.exists(f"{EVL}/cpus") or files.exists(f"{EVL}/abi"):
        abi = files.text(f"{EVL}/abi")
        version = files.text(f"{EVL}/version") or (f"ABI {abi}" if abi else None)
        return RealTimeCore(name="EVL", version=version, cpus=files.text(f"{EVL}/cpus") or None)
    return None


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
    return {f"{match[1]}_ns": int(match[2]) for match in GRAVITY_LINE.finditer(printed)}


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
