# SPDX-License-Identifier: MIT
"""Finds how a target's kernel limits real-time tasks, and whether it throttled such a task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rtgauge.record.facts import ControlGroup, Facts, FairServer, Limits, Nothing, Scheduling
from rtgauge.record.marks import MarkKind
from rtgauge.record.model import Mark, ThreadCounts
from rtgauge.system.kernel import version_tuple
from rtgauge.target.file_batch import Files, integer
from rtgauge.units import format_time

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
PERIOD = "/proc/sys/kernel/sched_rt_period_us"
FAIR_SERVER = "/sys/kernel/debug/sched/fair_server"
EXT_SERVER = "/sys/kernel/debug/sched/ext_server"
EXTENSION = "/sys/kernel/sched_ext"
OWN_GROUPS = "/proc/self/cgroup"
V2_MOUNT = "/sys/fs/cgroup"
OWN_LIMITS = "/proc/self/limits"
OWN_STATUS = "/proc/self/status"
V1_MOUNTS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu")
SERVER_FILES = ("/cpu[0-9]*/runtime", "/cpu[0-9]*/period")
PATHS = [
    RUNTIME,
    PERIOD,
    *(f"{server}{name}" for server in (FAIR_SERVER, EXT_SERVER) for name in ("", *SERVER_FILES)),
    *(f"{EXTENSION}/{name}" for name in ("state", "root/ops")),
    OWN_GROUPS,
    *(f"{mount}/cpu.rt_{name}_us" for mount in V1_MOUNTS for name in ("runtime", "period")),
    *(f"{mount}/cpu.shares" for mount in V1_MOUNTS),
    OWN_LIMITS,
    OWN_STATUS,
]


class Group(NamedTuple):
    """A control group: its cgroup version (v1 or v2) and its path."""

    version: str
    path: str


def own_group(text: str | None) -> Group | None:
    """Return the group that has the cpu controller, from /proc/self/cgroup; None if there is no
    such group.
    """
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
    """Yield the folders of this process's control group and its parents, below every possible mount point."""
    group = own_group(files.text(OWN_GROUPS))
    if group is None:
        return
    parts = [part for part in group.path.split("/") if part not in ("", "..")]
    for mount in V1_MOUNTS if group.version == "v1" else (V2_MOUNT,):
        for depth in range(len(parts), 0, -1):
            yield Group(group.version, "/".join([mount, *parts[:depth]]))


