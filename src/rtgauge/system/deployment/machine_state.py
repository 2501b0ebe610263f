# SPDX-License-Identifier: MIT
"""Reads the machine state that deployments depend on: CPUs, SMT siblings, idle states, control groups,
interrupts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rtgauge.system.interrupts import DEFAULT, WORKQUEUES
from rtgauge.system.threads import PATHS as STAT_PATHS
from rtgauge.system.threads import Thread, threads
from rtgauge.target.file_batch import Files, cpu_list, integer
from rtgauge.units import format_cpu_list

CPU = "/sys/devices/system/cpu"
SMT_CONTROL = f"{CPU}/smt/control"
TIMER_MIGRATION = "/proc/sys/kernel/timer_migration"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
MOUNTS = "/proc/mounts"
NO_SETAFFINITY = 0x04000000
"""PF_NO_SETAFFINITY in a thread's flags: its affinity cannot be changed (include/linux/sched.h)."""

MACHINE_PATHS = [
    *(f"{CPU}/{name}" for name in ("online", "present", "isolated", "smt/control", "smt/active")),
    f"{CPU}/cpu[0-9]*/online",
    f"{CPU}/cpu[0-9]*/topology/thread_siblings_list",
    *(f"{CPU}/cpu[0-9]*/cpuidle/state[0-9]*/{name}" for name in ("name", "latency", "disable")),
    *(f"{CPU}/cpu[0-9]*/cpufreq/{name}" for name in ("scaling_governor", "scaling_available_governors")),
    "/proc/irq/[0-9]*/smp_affinity_list",
    DEFAULT,
    WORKQUEUES,
    TIMER_MIGRATION,
    RT_RUNTIME,
    MOUNTS,
]
THREAD_PATHS = [*STAT_PATHS, "/proc/[0-9]*/task/[0-9]*/status"]


@dataclass(frozen=True)
class Setting:
    """A value to write. If an `essential` one is refused, the deployment fails; other refusals are only
    counted.
    """

    path: str
    value: str
    essential: bool = True


@dataclass(frozen=True)
class Cpuset:
    """The cpuset hierarchy: its cgroup version, its mount point, and the prefix of its file names."""

    version: int
    mount: str
    prefix: str = "cpuset."


@dataclass(frozen=True)
class BoundThread:
    """A thread that may not use every CPU. `name` is its affinity in the engine's notation."""

    name: str
    cpus: frozenset[int]


class CState(NamedTuple):
    """A C-state of a CPU: the file that disables it, and its exit latency."""

    cpu: int
    disable: str
    latency_us: int


def find_cpuset(files: Files) -> Cpuset | None:
    """Find the first hierarchy with cpuset: a v1 mount, or the v2 mount (see `more_paths`)."""
    for line in (files.text(MOUNTS) or "").splitlines():
        words = line.split()
        if len(words) < 4 or "\\" in words[1]:
            continue
        options = words[3].split(",")
        if words[2] == "cgroup" and "cpuset" in options:
            return Cpuset(1, words[1], "" if "noprefix" in options else "cpuset.")
        if words[2] == "cgroup2" and "cpuset" in (files.text(f"{words[1]}/cgroup.controllers") or "").split():
            return Cpuset(2, words[1])
    return None


def more_paths(files: Files) -> list[str]:
    """Return the paths of the control groups' files, which depend on MACHINE_PATHS."""
    mounts = [
        words[1]
        for line in (files.text(MOUNTS) or "").splitlines()
        if len(words := line.split()) > 3 and words[2] == "cgroup2" and "\\" not in words[1]
    ]
    paths = [f"{mount}/cgroup.controllers" for mount in mounts[:4]]
    cpuset = find_cpuset(files)
    for mount, prefix in (
        [(cpuset.mount, cpuset.prefix)] if cpuset else [(mount, "cpuset.") for mount in mounts[:4]]
    ):
        # Five levels of nested groups are more than any program creates.
        paths += [f"{mount}/{'*/' * depth}{prefix}cpus" for depth in range(6)]
        paths += [f"{mount}/{prefix}{name}" for name in ("mems", "sched_load_balance", "cpus.isolated")] + [
            f"{mount}/cgroup.subtree_control"
        ]
    return paths


