# SPDX-License-Identifier: MIT
"""Reads the processes of a load on its target from /proc/PID/stat (proc_pid_stat(5))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rtgauge.target.file_batch import Files

STAT_GLOB = "/proc/[0-9]*/stat"
USER_HZ = 100
"""Ticks per second in /proc on all architectures of Linux 4 and later, except Alpha (1024)."""


@dataclass(frozen=True)
class ProcessStat:
    """One process. `ticks`: its CPU time (USER_HZ), including the children that it has waited for."""

    pid: int
    name: str
    parent: int
    state: str
    ticks: int


def parse_stat(text: str) -> ProcessStat | None:
    """Parse one /proc/PID/stat; None for anything else. The name may hold spaces and parentheses."""
    start, _, end = text.rpartition(") ")
    pid, _, name = start.partition(" (")
    state, *rest = end.split() or [""]
    if (
        not re.fullmatch(r"[0-9]{1,10}", pid)
        or len(state) != 1
        or len(rest) < 14
        or not all(re.fullmatch(r"-?[0-9]{1,20}", field) for field in rest)
    ):
        return None
    # rest[0] is field 4 (ppid); utime, stime, cutime, cstime are fields 14 to 17.
    return ProcessStat(int(pid), name, int(rest[0]), state, sum(int(field) for field in rest[10:14]))


def parse_all(files: Files) -> dict[int, ProcessStat]:
    """Parse every process of a batch. Processes that ended during the read are missing."""
    stats = map(parse_stat, files.texts())
    return {process.pid: process for process in stats if process is not None}


def descendants(processes: Mapping[int, ProcessStat], root: int) -> list[ProcessStat]:
    """Return the process `root` and all its descendants. Zombies are included, because their CPU time does
    not count for their parent yet.
    """
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    visited: set[int] = set()
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid not in visited:
            visited.add(pid)
            waiting += children.get(pid, [])
    return [processes[pid] for pid in sorted(visited) if pid in processes]


def count_alive(processes: Iterable[ProcessStat], prefix: str) -> int:
    """Count the live processes whose name begins with `prefix`."""
    return sum(process.name.startswith(prefix) and process.state not in "ZX" for process in processes)


def total_ticks(processes: Iterable[ProcessStat]) -> int:
    """Return the CPU time of all processes (USER_HZ)."""
    return sum(process.ticks for process in processes)


def resident_bytes(files: Files) -> int:
    """Add up the resident memory in a batch of /proc/PID/status. Shared pages count for each process."""
    matches = (re.search(r"^VmRSS:\s+([0-9]{1,15}) kB$", text, re.MULTILINE) for text in files.texts())
    return sum(int(match[1]) * 1024 for match in matches if match is not None)
