# SPDX-License-Identifier: MIT
"""Whether a program is fit for real time, by what the kernel says of it: the policies of its threads, its
locked memory and its limits. What it does in its cycles is in the figures.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rtgauge.units import plural
from rtgauge_ext.recorder.program import PROC

POLICIES = {os.SCHED_FIFO: "fifo", os.SCHED_RR: "rr", 6: "deadline"}
"""The real-time policies (sched(7)); Python has no name for SCHED_DEADLINE."""
NAMED = 8
LIMIT = "Max realtime timeout"
"""In /proc/PID/limits: after this much CPU time without a sleep, the kernel ends a real-time program (us)."""


class Fitness(NamedTuple):
    """What is known of a program. `who`: its unit and user. `threads`: the real-time ones, and how many
    others. `against`: what is against its use for real time.
    """

    who: str
    threads: str
    against: tuple[str, ...]

    @property
    def words(self) -> str:
        """All of it in one line."""
        return "; ".join(
            [self.who, self.threads, *(self.against or ("nothing found that would make it late",))]
        )


def fitness(pid: int) -> Fitness:
    """Look at a program. What has ended meanwhile is left out."""
    place = PROC / str(pid)
    real_time, others = _threads(place)
    against: list[str] = []
    if not real_time:
        against.append("no thread has a real-time policy (chrt)")
    if _field(place / "status", "VmLck:") == "0":
        against.append("its memory is not locked (mlockall)")
    limit = _field(place / "limits", LIMIT)
    if limit not in {"unlimited", ""}:
        against.append(f"it ends after {limit} us of real-time CPU time without a sleep (RLIMIT_RTTIME)")
    named = ", ".join([*real_time[:NAMED], *(["..."] if len(real_time) > NAMED else [])])
    return Fitness(
        _who(place),
        f"{f'{named} real-time' if named else 'no real-time thread'}, {plural(others, 'other thread')}",
        tuple(against),
    )


def _threads(place: Path) -> tuple[list[str], int]:
    names: list[str] = []
    others = 0
    for task in sorted((place / "task").glob("[0-9]*"), key=lambda task: int(task.name)):
        with suppress(OSError):
            policy = os.sched_getscheduler(int(task.name)) & ~os.SCHED_RESET_ON_FORK
            if policy not in POLICIES:
                others += 1
                continue
            name = (task / "comm").read_text(errors="replace").rstrip("\n")
            priority = os.sched_getparam(int(task.name)).sched_priority
            names.append(f"{name} {POLICIES[policy]}{f' {priority}' if priority else ''}")
    return names, others


def _who(place: Path) -> str:
    """Return the unit that began the program, if there is one, and the user as whom it runs."""
    user = _field(place / "status", "Uid:")
    with suppress(OSError):
        parts = (place / "cgroup").read_text().split("/")
        unit = next((part.strip() for part in reversed(parts) if part.strip().endswith(".service")), "")
        return f"{unit or 'no unit'}, user {user}"
    return f"user {user}"


def _field(file: Path, name: str) -> str:
    """Return the first word after a name at the beginning of a line; empty if there is none."""
    with suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith(name):
                return line.removeprefix(name).split(None, 1)[0]
    return ""
