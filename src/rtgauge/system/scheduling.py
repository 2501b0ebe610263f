# SPDX-License-Identifier: MIT
"""What a target's kernel takes from real-time tasks: throttling, fair server, control groups, limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from rtgauge.record.facts import ControlGroup, FairServer, Limits, Nothing, Scheduling
from rtgauge.system.file_batch import Files, integer

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
PERIOD = "/proc/sys/kernel/sched_rt_period_us"
FAIR_SERVER = "/sys/kernel/debug/sched/fair_server"
OWN_GROUPS = "/proc/self/cgroup"
V2_MOUNT = "/sys/fs/cgroup"
OWN_LIMITS = "/proc/self/limits"
OWN_STATUS = "/proc/self/status"
V1_MOUNTS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu")
PATHS = [
    RUNTIME,
    PERIOD,
    FAIR_SERVER,
    f"{FAIR_SERVER}/cpu[0-9]*/runtime",
    f"{FAIR_SERVER}/cpu[0-9]*/period",
    OWN_GROUPS,
    *(f"{mount}/cpu.rt_{name}_us" for mount in V1_MOUNTS for name in ("runtime", "period")),
    *(f"{mount}/cpu.shares" for mount in V1_MOUNTS),
    OWN_LIMITS,
    OWN_STATUS,
]


class Group(NamedTuple):
    """A control group: the version of cgroups (v1 or v2), and a path."""

    version: str
    path: str


def own_group(text: str | None) -> Group | None:
    """From /proc/self/cgroup: the group in the hierarchy with the cpu controller; None if there is none."""
    unified = None
    for line in (text or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(","):
            return Group("v1", path)
        if number == "0" and controllers == "":
            unified = path
    return None if unified is None else Group("v2", unified)


def _folders(files: Files) -> Iterator[Group]:
    """The folders of this process's control group and its parents, for every possible mount point."""
    group = own_group(files.text(OWN_GROUPS))
    if group is None:
        return
    parts = [part for part in group.path.split("/") if part not in ("", "..")]
    for mount in V1_MOUNTS if group.version == "v1" else (V2_MOUNT,):
        for depth in range(len(parts), 0, -1):
            yield Group(group.version, "/".join([mount, *parts[:depth]]))


def more_paths(files: Files) -> list[str]:
    """The limits of this process's control group and its parents (`paths` from the first batch of files)."""
    names = {
        "v1": ("cpu.rt_runtime_us", "cpu.rt_period_us", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
        "v2": ("cpu.max", "cpuset.cpus.partition"),
    }
    return [f"{folder}/{name}" for version, folder in _folders(files) for name in names[version]]


def fair_server(files: Files) -> dict[str, FairServer] | Nothing | None:
    """CPU -> its server; "none" if debugfs is readable and has none, else None."""
    folders = {
        match[1]: match[2]
        for match, _ in files.matching(rf"({FAIR_SERVER}/cpu([0-9]{{1,5}}))/(?:runtime|period)")
    }
    if folders:
        return {
            cpu: FairServer(
                runtime_ns=files.number(f"{folder}/runtime"), period_ns=files.number(f"{folder}/period")
            )
            for folder, cpu in folders.items()
        }
    readable = files.exists("/sys/kernel/debug/sched/preempt") and not files.exists(FAIR_SERVER)
    return "none" if readable else None


def facts(files: Files) -> Scheduling:
    """Limits on real-time tasks."""
    return Scheduling(
        rt_runtime_us=files.number(RUNTIME),
        rt_period_us=files.number(PERIOD),
        fair_server=fair_server(files),
        cgroup=_control_group(files),
        limits=limits(files),
    )


def _control_group(files: Files) -> ControlGroup:
    version, path = own_group(files.text(OWN_GROUPS)) or (None, None)
    runtime, period = _v1_limit(files) if version == "v1" else ("none", "none")
    if version is None:
        return ControlGroup(version=None, path=None, rt_runtime_us=None, rt_period_us=None)
    return ControlGroup(version=version, path=path, rt_runtime_us=runtime, rt_period_us=period)


def _v1_limit(files: Files) -> tuple[int, int] | tuple[Nothing, Nothing] | tuple[None, None]:
    """Runtime and period of the tightest group up to the root; "none" if the kernel has no such limit."""
    shares: list[tuple[float, int, int]] = []
    for folder in [*V1_MOUNTS, *(folder for _, folder in _folders(files))]:
        runtime, period = (
            files.number(f"{folder}/cpu.rt_runtime_us"),
            files.number(f"{folder}/cpu.rt_period_us"),
        )
        if runtime is not None and period is not None and period > 0:
            shares.append((1.0 if runtime < 0 else runtime / period, runtime, period))
    if shares:
        _, runtime, period = min(shares)
        return runtime, period
    if any(files.exists(f"{mount}/cpu.shares") for mount in V1_MOUNTS):
        return "none", "none"
    return None, None


def _share(version: str, folder: str, files: Files) -> float | None:
    """CPU time that a group may use, in CPUs; infinite if it has no limit, None if it cannot be read."""
    if version == "v1":
        quota, period = (
            files.number(f"{folder}/cpu.cfs_quota_us"),
            files.number(f"{folder}/cpu.cfs_period_us"),
        )
    else:
        words = (files.text(f"{folder}/cpu.max") or "").split()
        quota = -1 if words[:1] == ["max"] else integer(words[0]) if words else None
        period = integer(words[1]) if len(words) > 1 else None
    if quota is None or period is None or period <= 0:
        return None
    return float("inf") if quota < 0 else quota / period


def cpu_quota(files: Files) -> float | Nothing | None:
    """The tightest limit of the groups up to the root, in CPUs; "none" if there is none."""
    group = own_group(files.text(OWN_GROUPS))
    if group is None:
        return None
    if group.path == "/":
        return "none"
    shares = [
        share for version, folder in _folders(files) if (share := _share(version, folder, files)) is not None
    ]
    return None if not shares else "none" if min(shares) == float("inf") else round(min(shares), 3)


def _limit(files: Files, name: str) -> int | Literal["unlimited"] | None:
    """A soft limit of getrlimit(2)."""
    match = re.search(rf"^{name}\s+([0-9]{{1,19}}|unlimited)\s", files.text(OWN_LIMITS) or "", re.MULTILINE)
    if match is None:
        return None
    return "unlimited" if match[1] == "unlimited" else int(match[1])


def limits(files: Files) -> Limits:
    """CPU quota in CPUs, allowed CPUs, cpuset partition (cgroup v2), RLIMIT_RTPRIO and RLIMIT_MEMLOCK."""
    allowed = re.search(
        r"^Cpus_allowed_list:\s*([0-9,-]{1,4096})$", files.text(OWN_STATUS) or "", re.MULTILINE
    )
    partitions = [
        text
        for version, folder in _folders(files)
        if version == "v2" and (text := files.text(f"{folder}/cpuset.cpus.partition"))
    ]
    return Limits(
        cpu_quota=cpu_quota(files),
        cpus_allowed=allowed[1] if allowed else None,
        cpuset_partition=partitions[0] if partitions else None,
        rtprio=_limit(files, "Max realtime priority"),
        memlock_bytes=_limit(files, "Max locked memory"),
    )
