# SPDX-License-Identifier: MIT
"""What the process that measures may have on a target: CPU time of its control groups, CPUs, real-time priority, locked memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import UNKNOWN, integer, known
from rtgauge.system.scheduling import OWN_GROUPS, V1_MOUNTS, own_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rtgauge.system.file_batch import Files

V2_MOUNT = "/sys/fs/cgroup"
OWN_LIMITS = "/proc/self/limits"
OWN_STATUS = "/proc/self/status"
PATHS = [OWN_LIMITS, OWN_STATUS]


def _folders(files: Files) -> Iterator[tuple[str, str]]:
    """(version, folder) of the own control group and each one above it but the root, wherever it may be mounted."""
    group = own_group(files.text(OWN_GROUPS))
    if group is None:
        return
    parts = [part for part in group[1].split("/") if part not in ("", "..")]
    for mount in V1_MOUNTS if group[0] == "v1" else (V2_MOUNT,):
        for depth in range(len(parts), 0, -1):
            yield group[0], "/".join([mount, *parts[:depth]])


def more_paths(files: Files) -> list[str]:
    """Where the quotas of the own groups stand: known only from the first batch."""
    names = {"v1": ("cpu.cfs_quota_us", "cpu.cfs_period_us"), "v2": ("cpu.max", "cpuset.cpus.partition")}
    return [f"{folder}/{name}" for version, folder in _folders(files) for name in names[version]]


def _share(version: str, folder: str, files: Files) -> float | None:
    """CPUs' worth of time that a group may use; infinite where it has no limit, None where it cannot be read."""
    if version == "v1":
        quota, period = files.number(f"{folder}/cpu.cfs_quota_us"), files.number(f"{folder}/cpu.cfs_period_us")
    else:
        words = (files.text(f"{folder}/cpu.max") or "").split()
        quota = -1 if words[:1] == ["max"] else integer(words[0]) if words else None
        period = integer(words[1]) if len(words) > 1 else None
    if quota is None or period is None or period <= 0:
        return None
    return float("inf") if quota < 0 else quota / period


def cpu_quota(files: Files) -> float | str:
    """The tightest limit of the groups on the way to the root, in CPUs; "none" where there is none."""
    group = own_group(files.text(OWN_GROUPS))
    if group is None:
        return UNKNOWN
    if group[1] == "/":
        return "none"
    shares = [share for version, folder in _folders(files) if (share := _share(version, folder, files)) is not None]
    return UNKNOWN if not shares else "none" if min(shares) == float("inf") else round(min(shares), 3)


def _limit(files: Files, name: str) -> int | str:
    """A soft limit of getrlimit(2)."""
    match = re.search(rf"^{name}\s+([0-9]{{1,19}}|unlimited)\s", files.text(OWN_LIMITS) or "", re.MULTILINE)
    return UNKNOWN if match is None else match[1] if match[1] == "unlimited" else int(match[1])


def facts(files: Files) -> dict[str, Any]:
    """CPUs' worth of quota, the CPUs that are allowed, the partition of cgroup v2's cpuset, RLIMIT_RTPRIO and RLIMIT_MEMLOCK."""
    allowed = re.search(r"^Cpus_allowed_list:\s*([0-9,-]{1,4096})$", files.text(OWN_STATUS) or "", re.MULTILINE)
    partitions = [text for version, folder in _folders(files) if version == "v2" and (text := files.text(f"{folder}/cpuset.cpus.partition"))]
    return {
        "cpu_quota": cpu_quota(files),
        "cpus_allowed": known(allowed[1] if allowed else None),
        "cpuset_partition": partitions[0] if partitions else UNKNOWN,
        "rtprio": _limit(files, "Max realtime priority"),
        "memlock_bytes": _limit(files, "Max locked memory"),
    }
