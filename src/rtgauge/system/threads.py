# SPDX-License-Identifier: MIT
"""Lists a target's threads (proc_pid_stat(5)): real-time threads, and kernel threads that reveal settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rtgauge.record.facts import RealTimeThread, Tasks
from rtgauge.target.file_batch import Files, integer
from rtgauge.units import format_cpu_list

PATHS = ["/proc/[0-9]*/task/[0-9]*/stat"]
COMM_BYTES = 15
"""The length to which the kernel cuts names in /proc/PID/comm (include/linux/sched.h)."""
STATES = ("running", "stopped")
"""The thread states that the engine's verb `set` can write."""
POLICIES = {1: "fifo", 2: "rr", 6: "deadline"}
KERNEL_THREAD = 0x00200000
"""The flag PF_KTHREAD of a thread (include/linux/sched.h)."""
FIELDS = {"flags": 9, "start": 22, "priority": 40, "policy": 41}
"""Field numbers in proc_pid_stat(5). `start`: the start time. `priority`: the real-time priority."""


@dataclass(frozen=True)
class Thread:
    """A thread as /proc shows it.

    A user thread's `name` has at most 15 characters. `policy`: fifo, rr, deadline, or None.
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
        """Return the thread's `policy`, `affinity` or `state` in the notation of the engine's verb `set`."""
        return f"thread:{self.tid}:{self.start}:{name}"


def threads(files: Files) -> Iterator[Thread]:
    """Yield every thread in a batch of PATHS, without threads that ended before their file was read."""
    for match, text in files.matching(r"/proc/([0-9]{1,9})/task/([0-9]{1,9})/stat"):
        # The name is in brackets, and may itself contain brackets and spaces. Field 3 follows it.
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


def facts(files: Files) -> Tasks:
    """Return the real-time threads, with per-CPU kernel threads (`migration/3`) listed as `migration/*`.

    A thread for a CPU's RCU callbacks shows that rcu_nocbs is in effect. Unknown if no thread can be seen.
    """
    visible_threads = list(threads(files))
    if not visible_threads:
        return Tasks(realtime=None, rcu_offloaded=None)
    groups: dict[tuple[str, str, int, bool], list[Thread]] = {}
    offloaded: set[int] = set()
    for thread in visible_threads:
        callbacks = re.fullmatch(r"rcuo[ps]/([0-9]{1,5})", thread.name)
        if thread.kernel and callbacks:
            offloaded.add(int(callbacks[1]))
        if thread.policy is None:
            continue
        name = re.sub(r"/[0-9]{1,5}$", "/*", thread.name) if thread.kernel else thread.name
        groups.setdefault((name, thread.policy, thread.priority, thread.kernel), []).append(thread)
    realtime = [
        RealTimeThread(
            name=name,
            policy=policy,
            priority=priority,
            kernel=kernel,
            count=len(group),
            processes=[] if kernel else list(dict.fromkeys(thread.process for thread in group)),
        )
        for (name, policy, priority, kernel), group in groups.items()
    ]
    return Tasks(
        realtime=sorted(realtime, key=lambda thread: (thread.kernel, -thread.priority, thread.name)),
        rcu_offloaded=format_cpu_list(sorted(offloaded)),
    )
