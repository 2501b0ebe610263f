# SPDX-License-Identifier: MIT
"""The threads on a target that run with a real-time policy, and what the kernel's own threads tell of its settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rtgauge.system.file_batch import UNKNOWN, integer
from rtgauge.units import format_cpu_list

if TYPE_CHECKING:
    from rtgauge.system.file_batch import Files

PATHS = ["/proc/[0-9]*/task/[0-9]*/stat"]
POLICIES = {1: "fifo", 2: "rr", 6: "deadline"}
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of a thread (include/linux/sched.h)."""
FLAGS, RT_PRIORITY, POLICY = 9 - 3, 40 - 3, 41 - 3
"""Places in /proc/PID/stat (proc_pid_stat(5)), counted from the state, which follows the name."""


def _threads(files: Files) -> list[tuple[int, str, int, int, int]]:
    """(process, name, flags, real-time priority, policy) of each thread."""
    found: list[tuple[int, str, int, int, int]] = []
    for match, text in files.matching(r"/proc/([0-9]{1,9})/task/[0-9]{1,9}/stat"):
        # the name is in brackets and may hold brackets and spaces itself
        before, _, after = text.rpartition(")")
        fields = after.split()
        if "(" not in before or len(fields) <= POLICY:
            continue
        flags, priority, policy = (integer(fields[place]) for place in (FLAGS, RT_PRIORITY, POLICY))
        if flags is not None and priority is not None and policy is not None:
            found.append((int(match[1]), before.partition("(")[2], flags, priority, policy))
    return found


def facts(files: Files) -> dict[str, Any]:
    """`realtime`: threads by name, policy and priority with their count; a kernel's thread a CPU (`migration/3`) stands as `migration/*`.

    `rcu_offloaded`: the CPUs whose RCU callbacks have a thread of their own (rcu_nocbs in effect). Unknown where no thread can be seen.
    """
    threads = _threads(files)
    if not threads:
        return {"realtime": UNKNOWN, "rcu_offloaded": UNKNOWN}
    groups: dict[tuple[str, str, int, bool], dict[str, Any]] = {}
    offloaded: set[int] = set()
    for process, name, flags, priority, number in threads:
        kernel = bool(flags & KERNEL_THREAD)
        callbacks = re.fullmatch(r"rcuo[ps]/([0-9]{1,5})", name)
        if kernel and callbacks:
            offloaded.add(int(callbacks[1]))
        policy = POLICIES.get(number)
        if policy is None:
            continue
        shown = re.sub(r"/[0-9]{1,5}$", "/*", name) if kernel else name
        key = (shown, policy, priority, kernel)
        group = groups.setdefault(key, {"name": shown, "policy": policy, "priority": key[2], "kernel": kernel, "count": 0, "processes": []})
        group["count"] += 1
        if not kernel and process not in group["processes"]:
            group["processes"].append(process)
    ordered = sorted(groups.values(), key=lambda group: (group["kernel"], -group["priority"], group["name"]))
    return {"realtime": ordered, "rcu_offloaded": format_cpu_list(sorted(offloaded))}