def more_paths(files: Files) -> list[str]:
    """Return the files with the limits of this process's control group and its parents. `files` has PATHS."""
    names = {
        "v1": ("cpu.rt_runtime_us", "cpu.rt_period_us", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
        "v2": ("cpu.max", "cpuset.cpus.partition"),
    }
    return [f"{folder}/{name}" for version, folder in _folders(files) for name in names[version]]


def server(files: Files, folder: str) -> dict[str, FairServer] | Nothing | None:
    """Return each CPU's server in a folder of debugfs; "none" if debugfs is readable and has none, None if
    debugfs is not readable.
    """
    server_files = files.matching(rf"{folder}/cpu([0-9]{{1,5}})/(?:runtime|period)")
    servers: dict[str, FairServer] = {}
    for cpu in dict.fromkeys(match[1] for match, _ in server_files):
        runtime, period = (files.number(f"{folder}/cpu{cpu}/{name}") for name in ("runtime", "period"))
        servers[cpu] = FairServer(runtime_ns=runtime, period_ns=period)
    if servers:
        return servers
    readable = files.exists("/sys/kernel/debug/sched/preempt") and not files.exists(folder)
    return "none" if readable else None


def scheduler_extension(files: Files) -> str | None:
    """Return the name of the scheduler extension at work; "none" if there is none, None if unknown."""
    state = files.text(f"{EXTENSION}/state")
    if state is None:
        return "none" if files.error(f"{EXTENSION}/state") == "ENOENT" else None
    return (files.text(f"{EXTENSION}/root/ops") or state) if state == "enabled" else "none"


def facts(files: Files) -> Scheduling:
    """Return the kernel's limits on real-time tasks."""
    return Scheduling(
        rt_runtime_us=files.number(RUNTIME),
        rt_period_us=files.number(PERIOD),
        fair_server=server(files, FAIR_SERVER),
        ext_server=server(files, EXT_SERVER),
        scheduler_extension=scheduler_extension(files),
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
    """Return runtime and period of the tightest group up to the root; "none" if the kernel has no
    such limit.
    """
    shares: list[tuple[float, int, int]] = []
    for folder in [*V1_MOUNTS, *(folder for _, folder in _folders(files))]:
        runtime, period = (files.number(f"{folder}/cpu.rt_{name}_us") for name in ("runtime", "period"))
        if runtime is not None and period is not None and period > 0:
            shares.append((1.0 if runtime < 0 else runtime / period, runtime, period))
    if shares:
        _, runtime, period = min(shares)
        return runtime, period
    if any(files.exists(f"{mount}/cpu.shares") for mount in V1_MOUNTS):
        return "none", "none"
    return None, None


def _share(version: str, folder: str, files: Files) -> float | None:
    """Return how much time a group may use, in CPUs; infinite without a limit, None if it cannot be read."""
    if version == "v1":
        quota, period = (files.number(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    else:
        words = (files.text(f"{folder}/cpu.max") or "").split()
        quota = -1 if words[:1] == ["max"] else integer(words[0]) if words else None
        period = integer(words[1]) if len(words) > 1 else None
    if quota is None or period is None or period <= 0:
        return None
    return float("inf") if quota < 0 else quota / period


def cpu_quota(files: Files) -> float | Nothing | None:
    """Return the tightest CPU quota of the groups up to the root, in CPUs; "none" if no group has a quota,
    None if it is unknown.
    """
    group = own_group(files.text(OWN_GROUPS))
    if group is None:
        return None
    if group.path == "/":
        return "none"
    shares = [_share(version, folder, files) for version, folder in _folders(files)]
    tightest = min((share for share in shares if share is not None), default=None)
    return None if tightest is None else "none" if tightest == float("inf") else round(tightest, 3)


def _limit(files: Files, name: str) -> int | Literal["unlimited"] | None:
    """Return a soft limit, as getrlimit(2) does."""
    match = re.search(rf"^{name}\s+([0-9]{{1,19}}|unlimited)\s", files.text(OWN_LIMITS) or "", re.MULTILINE)
    if match is None:
        return None
    return "unlimited" if match[1] == "unlimited" else int(match[1])


def limits(files: Files) -> Limits:
    """Return CPU quota in CPUs, allowed CPUs, cpuset partition (cgroup v2), RLIMIT_RTPRIO and
    RLIMIT_MEMLOCK.
    """
    status = files.text(OWN_STATUS) or ""
    allowed = re.search(r"^Cpus_allowed_list:\s*([0-9,-]{1,4096})$", status, re.MULTILINE)
    v2 = [folder for version, folder in _folders(files) if version == "v2"]
    partitions = [text for folder in v2 if (text := files.text(f"{folder}/cpuset.cpus.partition"))]
    return Limits(
        cpu_quota=cpu_quota(files),
        cpus_allowed=allowed[1] if allowed else None,
        cpuset_partition=partitions[0] if partitions else None,
        rtprio=_limit(files, "Max realtime priority"),
        memlock_bytes=_limit(files, "Max locked memory"),
    )


REALTIME_POLICIES = ("fifo", "rr")
FAIR_SERVER_SINCE = (6, 12)
EXT_SERVER_SINCE = (7, 0)
SERVERS = FAIR_NAME, EXT_NAME = "the fair server", "the ext server"
FAIR_SERVER_GAP_NS = 50_000_000
"""The fair server's default runtime: 50 ms per second."""
NEAR = 0.8
"""A latency counts from this share of a gap on, because the first release may come late in the gap."""
SLACK_NS = 20_000_000
"""The kernel starts and ends a gap at ticks, which may be 10 ms apart."""
SHORTEST_GAP_NS = 1_000_000
PREEMPTED_NS = 1_000_000
"""A longer run delay per switch cannot come from kernel threads of higher priority (migration, watchdog)."""


@dataclass(frozen=True)
class Throttle:
    """A throttling mechanism: its name, the gap that it causes (ns), and how to disable it."""

    name: str
    gap_ns: int
    remedy: str


def mechanisms(facts: Facts) -> list[Throttle]:
    """Return every mechanism that may throttle this target's real-time threads.

    An unknown kernel version rules out no mechanism. A fair server that cannot be read is assumed to have the
    kernel's default.
    """
    version = version_tuple(facts.kernel.release)
    mechanisms: list[Throttle] = []

    scheduling, group = facts.scheduling, facts.scheduling.cgroup
    runtime, period = scheduling.rt_runtime_us, scheduling.rt_period_us
    group_runtime = None if group.rt_runtime_us == "none" else group.rt_runtime_us
    group_period = None if group.rt_period_us == "none" else group.rt_period_us
    of_groups = facts.kernel.rt_group_sched
    grouped = group_runtime is not None if of_groups is None else of_groups
    # Since 6.12, the kernel throttles only if it is built with RT_GROUP_SCHED (commit 5f6bd380c7bd).
    throttles = version is None or version < FAIR_SERVER_SINCE or grouped
    if runtime is not None and period is not None and 0 <= runtime < period and throttles:
        name = "real-time throttling (sched_rt_runtime_us)"
        remedy = "run sysctl kernel.sched_rt_runtime_us=-1"
        mechanisms.append(Throttle(name, (period - runtime) * 1000, remedy))
    if (
        group.version == "v1"
        and group_runtime is not None
        and group_period is not None
        and 0 <= group_runtime < group_period
    ):
        # The root group has the sysctl's limit, so a group is reported only if its limit is tighter.
        tighter = (
            runtime is None
            or period is None
            or runtime < 0
            or group_runtime * period < runtime * group_period
        )
        if tighter:
            name = f"the limit of the cgroup {group.path} (cpu.rt_runtime_us)"
            remedy = "write a larger value to cpu.rt_runtime_us of this group and of its parents"
            mechanisms.append(Throttle(name, (group_period - group_runtime) * 1000, remedy))

    if version is None or version >= FAIR_SERVER_SINCE:
        servers = {FAIR_NAME: _server_gaps(scheduling.fair_server)}
        has_ext_server = version is None or version >= EXT_SERVER_SINCE
        if has_ext_server and scheduling.scheduler_extension not in (None, "none"):
            servers[EXT_NAME] = _server_gaps(scheduling.ext_server)
        for name, gaps in servers.items():
            if any(gap > 0 for gap in gaps):
                folder = FAIR_SERVER if name == FAIR_NAME else EXT_SERVER
                mechanisms.append(Throttle(name, max(gaps), f"write 0 to {folder}/cpuN/runtime"))
    return mechanisms


def _server_gaps(servers: dict[str, FairServer] | Nothing | None) -> list[int]:
    """Return the runtime of each CPU's server (ns); the kernel's default if it cannot be read."""
    if servers == "none":
        return []
    if servers is None:
        return [FAIR_SERVER_GAP_NS]
    runtimes = [server.runtime_ns for server in servers.values()]
    return [FAIR_SERVER_GAP_NS if runtime is None else runtime for runtime in runtimes]


def _near(latency_ns: int | None, limit: Throttle) -> bool:
    """Return whether a latency is about as long as the gap.

    A gap shorter than 1 ms cannot be distinguished from other causes.
    """
    return (
        latency_ns is not None
        and limit.gap_ns >= SHORTEST_GAP_NS
        and NEAR * limit.gap_ns <= latency_ns <= limit.gap_ns + SLACK_NS
    )


def throttled(
    thread: ThreadCounts | None,
    facts: Facts,
    *,
    max_latency_ns: int | None,
    policy: str,
    series: int | None = None,
    servers_traced: bool = False,
) -> Mark | None:
    """Return the mark `throttled` for a measuring thread; None without evidence.

    `thread`: the kernel's counts for the thread. `facts`: its target's facts. `max_latency_ns`: its largest
    latency. `policy`: fifo, rr or other. `series`: the number of the mark's series. `servers_traced`: whether
    the latency's explanation shows the fair and the ext server, which are then not guessed. Evidence is a
    latency as long as a gap, or involuntary switches with long waits. Involuntary switches alone prove
    nothing: kernel threads of the highest priority cause them too, and a thread that sleeps when throttling
    begins has none.
    """
    if policy not in REALTIME_POLICIES:
        return None
    active = [limit for limit in mechanisms(facts) if not servers_traced or limit.name not in SERVERS]
    delayed = [limit for limit in active if _near(max_latency_ns, limit)]
    counts = thread or ThreadCounts()
    switches = (counts.voluntary_switches or 0) + (counts.involuntary_switches or 0)
    preempted = (
        bool(counts.involuntary_switches)
        and counts.run_delay_ns is not None
        and counts.run_delay_ns >= PREEMPTED_NS * switches
    )
    suspects = delayed or (active if preempted else [])
    if not suspects:
        return None
    evidence: list[str] = []
    if delayed:
        gap = format_time(max(limit.gap_ns for limit in delayed))
        evidence.append(
            f"the largest latency is {format_time(max_latency_ns)}, and throttling can last up to {gap}"
        )
    if counts.involuntary_switches is not None and counts.run_delay_ns is not None:
        evidence.append(
            f"involuntary switches: {counts.involuntary_switches}, time waiting for the CPU: "
            f"{format_time(counts.run_delay_ns)}"
        )
    names = " or ".join(limit.name for limit in suspects)
    remedy = " and ".join(limit.remedy for limit in suspects)
    detail = (
        f"{names} seems to have throttled the measuring thread ({'; '.join(evidence)}); to avoid this, "
        f"{remedy}"
    )
    return MarkKind.THROTTLED.mark(detail, series=series)
