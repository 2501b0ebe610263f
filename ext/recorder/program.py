# SPDX-License-Identifier: MIT
"""Finds the program to record, again after each of its restarts: by process ID, name or systemd unit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rtgauge.errors import InputError
from rtgauge.probe.watch import COMM_BYTES

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
MOST_GROUPS = 100_000


@dataclass(frozen=True)
class Program:
    """A running program. `start` is its start time in ticks since boot, which tells a reused process ID."""

    pid: int
    start: int

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        return start_of(self.pid) == self.start


def start_of(pid: int) -> int | None:
    """Return the start time of a process; None if it is gone or has ended (a zombie)."""
    try:
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if len(fields) < 20 or fields[0] in "ZX" else int(fields[19])


def user_of(pid: int) -> int | None:
    """Return the user as whom a process opens files (its fsuid); None if it is gone."""
    try:
        lines = (PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[4]) for line in lines if line.startswith("Uid:")), None)


@dataclass(frozen=True)
class ProgramChoice:
    """Which program to record: one of the three is given."""

    pid: int | None = None
    name: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        """Raise InputError unless exactly one is given."""
        if sum(each is not None for each in (self.pid, self.name, self.unit)) != 1:
            raise InputError("say which program to record: --program NAME, --unit NAME or --pid PID")
        if self.unit is not None and ("/" in self.unit or not self.unit.isprintable() or not self.unit):
            raise InputError(f"--unit {self.unit!r} is not the name of a unit, such as control.service")

    def __str__(self) -> str:
        """Return it as the command line has it."""
        if self.pid is not None:
            return f"--pid {self.pid}"
        return f"--program {self.name}" if self.name is not None else f"--unit {self.unit}"

    def find(self) -> list[Program]:
        """Return the running programs that fit: none, one, or several if they share a name."""
        if self.pid is not None:
            pids = [self.pid]
        elif self.name is not None:
            pids = _named(self.name)
        else:
            pids = _of_unit(str(self.unit))
        return [Program(pid, start) for pid in pids if (start := start_of(pid)) is not None]


def _named(name: str) -> list[int]:
    """Return the processes with this name in /proc/PID/comm, or with an executable file of this name."""
    comm = name.encode()[:COMM_BYTES].decode(errors="ignore")
    pids: list[int] = []
    for place in PROC.iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            text = (place / "comm").read_text(errors="replace").rstrip("\n")
            if text == comm or (place / "exe").readlink().name == name:
                pids.append(int(place.name))
        except OSError:  # it has ended, or is a kernel thread, which has no file
            continue
    return pids


def _of_unit(unit: str) -> list[int]:
    """Return the first process of a unit's control group, which is its main process. Users make groups of
    any name below user.slice.
    """
    unit = unit if "." in unit else f"{unit}.service"
    for number, (folder, folders, _) in enumerate(os.walk(CGROUPS)):
        folders[:] = [name for name in folders if name != "user.slice"]
        if unit in folders:
            try:
                pids = (Path(folder) / unit / "cgroup.procs").read_text().split()
            except OSError:
                return []
            return [min(map(int, pids))] if pids else []
        if number > MOST_GROUPS:
            return []
    return []
