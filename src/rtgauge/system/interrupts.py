# SPDX-License-Identifier: MIT
"""Finds the CPUs that handle a target's interrupts and its kernel's deferred work."""

from __future__ import annotations

from rtgauge.record.facts import InterruptLine, Interrupts
from rtgauge.target.file_batch import Files, shortest_cpu_list
from rtgauge.units import format_cpu_list, parse_cpu_list, parse_cpu_mask

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


def _mask_list(text: str | None) -> str | None:
    try:
        return None if text is None else format_cpu_list(parse_cpu_mask(text))
    except ValueError:
        return None


def _lines(files: Files) -> dict[str, InterruptLine] | None:
    """Return each IRQ's line. Only debugfs shows whether the kernel manages the affinity."""
    irqs: dict[str, InterruptLine] = {}
    for match, text in files.matching(r"/proc/irq/([0-9]{1,6})/smp_affinity_list"):
        number = match[1]
        internals = files.text(f"{DEBUGFS}/{number}")
        irqs[number] = InterruptLine(
            devices=files.text(f"/sys/kernel/irq/{number}/actions") or None,
            allowed=shortest_cpu_list(text),
            effective=shortest_cpu_list(files.text(f"/proc/irq/{number}/effective_affinity_list")),
            managed=None if internals is None else "IRQD_AFFINITY_MANAGED" in internals,
        )
    return irqs or None


def facts(files: Files, isolated: list[int] | None) -> Interrupts:
    """Return which CPUs handle new interrupts, each interrupt, unbound workqueues and the lockup watchdog,
    and which devices' interrupts are on isolated CPUs.

    `isolated`: the isolated CPUs; None if unknown.
    """
    lines = _lines(files)
    return Interrupts(
        default_affinity=_mask_list(files.text(DEFAULT)),
        workqueue_cpus=_mask_list(files.text(WORKQUEUES)),
        watchdog_cpus=shortest_cpu_list(files.text("/proc/sys/kernel/watchdog_cpumask")),
        lines=lines,
        on_isolated=None if lines is None or isolated is None else _in_use_on(lines, set(isolated)),
    )


def _in_use_on(lines: dict[str, InterruptLine], cpus: set[int]) -> list[str]:
    """Return the interrupts that a device uses and that one of `cpus` handles."""
    return [
        f"{number} ({line.devices})"
        for number, line in lines.items()
        # An interrupt without a device has the default mask, and never fires.
        if line.devices is not None and cpus & _handling(line)
    ]


def _handling(line: InterruptLine) -> set[int]:
    """Return the CPUs that will handle the next interrupts. The kernel may move an interrupt only when it
    fires (kernel/irq/migration.c); until then, the effective CPU is outside of the mask.
    """
    effective, allowed = (
        set(parse_cpu_list(cpus)) if cpus else set[int]() for cpus in (line.effective, line.allowed)
    )
    return effective if effective and (not allowed or effective & allowed) else allowed
