# SPDX-License-Identifier: MIT
"""The topology of a target's processors: packages, cores, threads, caches, NUMA nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import UNKNOWN, integer, known, shortest_cpu_list
from rtgauge.units import parse_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
PATHS = [
    *(
        f"{CPU}/cpu[0-9]*/topology/{name}"
        for name in ("physical_package_id", "core_id", "thread_siblings_list")
    ),
    *(f"{CPU}/cpu[0-9]*/cache/index[0-9]*/{name}" for name in ("level", "type", "size", "shared_cpu_list")),
    f"{NODE}/node[0-9]*/cpulist",
]


def caches(files: Files) -> list[dict[str, Any]] | str:
    """Each cache once: level, type, size as the kernel writes it, and the CPUs that share it."""
    listed: dict[tuple[str, str], dict[str, str]] = {}
    for match, text in files.matching(
        rf"{CPU}/cpu([0-9]{{1,5}})/cache/(index[0-9]{{1,2}})/(level|type|size|shared_cpu_list)"
    ):
        listed.setdefault((match[1], match[2]), {})[match[3]] = text
    unique: dict[tuple[str, ...], dict[str, Any]] = {}
    for cache in listed.values():
        cpus = shortest_cpu_list(cache["shared_cpu_list"]) if "shared_cpu_list" in cache else UNKNOWN
        description = {
            "level": known(integer(cache.get("level"))),
            "type": cache.get("type", UNKNOWN),
            "size": cache.get("size", UNKNOWN),
            "cpus": cpus,
        }
        unique.setdefault(tuple(str(value) for value in description.values()), description)
    return sorted(unique.values(), key=lambda cache: (str(cache["level"]), cache["type"])) or UNKNOWN


def facts(files: Files) -> dict[str, Any]:
    """Counts of the online CPUs, `smt_siblings` (the CPUs of each core with several), caches, and NUMA node
    -> CPUs.
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
    groups = {shortest_cpu_list(text) for text in siblings.values()} - {UNKNOWN, ""}
    threads = [len(parse_cpu_list(group)) for group in groups]
    nodes = {
        match[1]: shortest_cpu_list(text)
        for match, text in files.matching(rf"{NODE}/node([0-9]{{1,5}})/cpulist")
    }
    # cores of different clusters may have the same number: groups of siblings are the better count
    by_number = len({(packages.get(cpu), core) for cpu, core in cores.items()})
    return {
        "packages": known(len(set(packages.values())) or None),
        "cores": known(len(groups) or by_number or None),
        "threads_per_core": known(max(threads, default=None)),
        "smt_siblings": sorted(group for group in groups if len(parse_cpu_list(group)) > 1)
        if siblings
        else UNKNOWN,
        "caches": caches(files),
        "numa_nodes": nodes or UNKNOWN,
    }
