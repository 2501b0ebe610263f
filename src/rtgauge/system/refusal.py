# SPDX-License-Identifier: MIT
"""Explains why a target's kernel refused something to the engine, and what to do.

The engine reports what was refused, with the errno and the numbers that decide it (docs/formats/stream.md,
`error`). This module finds the reason.
"""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from rtgauge.record.stream import ErrorLine
from rtgauge.system.kernel import PATHS as KERNEL_PATHS
from rtgauge.system.kernel import config, config_paths
from rtgauge.system.scheduling import V1_MOUNTS, V2_MOUNT, own_group
from rtgauge.target.file_batch import Read

PERIOD_MIN = "/proc/sys/kernel/sched_deadline_period_min_us"
DEFAULT_PERIOD_MIN_US = 100
"""The kernel's default (us), used if its file cannot be read."""


class _Priority(BaseModel):
    errno: str
    priority: int
    other_allowed: bool
    euid: int
    cap_sys_nice: bool
    rtprio_limit: int | None
    cgroup: str
    user_namespace: bool = False
    seccomp: bool = False

    @property
    def granted(self) -> bool:
        """Whether the capability or the limit allows the priority. Then something else refused it."""
        limit = self.rtprio_limit
        return (self.cap_sys_nice and not self.user_namespace) or limit is None or limit >= self.priority


class _Deadline(BaseModel):
    errno: str
    runtime_ns: int
    period_ns: int
    cpu: int | None
    cap_sys_nice: bool
    user_namespace: bool = False
    seccomp: bool = False


class _MemoryLock(BaseModel):
    errno: str
    memlock_limit_bytes: int | None


def explain(error: ErrorLine, read: Read) -> str:
    """Return one sentence for the user: the reason and the remedy, or the engine's message if no reason is
    known.

    An engine of another version may leave facts out.
    """
    try:
        match error.code:
            case "permission-rt":
                return _priority(_Priority.model_validate(error.detail), error.message, read)
            case "deadline":
                return _deadline(_Deadline.model_validate(error.detail), error.message, read)
            case "memory-lock":
                return _memory_lock(_MemoryLock.model_validate(error.detail), error.message)
            case _:
                return error.message
    except ValidationError:
        return error.message


def _text(path: str, read: Read) -> str | None:
    return read([path]).text(path)


def _seccomp(what: str) -> str:
    return (
        f"{what} is refused by the seccomp profile of this container or service; allow sched_setscheduler "
        f"and sched_setattr in it (docker run --security-opt seccomp=FILE, "
        "seccompProfile of a pod, SystemCallFilter= of a unit)"
    )


def _user_namespace(what: str) -> str:
    return (
        f"{what} is refused because this process is in a user namespace, in which CAP_SYS_NICE has no effect "
        f"(rootless container, hostUsers: false); start it in the host's user namespace"
    )


def _group_without_runtime(cgroup: str, read: Read) -> str | None:
    """Explain which group of cgroup v1 has no real-time runtime; None if this process's group has some."""
    group = own_group(cgroup)
    for mount in V1_MOUNTS if group is not None and group.version == "v1" else ():
        path = f"{mount}{'' if group is None or group.path == '/' else group.path}/cpu.rt_runtime_us"
        if _text(path, read) == "0":
            return (
                "real-time scheduling is refused because this process is in a cgroup without "
                f"real-time runtime ({path} is 0); write a runtime there (for example 950000), or move the "
                f"shell to the root group"
            )
    return None


def _group_of_v2(cgroup: str, read: Read) -> str | None:
    """Explain that a group of cgroup v2 gets no real-time runtime on this kernel; None if it may get some.

    With RT_GROUP_SCHED a group's runtime is 0 until one is written, and cgroup v2 has no file for that
    (Documentation/admin-guide/cgroup-v2.rst, "CPU").
    """
    group = own_group(cgroup)
    if group is None or group.version != "v2":
        return None
    folder = V2_MOUNT + ("" if group.path == "/" else group.path)
    # In a cgroup namespace, the container's own group is `/`. Only the host's root has no such file.
    if group.path == "/" and _text(f"{folder}/cgroup.type", read) is None:
        return None
    kernel_files = read(KERNEL_PATHS)
    built = config(kernel_files | read(config_paths(kernel_files.text("/proc/sys/kernel/osrelease") or "")))
    if built is None or built.options.get("CONFIG_RT_GROUP_SCHED") != "y":
        return None
    return (
        "real-time scheduling is refused because this kernel has RT_GROUP_SCHED and this process is in a "
        f"cgroup v2 ({folder}), to which the kernel gives no time for real-time tasks. A setting of a "
        "container cannot change this: boot with rt_group_sched=0 (Linux 6.16 and newer) or a kernel without "
        "RT_GROUP_SCHED, or measure in the host's root group"
    )