@dataclass(frozen=True)
class Machine:
    """The state of a machine, from MACHINE_PATHS and more files."""

    files: Files

    def expecting(self, online: list[int]) -> Machine:
        """Return the machine as it will be when only these CPUs are online."""
        return Machine(self.files | {f"{CPU}/online": {"text": format_cpu_list(online)}})

    def text(self, path: str) -> str | None:
        """Return a file's text; None if it could not be read."""
        return self.files.text(path)

    @cached_property
    def online(self) -> list[int]:
        """The online CPUs."""
        return cpu_list(self.text(f"{CPU}/online")) or [0]

    @cached_property
    def offline(self) -> list[int]:
        """The CPUs that are present but offline."""
        return sorted(set(cpu_list(self.text(f"{CPU}/present")) or []) - set(self.online))

    @cached_property
    def hotpluggable(self) -> set[int]:
        """The CPUs that support hotplug."""
        return {int(match[1]) for match, _ in self.files.matching(rf"{CPU}/cpu([0-9]{{1,5}})/online")}

    @cached_property
    def cores(self) -> list[list[int]]:
        """The online CPUs of each core, in order. A CPU without sibling information counts as a core."""
        siblings = {
            int(match[1]): cpu_list(text) or []
            for match, text in self.files.matching(rf"{CPU}/cpu([0-9]{{1,5}})/topology/thread_siblings_list")
        }
        groups = {
            tuple(sibling for sibling in siblings.get(cpu, []) if sibling in self.online) or (cpu,)
            for cpu in self.online
        }
        return sorted(list(group) for group in groups)

    @property
    def smt_control(self) -> str | None:
        """State of SMT: on, off, forceoff, notsupported or notimplemented; None without SMT control."""
        return self.text(SMT_CONTROL)

    @property
    def has_smt(self) -> bool:
        """Whether a core has several online CPUs."""
        return any(len(core) > 1 for core in self.cores)

    @cached_property
    def idle_states(self) -> list[CState]:
        """The C-states of each online CPU, without polling, which has no exit latency."""
        states: list[CState] = []
        for match, _ in self.files.matching(rf"({CPU}/cpu([0-9]{{1,5}})/cpuidle/state[0-9]{{1,3}})/disable"):
            latency = integer(self.text(f"{match[1]}/latency")) or 0
            if latency > 0 and int(match[2]) in self.online:
                states.append(CState(int(match[2]), f"{match[1]}/disable", latency))
        return states

    @cached_property
    def irqs(self) -> dict[str, set[int]]:
        """The CPUs that may handle each interrupt, by the path of the setting."""
        affinities = (
            (match[0], cpu_list(text))
            for match, text in self.files.matching(r"/proc/irq/[0-9]{1,6}/smp_affinity_list")
        )
        return {path: set(cpus) for path, cpus in affinities if cpus}

    @cached_property
    def cpuset(self) -> Cpuset | None:
        """The machine's cpuset hierarchy, or None."""
        return find_cpuset(self.files)

    @cached_property
    def cpuset_groups(self) -> dict[str, set[int]]:
        """Folder -> CPUs, for each group below the root that has a CPU list; deepest first."""
        if self.cpuset is None:
            return {}
        mount, name = self.cpuset.mount, f"{self.cpuset.prefix}cpus"
        groups: dict[str, set[int]] = {}
        for match, text in self.files.matching(rf"({re.escape(mount)}/.{{1,4000}})/{re.escape(name)}"):
            cpus = cpu_list(text)
            if cpus:
                groups[match[1]] = set(cpus)
        return dict(sorted(groups.items(), key=lambda item: -item[0].count("/")))

    def movable_threads(self) -> Iterator[tuple[Thread, set[int]]]:
        """Yield the threads whose affinity can be changed, with their allowed CPUs (needs THREAD_PATHS)."""
        for thread in threads(self.files):
            status = self.text(f"/proc/{thread.process}/task/{thread.tid}/status") or ""
            allowed = re.search(r"^Cpus_allowed_list:\s*([0-9,-]{1,4096})$", status, re.MULTILINE)
            cpus = cpu_list(allowed[1]) if allowed else None
            if cpus and not thread.flags & NO_SETAFFINITY:
                yield thread, set(cpus)

    def bound_threads(self) -> Iterator[BoundThread]:
        """Yield the movable threads that may use only some of the online CPUs (needs THREAD_PATHS)."""
        for thread, cpus in self.movable_threads():
            if not set(self.online) <= cpus:
                yield BoundThread(thread.setting("affinity"), frozenset(cpus))
