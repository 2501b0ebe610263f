# SPDX-License-Identifier: MIT
"""Collects a target's facts: its hardware, kernel and settings.

A fact that cannot be read is "unknown". Nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rtgauge.record.facts import ClockSource, Facts, Memory, Timers
from rtgauge.system import cpus, hardware, interrupts, kernel, scheduling, threads
from rtgauge.system.deployment.current import JOURNAL, find_held, recognise
from rtgauge.system.deployment.extension_auditor import needed_auditor
from rtgauge.system.runtime import cokernel_paths
from rtgauge.system.step_changes import cpu_times
from rtgauge.target.file_batch import Files, Read, chosen
from rtgauge.target.open_target import reader
from rtgauge.target.target_protocol import BOOT_ID

CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0"
OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
TIMER_LIST = "/proc/timer_list"
MEMORY_PATHS = {
    "transparent_hugepages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "thp_defrag": "/sys/kernel/mm/transparent_hugepage/defrag",
    "ksm": "/sys/kernel/mm/ksm/run",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "swappiness": "/proc/sys/vm/swappiness",
}


def fact_paths() -> list[str]:
    """Return the files and globs to read in one batch."""
    paths = (
        *("/proc/sys/kernel/hostname", BOOT_ID, "/proc/meminfo", "/proc/swaps", "/proc/stat", JOURNAL),
        *(f"{CLOCKSOURCE}/{name}_clocksource" for name in ("current", "available")),
        *(*OS_RELEASE, *MEMORY_PATHS.values(), TIMER_LIST),
        *(*kernel.PATHS, *cpus.PATHS, *scheduling.PATHS, *interrupts.PATHS, *threads.PATHS),
        *(*cokernel_paths(), *hardware.VIRTUAL_PATHS, *hardware.FIRMWARE_PATHS, *hardware.IDENTITY_PATHS),
    )
    return list(dict.fromkeys(paths))


class MachineRead(NamedTuple):
    """A machine's facts, and the files that they came from."""

    facts: Facts
    files: Files


def more_fact_paths(files: Files) -> list[str]:
    """Return the paths for a second batch, which depend on the first. `facts` takes both batches."""
    release = files.text("/proc/sys/kernel/osrelease")
    named = release is not None and re.fullmatch(r"[A-Za-z0-9._+~-]{1,128}", release) is not None
    configuration = (
        kernel.config_paths(release)
        if release and named and files.unpacked(kernel.PACKED_CONFIG) is None
        else []
    )
    return configuration + scheduling.more_paths(files)


def memory(files: Files) -> Memory:
    """Return the sizes in bytes, and the settings of huge pages, merging and migration."""
    meminfo, swaps = files.text("/proc/meminfo") or "", files.text("/proc/swaps")
    sizes = {
        match[1]: int(match[2]) * 1024
        for match in re.finditer(r"^([A-Za-z]+):\s+([0-9]{1,15}) kB$", meminfo, re.MULTILINE)
    }
    return Memory(
        total_bytes=sizes.get("MemTotal"),
        available_bytes=sizes.get("MemAvailable"),
        swap_total_bytes=sizes.get("SwapTotal"),
        swap_free_bytes=sizes.get("SwapFree"),
        **{name: chosen(files.text(path)) for name, path in MEMORY_PATHS.items()},
        swaps=None if swaps is None else [line.split()[0] for line in swaps.splitlines()[1:] if line.strip()],
    )


def timers(files: Files) -> Timers:
    """Return the kernel timers' resolution: 1 ns with high-resolution timers, otherwise a tick.

    Only root can read it.
    """
    text = files.text(TIMER_LIST) or ""
    match = re.search(r"^[ \t]*\.resolution:[ \t]+([0-9]{1,12}) nsecs$", text, re.MULTILINE)
    return Timers(resolution_ns=int(match[1]) if match else None)


def pretty_name(files: Files) -> str | None:
    """Return PRETTY_NAME of os-release(5)."""
    for path in OS_RELEASE:
        match = re.search(r"^PRETTY_NAME=([\"']?)(.*)\1$", files.text(path) or "", re.MULTILINE)
        if match:
            return match[2]
    return None


def facts(files: Files, machine: str | None = None, interface: str | None = None) -> Facts:
    """Return the facts, from the engine's `read` of `fact_paths` and `more_fact_paths`.

    `machine` is the output of `uname -m`, if known: older kernels do not show their architecture in /proc.
    `interface`: the name of the network interface in use, whose `Auditor.interface_paths` are in `files` too.
    """
    times = cpu_times(files.text("/proc/stat"))
    boot_id, processors = files.text(BOOT_ID), cpus.facts(files)
    clocks = files.text(f"{CLOCKSOURCE}/available_clocksource")
    irqs = interrupts.facts(files, cpus.all_isolated(files))
    all_facts = Facts(
        host=files.text("/proc/sys/kernel/hostname"),
        os=pretty_name(files),
        boot_id=boot_id,
        identity=hardware.identity(files),
        kernel=kernel.facts(files, machine),
        cpu=processors,
        deployment=recognise(processors, find_held(files, boot_id)),
        memory=memory(files),
        clock_source=ClockSource(
            current=files.text(f"{CLOCKSOURCE}/current_clocksource"),
            available=clocks.split() if clocks is not None else None,
        ),
        timers=timers(files),
        machine=hardware.virtualization(files),
        firmware=hardware.firmware(files),
        scheduling=scheduling.facts(files),
        interrupts=irqs,
        tasks=threads.facts(files),
        steal_ns_since_boot=sum(cpu.get("steal", 0) for cpu in times.values()) if times else None,
    )
    if interface is None:
        return all_facts
    network = needed_auditor(f"the network interface {interface}").interface_facts(
        interface, files, irqs.lines or {}
    )
    return all_facts.model_copy(update={"network": network})


def read_facts(target: str, more_paths: Sequence[str] = (), interface: str | None = None) -> MachineRead:
    """Return a target's facts and the files that they come from. `more_paths` are read too.

    `interface`: the network interface in use, or the IP address of a peer. Raises InputError if there is no
    such target or interface, MeasureError if it cannot be read.
    """
    with reader(target) as (machine, read):
        return facts_by(read, machine, more_paths, interface)


def facts_by(
    read: Read, machine: str, more_paths: Sequence[str] = (), interface: str | None = None
) -> MachineRead:
    """Return a target's facts and the files that they come from, read in two batches.

    `read`: reads files on the target. `machine`: its `uname -m`. `more_paths` are read with the first batch.
    `interface`: the network interface in use, or the IP address of a peer. Raises InputError, MeasureError.
    """
    paths, used = [*fact_paths(), *more_paths], None
    if interface is not None:
        known = needed_auditor(f"the network interface {interface}")
        used = known.interface_of(read, interface)
        paths += known.interface_paths(used)
    files = read(paths)
    files |= read(more_fact_paths(files))
    return MachineRead(facts(files, machine, used), files)