def _priority(facts: _Priority, message: str, read: Read) -> str:
    without = ", or measure with --policy other" if facts.other_allowed else ""
    if facts.seccomp:
        return _seccomp("real-time scheduling")
    if facts.errno != "EPERM":
        return message
    group = _group_without_runtime(facts.cgroup, read)
    if group is not None:
        return group
    if facts.granted:
        group = _group_of_v2(facts.cgroup, read)
        if group is not None:
            return group + without
        right = "CAP_SYS_NICE" if facts.cap_sys_nice else "the limit (RLIMIT_RTPRIO) for it"
        return (
            f"real-time scheduling is refused although this process has {right}, so a rule of a container "
            f"or a security module forbids it; run outside of the container{without}"
        )
    if facts.user_namespace and not facts.rtprio_limit:
        return _user_namespace("real-time scheduling") + without
    limit = facts.rtprio_limit
    if limit:
        return (
            f"real-time priority {facts.priority} is refused because the limit of this user (RLIMIT_RTPRIO) "
            f"is {limit}; use --priority {limit}, raise rtprio in /etc/security/limits.conf, or run as root"
        )
    who = "is not root" if facts.euid else "lacks some of root's rights"
    return (
        f"real-time scheduling is refused because this user {who} and has no CAP_SYS_NICE, and "
        f"RLIMIT_RTPRIO is 0; run as root "
        f"(of a container, with --cap-add SYS_NICE), or raise rtprio in /etc/security/limits.conf{without}"
    )


def _deadline(facts: _Deadline, message: str, read: Read) -> str:
    if facts.seccomp:
        return _seccomp("SCHED_DEADLINE")
    if facts.errno == "EPERM" and facts.user_namespace:
        return _user_namespace("SCHED_DEADLINE")
    if facts.errno == "EPERM" and not facts.cap_sys_nice:
        return "SCHED_DEADLINE is refused because this process lacks CAP_SYS_NICE; run as root"
    if facts.errno == "EPERM" and facts.cpu is not None:
        return (
            f"SCHED_DEADLINE is refused for a thread that is pinned to CPU {facts.cpu} (EPERM); start it in "
            f"an exclusive cpuset with only that CPU (cpuset.cpus.partition = root), or "
            "use --policy fifo"
        )
    if facts.errno == "EPERM":
        return (
            "SCHED_DEADLINE is refused (EPERM), because this process may not use every CPU of its cpuset "
            "(its affinity is smaller), "
            "or the cpuset has no deadline bandwidth; start it without taskset"
        )
    if facts.errno == "EBUSY":
        return (
            "SCHED_DEADLINE is refused (EBUSY), because all deadline tasks together would get more than the "
            "kernel grants "
            "(kernel.sched_rt_runtime_us of each sched_rt_period_us on each CPU); shorten the execution times"
        )
    if facts.errno == "EINVAL":
        shortest = _text(PERIOD_MIN, read) or ""
        shortest_us = (
            int(shortest)
            if shortest.isascii() and shortest.isdigit() and int(shortest)
            else DEFAULT_PERIOD_MIN_US
        )
        if facts.period_ns < shortest_us * 1000:
            return (
                f"SCHED_DEADLINE refuses a period of {facts.period_ns // 1000} us (EINVAL): "
                f"the kernel accepts at least {shortest_us} us (kernel.sched_deadline_period_min_us); "
                "give a longer one"
            )
    return message


def _memory_lock(facts: _MemoryLock, message: str) -> str:
    if facts.errno not in ("EPERM", "ENOMEM", "EAGAIN") or facts.memlock_limit_bytes is None:
        return message
    return (
        "memory cannot be locked because the limit of this user (RLIMIT_MEMLOCK) is "
        f"{facts.memlock_limit_bytes // 1024} KiB; "
        "raise memlock in /etc/security/limits.conf, run as root, or measure with --memory-lock off"
    )
