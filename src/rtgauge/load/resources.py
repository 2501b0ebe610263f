# SPDX-License-Identifier: MIT
"""Reads the CPUs and memory that a target can give to a load."""

from __future__ import annotations

import re

from rtgauge.load.load import LoadContext, LoadTarget
from rtgauge.target.file_batch import Files
from rtgauge.units import parse_cpu_list

ONLINE = "/sys/devices/system/cpu/online"
MEMINFO = "/proc/meminfo"
GROUPS = "/proc/self/cgroup"
V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
BOUND_FACTOR = 2
BOUND_EXTRA_S = 120


def _kib(meminfo: str, key: str) -> int | None:
    match = re.search(rf"^{key}:\s+([0-9]{{1,15}}) kB$", meminfo, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def memory_groups(own: str) -> list[tuple[str, str]]:
    """Return the (limit, usage) files of the process's memory control groups, from the topmost visible group
    down to its own. `own`: the content of /proc/self/cgroup.
    """
    pairs: list[tuple[str, str]] = []
    for line in own.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and controllers == "":
            base, limit, usage = V2, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, limit, usage = V1, "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):
            folder = "/".join([base, *parts[:depth]])
            pairs.append((f"{folder}/{limit}", f"{folder}/{usage}"))
    return pairs


def make_context(target: LoadTarget, expected_s: float, peer: str | None = None) -> LoadContext:
    """Return a load's context: the target's CPUs (1 if unknown) and memory, and a safety limit.

    `expected_s`: how long the load will be needed. `peer`: HOST:PORT for the load `network`.
    """
    first = target.read([ONLINE, MEMINFO, GROUPS])
    try:
        cpus = len(parse_cpu_list(first.text(ONLINE) or ""))
    except ValueError:
        cpus = 1
    meminfo = first.text(MEMINFO) or ""
    available = _kib(meminfo, "MemAvailable") or _kib(meminfo, "MemFree")
    pairs = memory_groups(first.text(GROUPS) or "")
    second = target.read([path for pair in pairs for path in pair]) if pairs else Files()
    for limit_path, usage_path in pairs:
        limit, usage = second.number(limit_path), second.number(usage_path)
        if available is not None and limit is not None and usage is not None:
            available = min(available, max(limit - usage, 0))
    return LoadContext(
        target,
        cpus,
        _kib(meminfo, "MemTotal"),
        available,
        bound_s=int(expected_s * BOUND_FACTOR) + BOUND_EXTRA_S,
        peer=peer,
    )
