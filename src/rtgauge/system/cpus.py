# SPDX-License-Identifier: MIT
"""Reads a target's processors: models, counts, cores, caches, isolation, frequency and idle states."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rtgauge.record.facts import Cache, Frequency, Idle, IdleState, Processors, Topology
from rtgauge.target.file_batch import Files, cpu_list, integer, shortest_cpu_list
from rtgauge.units import format_cpu_list, parse_cpu_list

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
TOPOLOGY_PATHS = [
    *(
        f"{CPU}/cpu[0-9]*/topology/{name}"
        for name in ("physical_package_id", "core_id", "thread_siblings_list")
    ),
    *(f"{CPU}/cpu[0-9]*/cache/index[0-9]*/{name}" for name in ("level", "type", "size", "shared_cpu_list")),
    f"{NODE}/node[0-9]*/cpulist",
]


def caches(files: Files) -> list[Cache] | None:
    """Return each cache once; None if the kernel shows none."""
    listed: dict[tuple[str, str], dict[str, str]] = {}
    for match, text in files.matching(
        rf"{CPU}/cpu([0-9]{{1,5}})/cache/(index[0-9]{{1,2}})/(level|type|size|shared_cpu_list)"
    ):
        listed.setdefault((match[1], match[2]), {})[match[3]] = text
    unique = {
        (
            integer(cache.get("level")),
            cache.get("type"),
            cache.get("size"),
            shortest_cpu_list(cache.get("shared_cpu_list")),
        ): None
        for cache in listed.values()
    }
    distinct = [Cache(level=level, type=kind, size=size, cpus=cpus) for level, kind, size, cpus in unique]
    return sorted(distinct, key=lambda cache: (str(cache.level), str(cache.type))) or None


def topology(files: Files) -> Topology:
    """Return the number of packages and cores, the threads per core, the CPUs of each core that has several,
    the caches, and NUMA node -> CPUs.
    """
    packages: dict[str, str] = {}
    cores: dict[str, str] = {}
    siblings: dict[str, str] = {}
    for match, text in files.matching(
        rf"{CPU}/cpu([0-9]{{1,5}})/topology/(physical_package_id|core_id|thread_siblings_list)"
    ):
        {"physical_package_id": packages, "core_id": cores, "thread_siblings_list": siblings}[match[2]][
            match[1]
        ] = text
    groups = {group for text in siblings.values() if (group := shortest_cpu_list(text))}
    threads = [len(parse_cpu_list(group)) for group in groups]
    nodes = {
        match[1]: cpus
        for match, text in files.matching(rf"{NODE}/node([0-9]{{1,5}})/cpulist")
        if (cpus := shortest_cpu_list(text)) is not None
    }
    # Cores of different clusters may have the same number, so groups of siblings are counted instead.
    by_number = len({(packages.get(cpu), core) for cpu, core in cores.items()})
    return Topology(
        packages=len(set(packages.values())) or None,
        cores=len(groups) or by_number or None,
        threads_per_core=max(threads, default=None),
        smt_siblings=sorted(group for group in groups if len(parse_cpu_list(group)) > 1)
        if siblings
        else None,
        caches=caches(files),
        numa_nodes=nodes or None,
    )


CPUINFO = "/proc/cpuinfo"
FEATURES = (
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "tsc_reliable",
    "tsc_deadline_timer",
    "arat",
    "smap",
    "hypervisor",
)
"""Flags of x86 in /proc/cpuinfo that affect timing."""
RISCV_FEATURES = ("sstc", "zihintpause", "svinval")
"""RISC-V extensions that affect timing. Without sstc, the kernel calls the firmware (SBI) to program a
timer.
"""
PARTITIONS = "/sys/fs/cgroup/cpuset.cpus.isolated"
"""The CPUs of isolated partitions (cgroup v2; since Linux 6.8). /sys/devices/system/cpu/isolated lists only
isolcpus=.
"""
RESCTRL = "/sys/fs/resctrl"
ALLOCATION_FLAGS = {"cat_l2": "L2", "cat_l3": "L3", "mba": "MB"}
"""Flags in /proc/cpuinfo of what can be divided among groups of tasks."""
PATHS = [
    *TOPOLOGY_PATHS,
    CPUINFO,
    *(
        f"{CPU}/{name}"
        for name in ("online", "possible", "present", "isolated", "nohz_full", "smt/active", "smt/control")
    ),
    *(
        f"{CPU}/cpu[0-9]*/cpufreq/{name}"
        for name in ("scaling_governor", "scaling_driver", "cpuinfo_min_freq", "cpuinfo_max_freq")
    ),
    f"{CPU}/cpufreq/boost",
    f"{CPU}/intel_pstate/status",
    f"{CPU}/intel_pstate/no_turbo",
    *(f"{CPU}/cpuidle/{name}" for name in ("current_driver", "current_governor", "current_governor_ro")),
    *(f"{CPU}/cpu[0-9]*/cpuidle/state[0-9]*/{name}" for name in ("name", "latency", "disable")),
    "/proc/device-tree/model",
    PARTITIONS,
    f"{RESCTRL}/info/*/cbm_mask",
    f"{RESCTRL}/info/*/min_bandwidth",
]


def model(cpuinfo: str | None, board: str | None) -> str | None:
    """Return the processor's name; for an Arm or RISC-V core without one, the board and the core's numbers.
    None if unknown.
    """
    fields = {
        match[1].strip().lower(): match[2].strip()
        for match in re.finditer(r"^([^\n:]{1,64}):([^\n]*)$", cpuinfo or "", re.MULTILINE)
    }
    for key in ("model name", "cpu model", "uarch", "cpu"):
        if fields.get(key):
            return fields[key]
    if fields.get("marchid"):
        core = f"RISC-V vendor {fields.get('mvendorid', '?')} architecture {fields['marchid']}"
        return f"{board} ({core})" if board else core
    if fields.get("cpu part"):
        core = f"Arm implementer {fields.get('cpu implementer', '?')} part {fields['cpu part']}"
        return f"{board} ({core})" if board else core
    return fields.get("hardware") or board


def features(cpuinfo: str | None) -> list[str] | None:
    """Return the FEATURES that an x86 processor has and the kernel uses, or the RISCV_FEATURES that all cores
    have; None on other architectures.
    """
    flags = re.search(r"^flags\s*:([^\n]*)$", cpuinfo or "", re.MULTILINE)
    if flags:
        return [name for name in FEATURES if name in flags[1].split()]
    isa = re.search(r"^isa\s*:\s*rv[0-9]+([^\n]*)$", cpuinfo or "", re.MULTILINE)
    return [name for name in RISCV_FEATURES if name in isa[1].split("_")] if isa else None


def resource_control(files: Files) -> list[str] | None:
    """Return the resources that resctrl can divide: L2, L3 and MB (Documentation/filesystems/resctrl). If it
    is not mounted, an x86 processor's flags say so; otherwise None.
    """
    resources = {
        match[1] for match, _ in files.matching(rf"{RESCTRL}/info/(L2|L3|MB)/(?:cbm_mask|min_bandwidth)")
    }
    if resources:
        return sorted(resources)
    flags = re.search(r"^flags\s*:([^\n]*)$", files.text(CPUINFO) or "", re.MULTILINE)
    return [name for flag, name in ALLOCATION_FLAGS.items() if flag in flags[1].split()] if flags else None


def by_value(values: Iterable[tuple[int, str]]) -> dict[str, str]:
    """Return the CPUs of each value: {"a": "0-1", "b": "2"} for (0, "a"), (1, "a"), (2, "b")."""
    cpus: dict[str, list[int]] = {}
    for cpu, value in values:
        cpus.setdefault(value, []).append(cpu)
    return {value: format_cpu_list(same) for value, same in cpus.items()}


def frequency(files: Files) -> Frequency:
    """Return governors and drivers by CPU, the range in kHz, and turbo; "none" if sysfs has no frequency
    scaling.
    """
    governors = by_value(_per_cpu(files, "cpufreq/scaling_governor"))
    drivers = by_value(_per_cpu(files, "cpufreq/scaling_driver"))
    nothing = "none" if files.exists(f"{CPU}/online") else None
    lowest, highest = (
        [value for _, text in _per_cpu(files, f"cpufreq/{name}") if (value := integer(text)) is not None]
        for name in ("cpuinfo_min_freq", "cpuinfo_max_freq")
    )
    boost, no_turbo = files.number(f"{CPU}/cpufreq/boost"), files.number(f"{CPU}/intel_pstate/no_turbo")
    return Frequency(
        governors=governors or nothing,
        drivers=drivers or nothing,
        min_khz=min(lowest, default=None),
        max_khz=max(highest, default=None),
        turbo=no_turbo == 0 if no_turbo is not None else boost == 1 if boost is not None else None,
    )


@dataclass
class _State:
    """A C-state that is being read."""

    name: str | None = None
    latency_us: int | None = None
    disabled: list[int] = field(default_factory=list[int])


def idle(files: Files) -> Idle:
    """Return the cpuidle driver, its governor and the C-states."""
    states: dict[str, _State] = {}
    for match, text in files.matching(
        rf"{CPU}/cpu([0-9]{{1,5}})/cpuidle/(state[0-9]{{1,3}})/(name|latency|disable)"
    ):
        state = states.setdefault(match[2], _State())
        if match[3] == "name":
            state.name = text
        elif match[3] == "latency":
            state.latency_us = integer(text)
        elif text != "0":
            state.disabled.append(int(match[1]))
    nothing = "none" if files.exists(f"{CPU}/online") else None
    online = set(cpu_list(files.text(f"{CPU}/online")) or [])
    return Idle(
        deepest_latency_us=_deepest_us(states.values(), online) if states else nothing,
        driver=files.text(f"{CPU}/cpuidle/current_driver") or nothing,
        governor=files.text(f"{CPU}/cpuidle/current_governor")
        or files.text(f"{CPU}/cpuidle/current_governor_ro")
        or nothing,
        states=[
            IdleState(name=state.name, latency_us=state.latency_us, disabled=format_cpu_list(state.disabled))
            for state in states.values()
        ]
        or nothing,
    )


def _deepest_us(states: Iterable[_State], online: set[int]) -> int | None:
    """Return the largest latency (us) of a state that an online CPU may enter; None if any is unknown."""
    latencies = [state.latency_us for state in states if online - set(state.disabled)]
    known = [latency for latency in latencies if latency is not None]
    return max(known, default=0) if online and len(known) == len(latencies) else None


def facts(files: Files) -> Processors:
    """Return all facts about the processors."""
    board, smt = files.text("/proc/device-tree/model"), files.number(f"{CPU}/smt/active")
    online, possible = (cpu_list(files.text(f"{CPU}/{name}")) for name in ("online", "possible"))
    isolated, nohz_full = all_isolated(files), _optional(files, "nohz_full")
    return Processors(
        model=model(files.text(CPUINFO), board),
        board=board,
        online=_text(online),
        online_count=_count(online),
        possible=_text(possible),
        possible_count=_count(possible),
        isolated=_text(isolated),
        isolated_count=_count(isolated),
        nohz_full=_text(nohz_full),
        nohz_full_count=_count(nohz_full),
        smt_active=None if smt is None else smt == 1,
        smt_control=files.text(f"{CPU}/smt/control"),
        features=features(files.text(CPUINFO)),
        resource_control=resource_control(files),
        frequency=frequency(files),
        idle=idle(files),
        topology=topology(files),
    )


def all_isolated(files: Files) -> list[int] | None:
    """Return the CPUs that isolcpus= or a partition isolates; None if unknown."""
    by_boot = _optional(files, "isolated")
    return None if by_boot is None else sorted({*by_boot, *(cpu_list(files.text(PARTITIONS)) or [])})


def _optional(files: Files, name: str) -> list[int] | None:
    """Return the CPUs in a file that older kernels lack if the feature is not built in."""
    missing = files.exists(f"{CPU}/online") and not files.exists(f"{CPU}/{name}")
    return [] if missing else cpu_list(files.text(f"{CPU}/{name}"))


def _text(cpus: list[int] | None) -> str | None:
    return None if cpus is None else format_cpu_list(cpus)


def _count(cpus: list[int] | None) -> int | None:
    return None if cpus is None else len(cpus)


def _per_cpu(files: Files, name: str) -> list[tuple[int, str]]:
    return [
        (int(match[1]), text) for match, text in files.matching(rf"{CPU}/cpu([0-9]{{1,5}})/{re.escape(name)}")
    ]
