# SPDX-License-Identifier: MIT
"""The topology of a target's processors: packages, cores, threads, caches, NUMA nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtgauge.record.facts import Cache, Topology
from rtgauge.system.file_batch import integer, shortest_cpu_list
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


def caches(files: Files) -> list[Cache] | None:
    """Each cache once."""
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
    found = [Cache(level=level, type=kind, size=size, cpus=cpus) for level, kind, size, cpus in unique]
    return sorted(found, key=lambda cache: (str(cache.level), str(cache.type))) or None


def facts(files: Files) -> Topology:
    """Counts of the online CPUs, the CPUs of each core with several, caches, and NUMA node -> CPUs."""
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
    # cores of different clusters may have the same number: groups of siblings are the better count
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
