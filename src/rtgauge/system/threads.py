# SPDX-License-Identifier: MIT
"""The threads of a target (proc_pid_stat(5)): which run with a real-time policy, and what kernel threads tell
of the kernel's settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import UNKNOWN, integer
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rtgauge.system.file_batch import Files

PATHS = ["/proc/[0-9]*/task/[0-9]*/stat"]
POLICIES = {1: "fifo", 2: "rr", 6: "deadline"}
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of a thread (include/linux/sched.h)."""
FIELDS = {"flags": 9, "start": 22, "priority": 40, "policy": 41}
"""Numbers of the fields in proc_pid_stat(5); `start` is the thread's start time, `priority` its real-time
priority.
"""


@dataclass(frozen=True)
class Thread:
    """A thread as /proc shows it.

    `name`: at most 15 characters for a user's; `policy`: fifo, rr or deadline, None if it is not
    real-time.
    """

    process: int
    tid: int
    name: str
    flags: int
    start: int
    priority: int
    policy: str | None

    @property
    def kernel(self) -> bool:
        """Whether it is a kernel thread."""
        return bool(self.flags & KERNEL_THREAD)

    def setting(self, name: str) -> str:
        """Its `policy` or `affinity` in the notation of the engine's verb `set`."""
        return f"thread:{self.tid}:{self.start}:{name}"


def threads(files: Files) -> Iterator[Thread]:
    """Every thread of a batch of PATHS, except those that ended before their file was read."""
    for match, text in files.matching(r"/proc/([0-9]{1,9})/task/([0-9]{1,9})/stat"):
        # the name is in brackets and may contain brackets and spaces; field 3 follows it
        before, _, after = text.rpartition(")")
        words = after.split()
        numbers = {
            name: integer(words[field - 3]) if len(words) > field - 3 else None
            for name, field in FIELDS.items()
        }
        flags, start, priority, policy = numbers.values()
        if "(" not in before or flags is None or start is None or priority is None or policy is None:
            continue
        yield Thread(
            int(match[1]),
            int(match[2]),
            before.partition("(")[2],
            flags,
            start,
            priority,
            POLICIES.get(policy),
        )


def facts(files: Files) -> dict[str, Any]:
    """`realtime`: threads by name, policy and priority with their count; per-CPU kernel threads
    (`migration/3`) are listed as `migration/*`.

    `rcu_offloaded`: the CPUs whose RCU callbacks have a thread of their own (rcu_nocbs in effect). Unknown
    if no thread can be seen.
    """
    seen = list(threads(files))
    if not seen:
        return {"realtime": UNKNOWN, "rcu_offloaded": UNKNOWN}
    groups: dict[tuple[str, str, int, bool], dict[str, Any]] = {}
    offloaded: set[int] = set()
    for thread in seen:
        callbacks = re.fullmatch(r"rcuo[ps]/([0-9]{1,5})", thread.name)
        if thread.kernel and callbacks:
            offloaded.add(int(callbacks[1]))
        if thread.policy is None:
            continue
        name = re.sub(r"/[0-9]{1,5}$", "/*", thread.name) if thread.kernel else thread.name
        key = (name, thread.policy, thread.priority, thread.kernel)
        group = groups.setdefault(
            key,
            {
                "name": name,
                "policy": thread.policy,
                "priority": thread.priority,
                "kernel": thread.kernel,
                "count": 0,
                "processes": [],
            },
        )
        group["count"] += 1
        if not thread.kernel and thread.process not in group["processes"]:
            group["processes"].append(thread.process)
    ordered = sorted(groups.values(), key=lambda group: (group["kernel"], -group["priority"], group["name"]))
    return {"realtime": ordered, "rcu_offloaded": format_cpu_list(sorted(offloaded))}
