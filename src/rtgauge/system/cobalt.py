# SPDX-License-Identifier: MIT
"""What Xenomai 3's Cobalt says of itself in /proc/xenomai and as parameters of its module."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rtgauge.record.facts import Gravity, RealTimeCore
from rtgauge.system.file_batch import cpu_list
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

VERSION = "/proc/xenomai/version"
CLOCK = "/proc/xenomai/clock/coreclk"
AFFINITY = "/proc/xenomai/affinity"
PIPELINE = "/proc/ipipe"
BUILD = "/proc/sys/kernel/version"
PARAMETERS = "/sys/module/xenomai/parameters"
POSSIBLE = "/sys/devices/system/cpu/possible"
PATHS = [
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


def facts(files: Files) -> RealTimeCore:
    """What Cobalt says of itself: version, CPUs, state, pipeline, gravity, devices of its timer and clock."""
    clock = files.text(CLOCK) or ""
    devices, watchdog = DEVICES.search(clock), WATCHDOG.search(clock)
    group = files.text(f"{PARAMETERS}/allowed_group")
    gravity = gravity_of(clock) or dict.fromkeys((f"{context}_ns" for context in CONTEXTS), None)
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
        allowed_group="none"
        if group == NOBODY
        else group
        if group is not None and re.fullmatch(r"[0-9]{1,10}", group)
        else None,
        smi=files.text(f"{PARAMETERS}/smi"),
    )


def gravity_of(clock: str) -> dict[str, int] | None:
    """`irq_ns`, `kernel_ns`, `user_ns` from the text of CLOCK; None if it has none."""
    match = GRAVITY.search(clock)
    return (
        None
        if match is None
        else {
            f"{context}_ns": int(match[context_number]) for context_number, context in enumerate(CONTEXTS, 1)
        }
    )


def autotuned(printed: str) -> dict[str, int]:
    """What Xenomai's autotune printed that it found so far, in the form of `gravity_of`."""
    return {f"{match[1]}_ns": int(match[2]) for match in FOUND.finditer(printed)}


def autotune_looks_for(printed: str) -> str | None:
    """The gravity autotune looks for, by its last line: irq, kernel or user; None: found, or not begun."""
    begun = BEGUN.findall(printed)
    return begun[-1] if begun else None


def _of_mask(files: Files, mask: str | None, pattern: str, base: int) -> str | None:
    """The CPUs of a mask, of those that are possible."""
    possible = cpu_list(files.text(POSSIBLE))
    if possible is None or mask is None or not re.fullmatch(pattern, mask):
        return None
    return format_cpu_list([cpu for cpu in possible if int(mask, base) >> cpu & 1])


def _pipeline(files: Files) -> str | None:
    if files.exists(PIPELINE):
        return "I-pipe"
    return "Dovetail" if "IRQPIPE" in (files.text(BUILD) or "").split() else None
