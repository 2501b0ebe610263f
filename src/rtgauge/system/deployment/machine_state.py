# SPDX-License-Identifier: MIT
"""What a deployment has to know of a machine: its CPUs, threads of one core, idle states, control groups, interrupts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import Files, cpu_list, integer
from rtgauge.system.interrupts import DEFAULT, WORKQUEUES
from rtgauge.system.threads import PATHS as STAT_PATHS
from rtgauge.system.threads import threads
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CPU = "/sys/devices/system/cpu"
SMT_CONTROL = f"{CPU}/smt/control"
TIMER_MIGRATION = "/proc/sys/kernel/timer_migration"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
MOUNTS = "/proc/mounts"
NO_SETAFFINITY = 0x04000000
"""PF_NO_SETAFFINITY in the flags of a thread: the kernel keeps it where it is (include/linux/sched.h)."""

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
class Cpuset:
    """Where the control groups of CPUs are: version 1 or 2, the mounted folder, and what its files' names begin with."""

    version: int
    mount: str
    prefix: str = "cpuset."


@dataclass(frozen=True)
class BoundThread:
    """A thread that may not use every CPU: `name` is its setting in the engine's words."""

    name: str
    cpus: frozenset[int]


def find_cpuset(files: Files) -> Cpuset | None:
    """The first hierarchy that has CPUs: a version 1 mount of cpuset, or the version 2 mount (whose controllers `more_paths` asks for)."""
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


def more_paths(files: Mapping[str, Any]) -> list[str]:
    """What only MACHINE_PATHS can tell to be of interest: the files of the control groups."""
    read = Files(files)
    mounts = [words[1] for line in (read.text(MOUNTS) or "").splitlines() if len(words := line.split()) > 3 and words[2] == "cgroup2" and "\\" not in words[1]]
    found = [f"{mount}/cgroup.controllers" for mount in mounts[:4]]
    one = find_cpuset(read)
    for mount, prefix in [(one.mount, one.prefix)] if one else [(mount, "cpuset.") for mount in mounts[:4]]:
        # a group in a group: five deep is more than anything makes
        found += [f"{mount}/{'*/' * depth}{prefix}cpus" for depth in range(6)]
        found += [f"{mount}/{prefix}{name}" for name in ("mems", "sched_load_balance")] + [f"{mount}/cgroup.subtree_control"]
    return found


@dataclass(frozen=True)
class Machine:
    """The texts of MACHINE_PATHS and more, and what they say."""

    raw: Mapping[str, Any]

    @cached_property
    def files(self) -> Files:
        """What the engine's `read` gave."""
        return Files(self.raw)

    def expecting(self, online: list[int]) -> Machine:
        """The same machine, as it will be when only these CPUs are online."""
        return Machine({**self.raw, f"{CPU}/online": {"text": format_cpu_list(online)}})

    def text(self, path: str) -> str | None:
        """A file's text, None where it could not be read."""
        return self.files.text(path)

    @cached_property
    def online(self) -> list[int]:
        """CPUs that are online."""
        return cpu_list(self.text(f"{CPU}/online")) or [0]

    @cached_property
    def offline(self) -> list[int]:
        """CPUs that are there and not online."""
        return sorted(set(cpu_list(self.text(f"{CPU}/present")) or []) - set(self.online))

    @cached_property
    def hotpluggable(self) -> set[int]:
        """CPUs that can be switched off and on."""
        return {int(match[1]) for match, _ in self.files.matching(rf"{CPU}/cpu([0-9]{{1,5}})/online")}

    @cached_property
    def cores(self) -> list[list[int]]:
        """The online CPUs of each core, first core first; a CPU that says nothing of its siblings is a core of its own."""
        found = {int(match[1]): cpu_list(text) or [] for match, text in self.files.matching(rf"{CPU}/cpu([0-9]{{1,5}})/topology/thread_siblings_list")}
        groups = {tuple(cpu for cpu in found.get(one, []) if cpu in self.online) or (one,) for one in self.online}
        return sorted(list(group) for group in groups)

    @property
    def smt_control(self) -> str | None:
        """on, off, forceoff, notsupported, notimplemented, or None."""
        return self.text(SMT_CONTROL)

    @property
    def has_smt(self) -> bool:
        """Several threads of a core are online."""
        return any(len(core) > 1 for core in self.cores)

    @cached_property
    def idle_states(self) -> list[tuple[int, str, str, int]]:
        """(CPU, path of `disable`, its text, exit latency in us) of each C-state; polling, which is left at once, is none."""
        found: list[tuple[int, str, str, int]] = []
        for match, text in self.files.matching(rf"({CPU}/cpu([0-9]{{1,5}})/cpuidle/state[0-9]{{1,3}})/disable"):
            latency = integer(self.text(f"{match[1]}/latency")) or 0
            if latency > 0 and int(match[2]) in self.online:
                found.append((int(match[2]), f"{match[1]}/disable", text, latency))
        return found

    @cached_property
    def irqs(self) -> dict[str, set[int]]:
        """Path -> allowed CPUs of each interrupt."""
        found = ((match[0], cpu_list(text)) for match, text in self.files.matching(r"/proc/irq/[0-9]{1,6}/smp_affinity_list"))
        return {path: set(cpus) for path, cpus in found if cpus}

    @cached_property
    def cpuset(self) -> Cpuset | None:
        """Its control groups of CPUs, None where there are none."""
        return find_cpuset(self.files)

    @cached_property
    def cpuset_groups(self) -> dict[str, set[int]]:
        """Folder -> CPUs of every group below the root that names some, deepest first."""
        if self.cpuset is None:
            return {}
        mount, name = self.cpuset.mount, f"{self.cpuset.prefix}cpus"
        found: dict[str, set[int]] = {}
        for match, text in self.files.matching(rf"({re.escape(mount)}/.{{1,4000}})/{re.escape(name)}"):
            cpus = cpu_list(text)
            if cpus:
                found[match[1]] = set(cpus)
        return dict(sorted(found.items(), key=lambda item: -item[0].count("/")))

    def bound_threads(self) -> Iterator[BoundThread]:
        """Threads that may use only some of the online CPUs, without those that the kernel keeps where they are (needs THREAD_PATHS)."""
        for thread in threads(self.files):
            status = self.text(f"/proc/{thread.process}/task/{thread.tid}/status") or ""
            allowed = re.search(r"^Cpus_allowed_list:\s*([0-9,-]{1,4096})$", status, re.MULTILINE)
            cpus = cpu_list(allowed[1]) if allowed else None
            if not cpus or thread.flags & NO_SETAFFINITY or set(self.online) <= set(cpus):
                continue
            yield BoundThread(thread.setting("affinity"), frozenset(cpus))
