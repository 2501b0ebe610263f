# SPDX-License-Identifier: MIT
"""Finds what a run has started, wherever it was moved in the tree of processes."""

from __future__ import annotations

from pathlib import Path


def command_line(pid: int) -> str:
    """Its arguments, empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[int, int] | None:
    """Parent and start time; None for one that has ended."""
    try:
        rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(rest[1]), int(rest[19])) if rest[0] not in {"Z", "X"} else None


def all_pids() -> list[int]:
    """Every process."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def family(root: int) -> set[tuple[int, int]]:
    """(pid, start time) of every process that descends from `root`."""
    parents = {pid: stat for pid in all_pids() if (stat := _stat(pid)) is not None}
    actual: set[int] = set()
    more = {root}
    while more:
        actual |= more
        more = {pid for pid, (parent, _) in parents.items() if parent in more} - actual
    return {(pid, parents[pid][1]) for pid in actual - {root} if pid in parents}


def alive(processes: set[tuple[int, int]]) -> list[str]:
    """The command lines of those that live still; a number that was given anew is another process."""
    return [
        command_line(pid)
        for pid, started in processes
        if (stat := _stat(pid)) is not None and stat[1] == started
    ]


def find(root: int, part: str) -> list[int]:
    """Descendants of `root` whose command line holds `part`."""
    return [pid for pid, _ in family(root) if part in command_line(pid)]


def the_engine(root: int) -> int:
    """The measuring process below `root`, not its guard."""
    actual = [pid for pid in find(root, "rtgauge-engine wakeup") if " guard " not in command_line(pid)]
    assert len(actual) == 1, actual
    return actual[0]
