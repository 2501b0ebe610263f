# SPDX-License-Identifier: MIT
"""What a target's kernel takes from real-time tasks: throttling, fair server, control groups."""

from __future__ import annotations

from typing import Any

from rtgauge.system.file_batch import UNKNOWN, Files, integer, known

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
PERIOD = "/proc/sys/kernel/sched_rt_period_us"
FAIR_SERVER = "/sys/kernel/debug/sched/fair_server"
OWN_GROUPS = "/proc/self/cgroup"
V1_MOUNTS = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu")
PATHS = [
    RUNTIME,
    PERIOD,
    FAIR_SERVER,
    f"{FAIR_SERVER}/cpu[0-9]*/runtime",
    f"{FAIR_SERVER}/cpu[0-9]*/period",
    OWN_GROUPS,
    *(f"{mount}/cpu.rt_{name}_us" for mount in V1_MOUNTS for name in ("runtime", "period")),
    *(f"{mount}/cpu.shares" for mount in V1_MOUNTS),
]


def own_group(text: str | None) -> tuple[str, str] | None:
    """From /proc/self/cgroup: (`"v1"` or `"v2"`, the path in the hierarchy that has the cpu controller); None where there is none."""
    unified = None
    for line in (text or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(","):
            return "v1", path
        if number == "0" and controllers == "":
            unified = path
    return None if unified is None else ("v2", unified)


def own_group_paths(files: Files) -> list[str]:
    """Where the real-time limit of the own cgroup v1 group stands, and those of the groups above it."""
    group = own_group(files.text(OWN_GROUPS))
    if group is None or group[0] != "v1":
        return []
    parts = [part for part in group[1].split("/") if part not in ("", "..")]
    folders = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    return [f"{mount}/{folder}/cpu.rt_{name}_us" for mount in V1_MOUNTS for folder in folders for name in ("runtime", "period")]


def fair_server(files: Files) -> dict[str, dict[str, Any]] | str:
    """CPU -> runtime and period (ns); "none" where debugfs is readable and has none, unknown otherwise."""
    servers: dict[str, dict[str, Any]] = {}
    for match, text in files.matching(rf"{FAIR_SERVER}/cpu([0-9]{{1,5}})/(runtime|period)"):
        servers.setdefault(match[1], {"runtime_ns": UNKNOWN, "period_ns": UNKNOWN})[f"{match[2]}_ns"] = known(integer(text))
    if servers:
        return servers
    return "none" if files.exists("/sys/kernel/debug/sched/preempt") and not files.exists(FAIR_SERVER) else UNKNOWN


def facts(files: Files) -> dict[str, Any]:
    """Limits on real-time tasks. `cgroup.rt_runtime_us`: the least share of the own group and those above, where cgroup v1 limits it."""
    group = own_group(files.text(OWN_GROUPS))
    result: dict[str, Any] = {
        "rt_runtime_us": known(files.number(RUNTIME)),
        "rt_period_us": known(files.number(PERIOD)),
        "fair_server": fair_server(files),
        "cgroup": {"version": group[0] if group else UNKNOWN, "path": group[1] if group else UNKNOWN, "rt_runtime_us": UNKNOWN, "rt_period_us": UNKNOWN},
    }
    if group and group[0] == "v2":
        result["cgroup"]["rt_runtime_us"] = result["cgroup"]["rt_period_us"] = "none"
    if group and group[0] == "v1":
        result["cgroup"] |= _v1_limit(files, group[1])
    return result


def _v1_limit(files: Files, path: str) -> dict[str, Any]:
    """Runtime and period of the tightest group on the way to the root; "none" where the kernel has no such limit."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    limits: list[tuple[float, int, int]] = []
    for mount in V1_MOUNTS:
        for depth in range(len(parts) + 1):
            folder = "/".join([mount, *parts[:depth]])
            runtime, period = files.number(f"{folder}/cpu.rt_runtime_us"), files.number(f"{folder}/cpu.rt_period_us")
            if runtime is not None and period is not None and period > 0:
                limits.append((1.0 if runtime < 0 else runtime / period, runtime, period))
    if limits:
        _, runtime, period = min(limits)
        return {"rt_runtime_us": runtime, "rt_period_us": period}
    nothing = "none" if any(files.exists(f"{mount}/cpu.shares") for mount in V1_MOUNTS) else UNKNOWN
    return {"rt_runtime_us": nothing, "rt_period_us": nothing}
