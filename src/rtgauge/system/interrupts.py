# SPDX-License-Identifier: MIT
"""The CPUs that handle a target's interrupts and the kernel's deferred work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import UNKNOWN, known, shortest_cpu_list
from rtgauge.units import format_cpu_list, parse_cpu_list, parse_cpu_mask

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

DEFAULT = "/proc/irq/default_smp_affinity"
WORKQUEUES = "/sys/devices/virtual/workqueue/cpumask"
DEBUGFS = "/sys/kernel/debug/irq/irqs"
PATHS = [
    DEFAULT,
    WORKQUEUES,
    "/proc/irq/[0-9]*/smp_affinity_list",
    "/proc/irq/[0-9]*/effective_affinity_list",
    "/sys/kernel/irq/[0-9]*/actions",
    f"{DEBUGFS}/[0-9]*",
    "/proc/sys/kernel/watchdog_cpumask",
]


def _mask_list(text: str | None) -> str:
    try:
        return UNKNOWN if text is None else format_cpu_list(parse_cpu_mask(text))
    except ValueError:
        return UNKNOWN


def lines(files: Files) -> dict[str, dict[str, Any]] | str:
    """IRQ -> devices, allowed CPUs, effective CPUs, and whether the kernel manages the affinity (only debugfs
    shows it).
    """
    irqs: dict[str, dict[str, Any]] = {}
    for match, text in files.matching(r"/proc/irq/([0-9]{1,6})/smp_affinity_list"):
        number = match[1]
        internals = files.text(f"{DEBUGFS}/{number}")
        irqs[number] = {
            "devices": files.text(f"/sys/kernel/irq/{number}/actions") or UNKNOWN,
            "allowed": shortest_cpu_list(text),
            "effective": shortest_cpu_list(files.text(f"/proc/irq/{number}/effective_affinity_list")),
            "managed": known("IRQD_AFFINITY_MANAGED" in internals if internals is not None else None),
        }
    return irqs or UNKNOWN


def facts(files: Files) -> dict[str, Any]:
    """CPU lists: the default for new interrupts, each interrupt's, the unbound workqueues', the lockup
    watchdog's.
    """
    return {
        "default_affinity": _mask_list(files.text(DEFAULT)),
        "workqueue_cpus": _mask_list(files.text(WORKQUEUES)),
        "watchdog_cpus": shortest_cpu_list(files.text("/proc/sys/kernel/watchdog_cpumask")),
        "lines": lines(files),
    }


def in_use_on(interrupts: dict[str, Any], cpus: set[int]) -> list[str] | None:
    """Interrupts of `facts` that a device uses and one of `cpus` handles; None if they are unknown."""
    if not isinstance(interrupts.get("lines"), dict):
        return None
    handled: list[str] = []
    for number, line in interrupts["lines"].items():
        cpu_text = line["effective"] if line["effective"] not in (UNKNOWN, "") else line["allowed"]
        # an interrupt without a device has the default mask and never fires
        if (
            line["devices"] != UNKNOWN
            and cpu_text not in (UNKNOWN, "")
            and cpus & set(parse_cpu_list(cpu_text))
        ):
            handled.append(f"{number} ({line['devices']})")
    return handled
